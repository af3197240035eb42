package pki

import (
	"path"
	"strconv"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// A Start is when a running process of the control plane began.
type Start struct {
	Component string
	At        time.Time
	Ref       bundle.Ref
	Text      string // the record, for an excerpt
}

// commBytes is how much of a process's name the kernel keeps (TASK_COMM_LEN - 1).
const commBytes = 15

// Starts are the start times of a node's running control-plane processes, by
// component: from the process table, else from what the runtime said.
var Starts = &analyze.Fact[map[string]Start]{
	Name:  "pki.starts",
	Kinds: []bundle.Kind{bundle.KindHost, bundle.KindCRI},
	Needs: []analyze.Need{host.Processes, cri.OnNode},
	Compute: func(c *analyze.Ctx) (map[string]Start, error) {
		out := map[string]Start{}
		names := append(staticpod.Components(), "kubelet")
		if l, err := host.Processes.Get(c); err == nil {
			for i, p := range l.Items {
				for _, n := range names {
					if p.StartedAt == nil || p.Comm != n[:min(len(n), commBytes)] && path.Base(p.Exe) != n {
						continue
					}
					t := p.StartedAt.UTC()
					if old, ok := out[n]; !ok || t.After(old.At) {
						out[n] = Start{n, t, l.Refs[i], "pid " + strconv.Itoa(p.PID) + " started " + t.Format(time.RFC3339)}
					}
				}
			}
		}
		if v, err := cri.OnNode.Get(c); err == nil {
			for _, n := range names {
				if x := v.Running(n); x != nil && !x.Began().IsZero() {
					if _, ok := out[n]; !ok {
						t := x.Began().UTC()
						out[n] = Start{n, t, x.Where(), "container " + x.ID[:min(len(x.ID), 13)] + " started " + t.Format(time.RFC3339)}
					}
				}
			}
		}
		if len(out) == 0 {
			return nil, analyze.Missing(bundle.KindHost, c.Node().Name, bundle.NotCollected, "start times of processes")
		}
		return out, nil
	},
}
