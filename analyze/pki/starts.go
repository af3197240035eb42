package pki

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"time"

	"coldplane/analyze"
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

const (
	maxInspect      = 256     // crictl inspect files read of a node
	maxInspectBytes = 4 << 20 // of one of them, or of crictl ps
)

// Starts are the start times of a node's running control-plane processes, by
// component: from the process table, else from what crictl said.
var Starts = &analyze.Fact[map[string]Start]{
	Name:  "pki.starts",
	Kinds: []bundle.Kind{bundle.KindHost, bundle.KindCRI},
	Needs: []analyze.Need{host.Processes},
	Compute: func(c *analyze.Ctx) (map[string]Start, error) {
		out := map[string]Start{}
		put := func(s Start) {
			if old, ok := out[s.Component]; !ok || s.At.After(old.At) {
				out[s.Component] = s
			}
		}
		names := append(staticpod.Components(), "kubelet")
		if l, err := host.Processes.Get(c); err == nil {
			for i, p := range l.Items {
				// The kernel cuts a process's name to 15 bytes.
				for _, n := range names {
					if p.StartedAt != nil && (p.Comm == n || path.Base(p.Exe) == n || len(n) > 15 && p.Comm == n[:15]) {
						put(Start{n, p.StartedAt.UTC(), l.Refs[i], "pid " + strconv.Itoa(p.PID) + " started " + p.StartedAt.UTC().Format(time.RFC3339)})
					}
				}
			}
		}
		if len(out) == 0 {
			inspected(c.Node(), names, put)
		}
		if len(out) == 0 {
			listed(c.Node(), names, put)
		}
		if len(out) == 0 {
			return nil, analyze.Missing(bundle.KindHost, c.Node().Name, bundle.NotCollected, "start times of processes")
		}
		return out, nil
	},
}

// inspected reads crictl inspect's JSON of running containers.
func inspected(n *bundle.Node, names []string, put func(Start)) {
	files := n.Glob("/crictl/inspect/*.json")
	for _, f := range files[:min(len(files), maxInspect)] {
		b, err := f.Bytes(maxInspectBytes)
		if err != nil {
			continue
		}
		var v struct {
			Status struct {
				State     string    `json:"state"`
				StartedAt time.Time `json:"startedAt"`
				Metadata  struct {
					Name string `json:"name"`
				} `json:"metadata"`
			} `json:"status"`
		}
		if json.Unmarshal(b, &v) != nil || v.Status.State != "CONTAINER_RUNNING" || v.Status.StartedAt.Year() < 2000 {
			continue
		}
		if slices.Contains(names, v.Status.Metadata.Name) {
			t := v.Status.StartedAt.UTC()
			put(Start{v.Status.Metadata.Name, t, f.Ref().At(0, "/status/startedAt"), "startedAt " + t.Format(time.RFC3339)})
		}
	}
}

// listed reads crictl ps's JSON: the creation of a running container.
func listed(n *bundle.Node, names []string, put func(Start)) {
	f, err := n.Stat("/crictl/ps.json")
	if err != nil {
		return
	}
	b, err := f.Bytes(maxInspectBytes)
	if err != nil {
		return
	}
	var v struct {
		Containers []struct {
			State     string `json:"state"`
			CreatedAt string `json:"createdAt"`
			Metadata  struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"containers"`
	}
	if json.Unmarshal(b, &v) != nil {
		return
	}
	for i, c := range v.Containers {
		ns, err := strconv.ParseInt(c.CreatedAt, 10, 64)
		if err != nil || c.State != "CONTAINER_RUNNING" || !slices.Contains(names, c.Metadata.Name) {
			continue
		}
		t := time.Unix(0, ns).UTC()
		put(Start{c.Metadata.Name, t, f.Ref().At(0, "/containers/"+strconv.Itoa(i)+"/createdAt"), "createdAt " + t.Format(time.RFC3339)})
	}
}
