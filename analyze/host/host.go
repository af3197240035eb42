// Package host holds facts about the machine: clock, processes, sockets, file systems, units.
//
// They come from the collector's files under host/ (package hostfacts), or from
// saved output of the usual tools under listing/ or host/ (df, ss, systemctl,
// timedatectl, chronyc, ip). Each fact carries where it was read. What was not
// asked is missing, never a default.
package host

import (
	"encoding/json"
	"fmt"

	"coldplane/analyze"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
)

const maxFile = 16 << 20 // bytes of one file of facts

// load reads one JSON file of the collector.
func load[T any](c *analyze.Ctx, path string) (T, bundle.Ref, error) {
	var v T
	f, err := c.Node().Stat(path)
	if err != nil {
		return v, bundle.Ref{}, absentIsNotCollected(err)
	}
	b, err := f.Bytes(maxFile)
	if err != nil {
		return v, bundle.Ref{}, err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, bundle.Ref{}, &bundle.MissingError{Evidence: path, Reason: bundle.Damaged, Detail: err.Error(), Ref: f.Ref()}
	}
	return v, f.Ref(), nil
}

// absentIsNotCollected: files of facts are made by a collector, so one that is
// not there was not collected, whatever else is known of the directory.
func absentIsNotCollected(err error) error {
	if bundle.IsAbsent(err) {
		return &bundle.MissingError{Evidence: string(bundle.KindHost), Reason: bundle.NotCollected}
	}
	return err
}

// Info is the machine as a whole.
type Info struct {
	hostfacts.Node
	Ref bundle.Ref
}

// Machine is the machine of a node.
var Machine = &analyze.Fact[*Info]{
	Name:  "host.machine",
	Kinds: []bundle.Kind{bundle.KindHost},
	Compute: func(c *analyze.Ctx) (*Info, error) {
		v, ref, err := load[hostfacts.Node](c, hostfacts.NodePath)
		if err != nil {
			return nil, err
		}
		return &Info{v, ref}, nil
	},
}

// ClockInfo is a machine's clock at collection.
type ClockInfo struct {
	hostfacts.Clock
	Ref bundle.Ref
}

// Clock is the clock of a node.
var Clock = &analyze.Fact[*ClockInfo]{
	Name:  "host.clock",
	Kinds: []bundle.Kind{bundle.KindHost},
	Compute: func(c *analyze.Ctx) (*ClockInfo, error) {
		v, ref, err := load[hostfacts.Clock](c, hostfacts.ClockPath)
		if err == nil {
			return &ClockInfo{v, ref}, nil
		}
		if clk := savedClock(c.Node()); clk != nil {
			return clk, nil
		}
		return nil, err
	},
}

// A List is a list of facts with the file it was read from.
type List[T any] struct {
	Items []T
	Refs  []bundle.Ref // of each item
}

// list is the fact of one JSON file that holds an array, with a fallback.
func list[T any](name, path string, saved func(*bundle.Node) *List[T]) *analyze.Fact[*List[T]] {
	return &analyze.Fact[*List[T]]{
		Name:  name,
		Kinds: []bundle.Kind{bundle.KindHost},
		Compute: func(c *analyze.Ctx) (*List[T], error) {
			items, ref, err := load[[]T](c, path)
			if err != nil {
				if saved != nil && bundle.ReasonOf(err) == bundle.NotCollected {
					if l := saved(c.Node()); l != nil {
						return l, nil
					}
				}
				return nil, err
			}
			l := &List[T]{Items: items}
			for i := range items {
				l.Refs = append(l.Refs, ref.At(0, fmt.Sprintf("/%d", i)))
			}
			return l, nil
		},
	}
}

// Facts of the machine, from the collector's files or saved tool output.
var (
	Processes  = list[hostfacts.Process]("host.processes", hostfacts.ProcessesPath, nil)
	Sockets    = list("host.sockets", hostfacts.SocketsPath, savedSockets)
	Mounts     = list("host.mounts", hostfacts.MountsPath, savedMounts)
	Blocks     = list[hostfacts.Block]("host.blocks", hostfacts.BlocksPath, nil)
	Interfaces = list("host.interfaces", hostfacts.InterfacesPath, savedInterfaces)
	Units      = list("host.units", hostfacts.UnitsPath, savedUnits)
	Ladder     = list[hostfacts.Target]("host.ladder", hostfacts.LadderPath, nil)
)

// Covering returns the mount that holds a path of the host: the one with the
// longest mount point above it. ok is false if none is known.
func Covering(l *List[hostfacts.Mount], path string) (hostfacts.Mount, bundle.Ref, bool) {
	best := -1
	for i, m := range l.Items {
		if !above(m.MountPoint, path) {
			continue
		}
		if best < 0 || len(m.MountPoint) >= len(l.Items[best].MountPoint) {
			best = i
		}
	}
	if best < 0 {
		return hostfacts.Mount{}, bundle.Ref{}, false
	}
	return l.Items[best], l.Refs[best], true
}

func above(dir, path string) bool {
	if dir == "/" || dir == path {
		return true
	}
	return len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/'
}
