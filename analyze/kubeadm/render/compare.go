package render

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A Flag is a command-line flag of the manifest with its place in it.
type Flag struct {
	Name, Value, Pointer string
}

// A Kind says what part of a pod a Change is about.
type Kind string

// Kinds of changes.
const (
	FlagChange  Kind = "flag"
	MountChange Kind = "mount"
	EnvChange   Kind = "env"
	ImageChange Kind = "image"
	ProbeChange Kind = "probe"
	OtherChange Kind = "field"
)

// A Change is one difference between a manifest and what kubeadm would write.
type Change struct {
	Kind    Kind
	Item    string // "--audit-log-path", "mount /etc/audit", "env GOGC", "livenessProbe", "hostAliases"
	Have    string // in the manifest; "" when it is not there
	Want    string // what kubeadm writes; "" when it writes nothing
	Pointer string // RFC 6901, in the manifest; the nearest place for what is missing
}

// Text says the change in a few words.
func (c Change) Text() string {
	switch {
	case c.Want == "":
		return fmt.Sprintf("%s (%s) goes away", c.Item, short(c.Have))
	case c.Have == "":
		return fmt.Sprintf("%s (%s) comes back", c.Item, short(c.Want))
	}
	return fmt.Sprintf("%s %s becomes %s", c.Item, short(c.Have), short(c.Want))
}

func short(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return s
}

// free are flags whose value kubeadm takes from the moment of the call.
func free(component, flag string) bool {
	return component == etcd && (flag == "initial-cluster" || flag == "initial-cluster-state")
}

// sets are flags whose lists have no order.
func isSet(flag string) bool {
	switch flag {
	case "enable-admission-plugins", "disable-admission-plugins", "feature-gates", "runtime-config", "tls-cipher-suites", "cipher-suites":
		return true
	}
	return false
}

// Compare returns what is different in the manifest have, sorted by kind and
// item. flags are those of have's component container, whose index is given.
// Differences that kubeadm of another modelled minor would make too, in probes
// and ports, are not counted: they are not made by hand.
func Compare(have *corev1.Pod, container int, flags []Flag, want *corev1.Pod, others ...*corev1.Pod) []Change {
	c := &comparison{have: have, want: want, component: want.Name, base: fmt.Sprintf("/spec/containers/%d", container)}
	c.hc, c.wc = &have.Spec.Containers[container], &want.Spec.Containers[0]
	c.flags(flags)
	c.mounts()
	c.env()
	c.image()
	c.probes(others)
	c.rest(container)
	slices.SortStableFunc(c.out, func(a, b Change) int {
		order := func(k Kind) int {
			return slices.Index([]Kind{FlagChange, MountChange, EnvChange, ImageChange, ProbeChange, OtherChange}, k)
		}
		if d := order(a.Kind) - order(b.Kind); d != 0 {
			return d
		}
		return strings.Compare(a.Item, b.Item)
	})
	return c.out
}

type comparison struct {
	have, want *corev1.Pod
	hc, wc     *corev1.Container
	component  string
	base       string // pointer of the container
	out        []Change
}

func (c *comparison) add(k Kind, item, have, want, pointer string) {
	c.out = append(c.out, Change{k, item, have, want, pointer})
}

func (c *comparison) flags(have []Flag) {
	values := func(fs []Flag) (map[string][]string, map[string]string, []string) {
		by, at := map[string][]string{}, map[string]string{}
		var names []string
		for _, f := range fs {
			if _, ok := by[f.Name]; !ok {
				names = append(names, f.Name)
			}
			by[f.Name] = append(by[f.Name], f.Value)
			at[f.Name] = f.Pointer
		}
		return by, at, names
	}
	var wf []Flag
	for _, w := range c.wc.Command[1:] {
		n, v, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
		wf = append(wf, Flag{Name: n, Value: v})
	}
	h, at, names := values(have)
	w, _, wnames := values(wf)
	for _, n := range names {
		if free(c.component, n) {
			continue
		}
		if wv, ok := w[n]; !ok || !sameValues(n, h[n], wv) {
			c.add(FlagChange, "--"+n, strings.Join(h[n], " "), strings.Join(wv, " "), at[n])
		}
	}
	for _, n := range wnames {
		if _, ok := h[n]; !ok && !free(c.component, n) {
			c.add(FlagChange, "--"+n, "", strings.Join(w[n], " "), c.base+"/command")
		}
	}
}

func sameValues(flag string, a, b []string) bool {
	if isSet(flag) && len(a) == 1 && len(b) == 1 {
		x, y := strings.Split(a[0], ","), strings.Split(b[0], ",")
		slices.Sort(x)
		slices.Sort(y)
		return slices.Equal(x, y)
	}
	return slices.Equal(a, b)
}

// mounts compares what each path of the container is on the host.
func (c *comparison) mounts() {
	type m struct {
		host, pointer string
		ro            bool
	}
	read := func(p *corev1.Pod, ct *corev1.Container, base string) map[string]m {
		vols := map[string]corev1.Volume{}
		for _, v := range p.Spec.Volumes {
			vols[v.Name] = v
		}
		out := map[string]m{}
		for i, x := range ct.VolumeMounts {
			host := "(not a hostPath)"
			if v, ok := vols[x.Name]; ok && v.HostPath != nil {
				host = path.Clean(v.HostPath.Path)
			}
			out[path.Clean(x.MountPath)] = m{host, fmt.Sprintf("%s/volumeMounts/%d", base, i), x.ReadOnly}
		}
		return out
	}
	h, w := read(c.have, c.hc, c.base), read(c.want, c.wc, "")
	text := func(x m) string {
		if x.ro {
			return x.host + " read-only"
		}
		return x.host
	}
	for p, x := range h {
		y, ok := w[p]
		switch {
		case !ok && x.host == p && (slices.Contains(CertVolumes(), p) || strings.Contains(p, "/volume/exec")):
		case !ok:
			c.add(MountChange, "mount "+p, text(x), "", x.pointer)
		case x.host != y.host || x.ro != y.ro:
			c.add(MountChange, "mount "+p, text(x), text(y), x.pointer)
		}
	}
	for p, y := range w {
		if _, ok := h[p]; !ok && !strings.Contains(p, "/volume/exec") {
			c.add(MountChange, "mount "+p, "", text(y), c.base+"/volumeMounts")
		}
	}
}

func (c *comparison) env() {
	text := func(e corev1.EnvVar) string {
		if e.ValueFrom != nil {
			return "(from another object)"
		}
		return e.Value
	}
	w := map[string]corev1.EnvVar{}
	for _, e := range c.wc.Env {
		w[e.Name] = e
	}
	seen := map[string]bool{}
	for i, e := range c.hc.Env {
		seen[e.Name] = true
		if strings.HasSuffix(strings.ToLower(e.Name), "_proxy") {
			continue // kubeadm copies them from its own environment
		}
		x, ok := w[e.Name]
		switch {
		case !ok:
			c.add(EnvChange, "env "+e.Name, text(e), "", fmt.Sprintf("%s/env/%d", c.base, i))
		case !reflect.DeepEqual(e, x):
			c.add(EnvChange, "env "+e.Name, text(e), text(x), fmt.Sprintf("%s/env/%d", c.base, i))
		}
	}
	for _, e := range c.wc.Env {
		if !seen[e.Name] {
			c.add(EnvChange, "env "+e.Name, "", text(e), c.base+"/env")
		}
	}
}

// image compares repositories; tags are what an upgrade is for.
func (c *comparison) image() {
	h, w := repository(c.hc.Image), repository(c.wc.Image)
	// k8s.gcr.io became registry.k8s.io in 1.25: kubeadm rewrites it itself.
	if h != w && !(strings.HasPrefix(h, "k8s.gcr.io/") && strings.HasPrefix(w, "registry.k8s.io/")) {
		c.add(ImageChange, "image", h, w, c.base+"/image")
	}
	if strings.Contains(c.hc.Image, "@") {
		c.add(ImageChange, "image digest", c.hc.Image, w, c.base+"/image")
	}
}

func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i]
	}
	return image
}

func (c *comparison) probes(others []*corev1.Pod) {
	for _, x := range []struct {
		name string
		of   func(*corev1.Container) *corev1.Probe
	}{
		{"livenessProbe", func(c *corev1.Container) *corev1.Probe { return c.LivenessProbe }},
		{"readinessProbe", func(c *corev1.Container) *corev1.Probe { return c.ReadinessProbe }},
		{"startupProbe", func(c *corev1.Container) *corev1.Probe { return c.StartupProbe }},
	} {
		have := x.of(c.hc)
		if sameProbe(have, x.of(c.wc)) || slices.ContainsFunc(others, func(p *corev1.Pod) bool { return sameProbe(have, x.of(&p.Spec.Containers[0])) }) {
			continue
		}
		ptr := c.base
		if have != nil {
			ptr += "/" + x.name
		}
		c.add(ProbeChange, x.name, probeText(have), probeText(x.of(c.wc)), ptr)
	}
}

func sameProbe(a, b *corev1.Probe) bool { return reflect.DeepEqual(a, b) }

func probeText(p *corev1.Probe) string {
	switch {
	case p == nil:
		return ""
	case p.HTTPGet == nil:
		return "a probe that is not HTTP"
	}
	g := p.HTTPGet
	return fmt.Sprintf("%s://%s:%s%s timeout %d s, %d failures, every %d s", strings.ToLower(string(g.Scheme)), g.Host, g.Port.String(), g.Path, p.TimeoutSeconds, p.FailureThreshold, p.PeriodSeconds)
}

// rest compares every other field of the pod.
func (c *comparison) rest(container int) {
	spec := func(s corev1.PodSpec) map[string]any {
		s.Containers, s.Volumes = nil, nil
		s.Priority = nil // added in 1.25, implied by the class
		return toMap(s)
	}
	c.fields("/spec", spec(c.have.Spec), spec(c.want.Spec))
	ct := func(x corev1.Container) map[string]any {
		x.Command, x.Args, x.VolumeMounts, x.Env, x.Image, x.Name = nil, nil, nil, nil, "", ""
		x.LivenessProbe, x.ReadinessProbe, x.StartupProbe, x.Ports = nil, nil, nil, nil
		return toMap(x)
	}
	c.fields(c.base, ct(*c.hc), ct(*c.wc))
	for i, x := range c.have.Spec.Containers {
		if i != container {
			c.add(OtherChange, "container "+x.Name, x.Image, "", fmt.Sprintf("/spec/containers/%d", i))
		}
	}
	meta := func(m map[string]string) map[string]any {
		out := map[string]any{}
		for k, v := range m {
			if !strings.HasPrefix(k, "kubeadm.kubernetes.io/") { // STA210 asks about those
				out[k] = v
			}
		}
		return out
	}
	c.fields("/metadata/annotations", meta(c.have.Annotations), meta(c.want.Annotations))
	c.fields("/metadata/labels", meta(c.have.Labels), meta(c.want.Labels))
}

func (c *comparison) fields(base string, h, w map[string]any) {
	prefix := ""
	if i := strings.LastIndexByte(base, '/'); strings.HasPrefix(base, "/metadata") {
		prefix = strings.TrimSuffix(base[i+1:], "s") + " "
	}
	esc := strings.NewReplacer("~", "~0", "/", "~1")
	for k, v := range h {
		x, ok := w[k]
		if ok && reflect.DeepEqual(v, x) {
			continue
		}
		want := ""
		if ok {
			want = jsonText(x)
		}
		c.add(OtherChange, prefix+k, jsonText(v), want, base+"/"+esc.Replace(k))
	}
	for k, v := range w {
		if _, ok := h[k]; !ok {
			c.add(OtherChange, prefix+k, "", jsonText(v), strings.TrimSuffix(base, "/annotations"))
		}
	}
}

func toMap(v any) map[string]any {
	out := map[string]any{}
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil
	}
	for k, v := range out { // fields without omitempty
		if v == nil || reflect.DeepEqual(v, map[string]any{}) || v == "" {
			delete(out, k)
		}
	}
	return out
}

func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
