package cri

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"coldplane/bundle"
)

const maxFile = 32 << 20 // bytes of one saved crictl output

// reader fills a View from the files of one node.
type reader struct {
	node *bundle.Node
	view *View
	at   time.Time // when the files were saved, zero if not known
	err  error     // the first damaged file
}

func (r *reader) load(p string, v any) (*bundle.File, bool) {
	f, err := r.node.Stat(p)
	if err != nil {
		return nil, false
	}
	return f, r.decode(f, v)
}

func (r *reader) decode(f *bundle.File, v any) bool {
	b, err := f.Bytes(maxFile)
	if err == nil {
		if jerr := json.Unmarshal(b, v); jerr != nil {
			err = &bundle.MissingError{Evidence: f.Origin, Reason: bundle.Damaged, Detail: jerr.Error(), Ref: f.Ref()}
		}
	}
	if err != nil && r.err == nil {
		r.err = err
	}
	return err == nil
}

// number reads what crictl writes as a number or as a string.
type number int64

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		v = 0
	}
	*n = number(v)
	return nil
}

// instant reads nanoseconds since 1970 or RFC 3339; zero times stay zero.
type instant struct{ time.Time }

func (t *instant) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if ns, err := strconv.ParseInt(s, 10, 64); err == nil {
		if ns > 0 {
			t.Time = time.Unix(0, ns).UTC()
		}
		return nil
	}
	if v, err := time.Parse(time.RFC3339Nano, s); err == nil && v.Year() > 1971 {
		t.Time = v.UTC()
	}
	return nil
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
	Attempt   *int   `json:"attempt"`
}

func (m metadata) attempt() int {
	if m.Attempt == nil {
		return 0 // protobuf JSON leaves a zero out
	}
	return *m.Attempt
}

type imageSpec struct {
	Image              string `json:"image"`
	UserSpecifiedImage string `json:"userSpecifiedImage"`
}

// name returns the image's name if it is one and no digest.
func (i imageSpec) name() string {
	for _, s := range []string{i.UserSpecifiedImage, i.Image} {
		if s != "" && !strings.HasPrefix(s, "sha256:") {
			return s
		}
	}
	return ""
}

func state(s string) string {
	switch strings.ToUpper(strings.TrimPrefix(s, "CONTAINER_")) {
	case "RUNNING":
		return Running
	case "EXITED":
		return Exited
	case "CREATED":
		return Created
	}
	return Unknown
}

// list reads crictl ps -a, as JSON or as its table.
func (r *reader) list() {
	var ps struct {
		Containers []struct {
			ID           string            `json:"id"`
			PodSandboxID string            `json:"podSandboxId"`
			Metadata     metadata          `json:"metadata"`
			Image        imageSpec         `json:"image"`
			ImageRef     string            `json:"imageRef"`
			State        string            `json:"state"`
			CreatedAt    instant           `json:"createdAt"`
			Labels       map[string]string `json:"labels"`
			Annotations  map[string]string `json:"annotations"`
		} `json:"containers"`
	}
	f, ok := r.load("/crictl/ps.json", &ps)
	if !ok {
		r.table()
		return
	}
	r.view.Listed = true
	for i, c := range ps.Containers {
		r.view.Containers = append(r.view.Containers, &Container{
			ID: c.ID, Name: c.Metadata.Name, Attempt: c.Metadata.attempt(), State: state(c.State), Sandbox: c.PodSandboxID,
			Namespace: c.Labels["io.kubernetes.pod.namespace"], Pod: c.Labels["io.kubernetes.pod.name"], PodUID: c.Labels["io.kubernetes.pod.uid"],
			Image: c.Image.name(), ImageRef: c.ImageRef, CreatedAt: c.CreatedAt.Time, ConfigHash: c.Annotations["io.kubernetes.container.hash"],
			Ref: f.Ref().At(0, fmt.Sprintf("/containers/%d", i)),
		})
	}
}

var columns = []string{"CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD", "NAMESPACE"}

// table reads the table crictl ps -a prints.
func (r *reader) table() {
	f, err := r.node.Stat("/crictl/ps.txt")
	if err != nil {
		return
	}
	b, err := f.Bytes(maxFile)
	if err != nil {
		return
	}
	var at map[string][2]int
	for i, line := range strings.Split(string(b), "\n") {
		if at == nil {
			if strings.HasPrefix(line, "CONTAINER") && strings.Contains(line, "ATTEMPT") {
				at = layout(line)
				r.view.Listed = true
			}
			continue
		}
		cell := func(name string) string {
			c, ok := at[name]
			if !ok || c[0] >= len(line) {
				return ""
			}
			return strings.TrimSpace(line[c[0]:min(c[1], len(line))])
		}
		if cell("NAME") == "" {
			continue
		}
		c := &Container{ID: cell("CONTAINER"), Name: cell("NAME"), State: state(cell("STATE")), Attempt: -1, Sandbox: cell("POD ID"),
			Pod: cell("POD"), Namespace: cell("NAMESPACE"), ImageRef: cell("IMAGE"), Ref: f.Line(i + 1)}
		if n, err := strconv.Atoi(cell("ATTEMPT")); err == nil {
			c.Attempt = n
		}
		if d, ok := ago(cell("CREATED")); ok && !r.at.IsZero() {
			c.CreatedAt = r.at.Add(-d)
		}
		r.view.Containers = append(r.view.Containers, c)
	}
}

// layout finds where each column begins and ends.
func layout(head string) map[string][2]int {
	at := map[string][2]int{}
	last := ""
	for pos := 0; pos < len(head); {
		name := ""
		for _, c := range columns {
			if strings.HasPrefix(head[pos:], c) && len(c) > len(name) {
				name = c
			}
		}
		if name == "" {
			pos++
			continue
		}
		if last != "" {
			at[last] = [2]int{at[last][0], pos}
		}
		at[name] = [2]int{pos, 1 << 20}
		last = name
		pos += len(name)
	}
	return at
}

var agoRE = regexp.MustCompile(`^(?:(\d+)|About an?|Less than a) (second|minute|hour|day|week|month|year)s? ago$`)

// ago reads "3 minutes ago", "About an hour ago".
func ago(s string) (time.Duration, bool) {
	m := agoRE.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n := 1
	if m[1] != "" {
		n, _ = strconv.Atoi(m[1])
	}
	unit := map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
		"week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour, "year": 365 * 24 * time.Hour}[m[2]]
	if n > 200 && m[2] == "year" { // a creation time of zero
		return 0, false
	}
	return time.Duration(n) * unit, true
}

// inspect reads crictl inspect of one container.
func (r *reader) inspect(f *bundle.File) {
	var in struct {
		Status struct {
			ID          string            `json:"id"`
			Metadata    metadata          `json:"metadata"`
			State       string            `json:"state"`
			CreatedAt   instant           `json:"createdAt"`
			StartedAt   instant           `json:"startedAt"`
			FinishedAt  instant           `json:"finishedAt"`
			ExitCode    *int              `json:"exitCode"`
			Image       imageSpec         `json:"image"`
			ImageRef    string            `json:"imageRef"`
			Reason      string            `json:"reason"`
			Message     string            `json:"message"`
			LogPath     string            `json:"logPath"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
			Mounts      []struct {
				ContainerPath string `json:"containerPath"`
				HostPath      string `json:"hostPath"`
				ReadOnly      bool   `json:"readonly"`
			} `json:"mounts"`
		} `json:"status"`
		Info struct {
			PID       int    `json:"pid"`
			SandboxID string `json:"sandboxID"`
			Config    *struct {
				Command []string `json:"command"`
				Args    []string `json:"args"`
			} `json:"config"`
			RuntimeSpec struct {
				Process struct {
					Args []string `json:"args"`
				} `json:"process"`
			} `json:"runtimeSpec"`
		} `json:"info"`
	}
	if !r.decode(f, &in) || in.Status.Metadata.Name == "" && in.Status.ID == "" {
		return
	}
	st := in.Status
	var c *Container
	for _, k := range r.view.Containers {
		if k.ID == st.ID || len(k.ID) >= 8 && strings.HasPrefix(st.ID, k.ID) {
			c = k
		}
	}
	if c == nil {
		c = &Container{Ref: f.Ref()}
		r.view.Containers = append(r.view.Containers, c)
	}
	c.ID, c.Name, c.Attempt, c.InspectRef = st.ID, st.Metadata.Name, st.Metadata.attempt(), f.Ref()
	if st.State != "" {
		c.State = state(st.State)
	}
	fill := func(dst *string, v string) {
		if v != "" {
			*dst = v
		}
	}
	fill(&c.Namespace, st.Labels["io.kubernetes.pod.namespace"])
	fill(&c.Pod, st.Labels["io.kubernetes.pod.name"])
	fill(&c.PodUID, st.Labels["io.kubernetes.pod.uid"])
	fill(&c.Image, st.Image.name())
	fill(&c.ImageRef, st.ImageRef)
	fill(&c.Sandbox, in.Info.SandboxID)
	fill(&c.ConfigHash, st.Annotations["io.kubernetes.container.hash"])
	c.Reason, c.Message, c.LogPath, c.PID = st.Reason, st.Message, st.LogPath, in.Info.PID
	if !st.CreatedAt.IsZero() {
		c.CreatedAt = st.CreatedAt.Time
	}
	c.StartedAt, c.FinishedAt = st.StartedAt.Time, st.FinishedAt.Time
	if c.CreatedAt.IsZero() {
		c.CreatedAt = c.StartedAt
	}
	if c.State == Exited {
		c.ExitCode = st.ExitCode
		if c.ExitCode == nil {
			c.ExitCode = new(int) // protobuf JSON leaves a zero out
		}
	}
	if in.Info.Config != nil {
		c.Command = append(append([]string{}, in.Info.Config.Command...), in.Info.Config.Args...)
		c.Inspected = len(c.Command) > 0
	}
	if !c.Inspected && len(in.Info.RuntimeSpec.Process.Args) > 0 {
		c.Command, c.Inspected = in.Info.RuntimeSpec.Process.Args, true
	}
	for _, m := range st.Mounts {
		c.Mounts = append(c.Mounts, Mount{m.ContainerPath, m.HostPath, m.ReadOnly})
	}
}

// logDirectories takes containers from the names of log files: one for the
// newest attempt of every pod.
func (r *reader) logDirectories() {
	known := map[string]bool{}
	for _, c := range r.view.Containers {
		known[c.Name] = true
	}
	newest := map[string]*Container{}
	for _, f := range r.node.Glob("/var/log/pods/*/*/*.log") {
		dir := path.Dir(f.Origin)
		n, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".log"))
		pod := strings.SplitN(path.Base(path.Dir(dir)), "_", 3)
		if err != nil || len(pod) != 3 || known[path.Base(dir)] {
			continue
		}
		if old := newest[dir]; old == nil || n > old.Attempt {
			newest[dir] = &Container{Name: path.Base(dir), Attempt: n, State: Unknown, Namespace: pod[0], Pod: pod[1], PodUID: pod[2],
				LogPath: f.Origin, Ref: f.Ref()}
		}
	}
	for _, f := range r.node.Glob("/var/log/pods/*/*/*.log") {
		if c := newest[path.Dir(f.Origin)]; c != nil {
			r.view.Containers = append(r.view.Containers, c)
			delete(newest, path.Dir(f.Origin))
		}
	}
}
