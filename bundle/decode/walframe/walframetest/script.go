package walframetest

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"coldplane/bundle/decode/walframe"
)

// Build returns the files of member/wal ("wal/...") and member/snap
// ("snap/...") that a spec describes. A spec is a list of lines; # begins a
// comment.
//
//	node ID cluster ID               first: whose log it is
//	member ID [name=N] peer=URL [client=URL] [learner]   describes a member for conf and snap lines
//	conf add|add-learner|promote|update|remove|force ID
//	leader TERM                      a new leader's empty entry; later entries have its term
//	put KEY [size=N] [times=N]
//	alarm NOSPACE|CORRUPT ID raise|clear
//	state [commit=N] [vote=ID]       default: everything written so far is committed
//	mark INDEX TERM                  a snapshot record
//	cut                              the next segment
//	snap TERM INDEX [version=3.5.0] [members=ID,ID] [removed=ID,ID] [v2keys=NAME,NAME]
//	flip N | zero N LEN | truncate N   damage, by offset in the last segment
func Build(spec string) ([]File, error) {
	b := &script{members: map[uint64]walframe.MemberInfo{}, term: 1}
	for i, l := range strings.Split(spec, "\n") {
		l, _, _ = strings.Cut(l, "#")
		f := strings.Fields(l)
		if len(f) == 0 {
			continue
		}
		if err := b.line(f); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", i+1, strings.Join(f, " "), err)
		}
	}
	if b.w == nil {
		return nil, fmt.Errorf("no node line")
	}
	var out []File
	files := b.w.Files()
	for _, d := range b.damage {
		if err := d(&files[len(files)-1]); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		out = append(out, File{"wal/" + f.Name, f.Data})
	}
	for _, f := range b.snaps {
		out = append(out, File{"snap/" + f.Name, f.Data})
	}
	return out, nil
}

// Make turns every file named DIR!wal into DIR/member/wal and DIR/member/snap
// files: the generator of rule scripts.
func Make(files map[string][]byte) error {
	for name, spec := range files {
		dir, ok := strings.CutSuffix(name, "!wal")
		if !ok {
			continue
		}
		built, err := Build(string(spec))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		delete(files, name)
		for _, f := range built {
			files[path.Join(dir, "member", f.Name)] = f.Data
		}
	}
	return nil
}

type script struct {
	w       *Writer
	term    uint64
	node    uint64
	members map[uint64]walframe.MemberInfo
	snaps   []File
	damage  []func(*File) error
}

func (b *script) line(f []string) error {
	arg := func(i int) string {
		if i < len(f) {
			return f[i]
		}
		return ""
	}
	opt := func(name string) string {
		for _, s := range f[1:] {
			if v, ok := strings.CutPrefix(s, name+"="); ok {
				return v
			}
		}
		return ""
	}
	if f[0] == "node" {
		ids, err := hexes(arg(1), arg(3))
		if err != nil {
			return err
		}
		b.node, b.w = ids[0], New(ids[0], ids[1], 64<<10)
		return nil
	}
	if b.w == nil {
		return fmt.Errorf("the node line comes first")
	}
	switch f[0] {
	case "member":
		ids, err := hexes(arg(1))
		if err != nil {
			return err
		}
		b.members[ids[0]] = walframe.MemberInfo{ID: ids[0], Name: opt("name"), PeerURLs: urls(opt("peer")), ClientURLs: urls(opt("client")), IsLearner: f[len(f)-1] == "learner"}
		return nil
	case "conf":
		return b.conf(arg(1), arg(2))
	case "leader":
		n, err := strconv.ParseUint(arg(1), 10, 64)
		b.term = n
		b.w.Leader(n)
		return err
	case "put":
		size, times := number(opt("size"), 100), number(opt("times"), 1)
		for range times {
			b.w.Put(b.term, arg(1), int(size))
		}
		return nil
	case "alarm":
		ids, err := hexes(arg(2))
		if err != nil {
			return err
		}
		typ := walframe.AlarmNoSpace
		if arg(1) == "CORRUPT" {
			typ = walframe.AlarmCorrupt
		}
		b.w.Alarm(b.term, ids[0], typ, arg(3) == "raise")
		return nil
	case "state":
		vote := b.node
		if v := opt("vote"); v != "" {
			ids, err := hexes(v)
			if err != nil {
				return err
			}
			vote = ids[0]
		}
		b.w.State(b.term, vote, number(opt("commit"), b.w.Index()))
		return nil
	case "mark":
		b.w.Mark(number(arg(1), 0), number(arg(2), 0))
		b.term = max(b.term, number(arg(2), 0))
		return nil
	case "cut":
		b.w.Cut()
		return nil
	case "snap":
		return b.snap(number(arg(1), 0), number(arg(2), 0), opt("version"), opt("members"), opt("removed"), opt("v2keys"))
	case "flip", "zero", "truncate":
		return b.harm(f[0], int(number(arg(1), 0)), int(number(arg(2), 1)))
	}
	return fmt.Errorf("unknown instruction")
}

func (b *script) conf(what, id string) error {
	ids, err := hexes(id)
	if err != nil {
		return err
	}
	m := b.members[ids[0]]
	switch what {
	case "add":
		b.w.Conf(b.term, walframe.AddNode, ids[0], &m, false)
	case "promote":
		b.w.Conf(b.term, walframe.AddNode, ids[0], &m, true)
	case "add-learner":
		m.IsLearner = true
		b.w.Conf(b.term, walframe.AddLearner, ids[0], &m, false)
	case "update":
		b.w.Conf(b.term, walframe.UpdateNode, ids[0], &m, false)
	case "remove":
		b.w.Conf(b.term, walframe.RemoveNode, ids[0], nil, false)
	case "force":
		b.w.Force(b.term, ids[0])
	default:
		return fmt.Errorf("unknown conf change")
	}
	return nil
}

func (b *script) snap(term, index uint64, version, members, removed, v2keys string) error {
	var list []walframe.MemberInfo
	gone, err := hexes(split(removed)...)
	if err != nil {
		return err
	}
	ids, err := hexes(split(members)...)
	if err != nil {
		return err
	}
	for _, id := range ids {
		m, ok := b.members[id]
		if !ok {
			return fmt.Errorf("member %x is not described", id)
		}
		list = append(list, m)
	}
	b.snaps = append(b.snaps, Snap(term, index, list, gone, version, split(v2keys)...))
	return nil
}

func (b *script) harm(what string, at, n int) error {
	b.damage = append(b.damage, func(f *File) error {
		if at >= len(f.Data) {
			return fmt.Errorf("%s %d: the file has %d bytes", what, at, len(f.Data))
		}
		switch what {
		case "flip":
			f.Data[at] ^= 0x10
		case "zero":
			clear(f.Data[at:min(at+n, len(f.Data))])
		case "truncate":
			f.Data = f.Data[:at]
		}
		return nil
	})
	return nil
}

func hexes(in ...string) ([]uint64, error) {
	var out []uint64
	for _, s := range in {
		n, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func urls(s string) []string { return split(s) }

func number(s string, def uint64) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return def
	}
	return n
}
