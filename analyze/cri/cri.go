// Package cri holds facts about the container runtime's view of a node: containers, attempts, exits, sandboxes, images.
//
// It reads crictl's own output (ps, pods, inspect, info, images; JSON, and the
// table of ps) as the collector or a person saved it. Where only log
// directories are left, it knows containers and attempts from their names, and
// says so. Process states are those at the time of collection.
package cri

import (
	"cmp"
	"slices"
	"time"

	"coldplane/analyze"
	"coldplane/bundle"
)

// States of a container.
const (
	Running = "running"
	Exited  = "exited"
	Created = "created"
	Unknown = "unknown"
)

// A Container is one container as the runtime knows it.
type Container struct {
	ID        string // full, or its beginning
	Name      string // "etcd"
	Attempt   int    // -1 when not known
	State     string
	Namespace string
	Pod       string
	PodUID    string
	Sandbox   string
	Image     string // as the user named it, "" when only a digest is known
	ImageRef  string

	CreatedAt  time.Time // zero when not known
	StartedAt  time.Time
	FinishedAt time.Time
	ExitCode   *int
	Reason     string // "Error", "OOMKilled", "Completed"
	Message    string
	LogPath    string
	PID        int
	ConfigHash string // io.kubernetes.container.hash

	Inspected bool     // command, environment and mounts are known
	Command   []string // entry point and arguments as they run
	Mounts    []Mount

	Ref        bundle.Ref // of the list, or the log directory
	InspectRef bundle.Ref // zero unless Inspected or exit data came from inspect
}

// Where returns the best place that shows the container: inspect, else the list.
func (c *Container) Where() bundle.Ref {
	if !c.InspectRef.IsZero() {
		return c.InspectRef
	}
	return c.Ref
}

// Began returns when the container started or, if only that is known, was made.
func (c *Container) Began() time.Time {
	if !c.StartedAt.IsZero() {
		return c.StartedAt
	}
	return c.CreatedAt
}

// A Mount is a path of a container that lies on the host.
type Mount struct {
	Container string
	Host      string
	ReadOnly  bool
}

// A Sandbox is one pod sandbox.
type Sandbox struct {
	ID        string
	Ready     bool
	Pod       string
	Namespace string
	PodUID    string
	Attempt   int
	CreatedAt time.Time
	// The kubelet's annotations of a static pod.
	ConfigHash   string
	ConfigSource string
	ConfigSeen   time.Time
	Ref          bundle.Ref
}

// An Image is one image on the node.
type Image struct {
	ID   string
	Tags []string
	Size int64
	Ref  bundle.Ref
}

// A Condition is a condition the runtime reports of itself.
type Condition struct {
	Status  bool
	Reason  string
	Message string
	Ref     bundle.Ref
}

// A View is all the runtime says.
type View struct {
	// Listed says that the list of all containers is there (crictl ps -a), so
	// that one not in it does not exist. Otherwise containers are those that
	// single inspect files or log directories show.
	Listed     bool
	Containers []*Container // sorted by name, newest first
	Sandboxes  []*Sandbox   // sorted by name, newest first; nil when not saved
	Images     []*Image     // nil when not saved
	Conditions map[string]Condition
	Runtime    string // name
	Version    string
	// SystemdCgroup is what the runtime says of its control-group driver, nil
	// when it does not.
	SystemdCgroup *bool
	InfoRef       bundle.Ref
}

// Of returns the containers of a name, newest first.
func (v *View) Of(name string) []*Container {
	var out []*Container
	for _, c := range v.Containers {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// Newest returns the newest container of a name, or nil.
func (v *View) Newest(name string) *Container {
	for _, c := range v.Containers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Running returns the newest running container of a name, or nil.
func (v *View) Running(name string) *Container {
	for _, c := range v.Containers {
		if c.Name == name && c.State == Running {
			return c
		}
	}
	return nil
}

// HasImage reports whether an image of that name is on the node; known is
// false when images were not saved.
func (v *View) HasImage(name string) (has, known bool) {
	if v.Images == nil {
		return false, false
	}
	for _, i := range v.Images {
		if slices.Contains(i.Tags, name) || i.ID == name {
			return true, true
		}
	}
	return false, true
}

// sort orders everything so that the newest comes first.
func (v *View) sort() {
	slices.SortStableFunc(v.Containers, func(a, b *Container) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Attempt, a.Attempt), cmp.Compare(a.ID, b.ID))
	})
	slices.SortStableFunc(v.Sandboxes, func(a, b *Sandbox) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Attempt, a.Attempt))
	})
}

// OnNode is the runtime's view of a node.
var OnNode = &analyze.Fact[*View]{
	Name:  "cri.node",
	Kinds: []bundle.Kind{bundle.KindCRI, bundle.KindLogs},
	Compute: func(c *analyze.Ctx) (*View, error) {
		n := c.Node()
		r := &reader{node: n, view: &View{Conditions: map[string]Condition{}}, at: c.StatedAsOf()}
		r.list()
		for _, f := range append(n.Glob("/crictl/inspect/*.json"), n.Glob("/crictl/inspect-*.json")...) {
			r.inspect(f)
		}
		r.pods()
		r.info()
		r.images()
		r.version()
		if !r.view.Listed {
			r.logDirectories()
		}
		if v := r.view; len(v.Containers) == 0 && !v.Listed && v.Images == nil && v.Sandboxes == nil && len(v.Conditions) == 0 {
			if r.err != nil {
				return nil, r.err
			}
			return nil, analyze.Missing(bundle.KindCRI, n.Name, bundle.NotCollected, "")
		}
		r.view.sort()
		return r.view, nil
	},
}
