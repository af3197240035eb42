package sta

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/provenance"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA301", Name: "running-container-differs-from-manifest", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High},
	Kubeadm:    true,
	Doc: analyze.Doc{
		Title: "The running container is not what the manifest on disk says",
		Why: "The kubelet brings a static pod in line with its file within a minute. When it has not, edits have no effect: the kubelet is down, it reads " +
			"another directory, or a second file with the same pod name wins. The next restart or reboot brings up what the file says, tested or not.",
		Fix: "Find out why the kubelet ignores the file: systemctl status kubelet, stray copies in the manifest directory (STA101), staticPodPath. Start or " +
			"repair the kubelet; remove the stray copy. Only then, as a last resort: crictl stopp POD, crictl rmp POD.",
		Links: []string{"https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "settle", Default: 90, Unit: "seconds", Source: "two times fileCheckFrequency (20 s) and the grace period (30 s)"}},
	Needs:  []analyze.Need{staticpod.Manifests, cri.OnNode},
	Wants:  []analyze.Need{provenance.OfNode, host.Units},
	Run:    runsAnother,
})

func runsAnother(p *analyze.Pass) error {
	m, _ := staticpod.Manifests.In(p)
	v, _ := cri.OnNode.In(p)
	times, _ := provenance.OfNode.Try(p, p.Node())
	now, timed := p.AsOf(p.Node())
	settle := time.Duration(p.Param("settle") * float64(time.Second))
	compared, running := false, false
	for _, name := range staticpod.Components() {
		pod, run := m.Component(name), v.Running(name)
		if pod == nil || run == nil || pod.Main() < 0 {
			continue
		}
		running = true
		if !run.Inspected && run.Image == "" {
			continue
		}
		compared = true
		diff := mismatches(pod, run)
		if len(diff) == 0 {
			continue
		}
		changed := pod.File().ModTime
		switch {
		case times.Times != "":
			// The file may be younger than the container in truth, too: only
			// the container's age then says that the kubelet had its time.
			p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, name+" differs from its manifest, but the file's time is that of a copy, so the edit may be seconds old")
			continue
		case !timed || now.Sub(changed) < settle:
			p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, name+" differs from a manifest changed less than "+settle.String()+" before collection")
			continue
		}
		f := analyze.Finding{Subject: name, Severity: report.High}
		kubelet := ""
		if down, at, what := kubeletDown(p); down {
			f.Severity = report.Critical
			kubelet = "; the kubelet is " + what
			f.Evidence = append(f.Evidence, analyze.Context(at, "kubelet.service "+what))
		}
		f.Message = fmt.Sprintf("%s runs since %s with %s, the manifest of %s says %s%s", name, run.Began().Format("2006-01-02 15:04:05Z"),
			diff[0].runs, changed.UTC().Format("2006-01-02 15:04:05Z"), diff[0].says, kubelet)
		if len(diff) > 1 {
			f.Message += fmt.Sprintf(" (and %d more differences)", len(diff)-1)
		}
		ev := []analyze.Evidence{analyze.See(diff[0].ref, diff[0].says), analyze.Expect(run.Where(), diff[0].runs)}
		for _, d := range diff[1:min(len(diff), 6)] {
			ev = append(ev, analyze.Context(d.ref, d.says+" | runs: "+d.runs))
		}
		f.Evidence = append(ev, f.Evidence...)
		p.Report(f)
	}
	switch {
	case !running:
		return p.NotApplicable("no control-plane container of a manifest here is running")
	case !compared:
		p.Unknown(bundle.KindCRI, p.Node(), bundle.NotCollected, "the running containers' commands (crictl inspect)")
	}
	return nil
}

// A mismatch is one thing that the file and the container disagree about.
type mismatch struct {
	says, runs string
	ref        bundle.Ref
}

func mismatches(pod *staticpod.Pod, run *cri.Container) []mismatch {
	var out []mismatch
	c := pod.Spec.Containers[pod.Main()]
	if run.Image != "" && !sameImage(c.Image, run.Image) {
		out = append(out, mismatch{"image " + c.Image, "image " + run.Image, pod.ImageRef()})
	}
	if !run.Inspected {
		return out
	}
	want := append(slices.Clone(c.Command), c.Args...)
	if len(want) > 0 {
		out = append(out, arguments(pod, want, run.Command)...)
	}
	for i, vm := range c.VolumeMounts {
		hostPath := ""
		for _, vol := range pod.Spec.Volumes {
			if vol.Name == vm.Name && vol.HostPath != nil {
				hostPath = path.Clean(vol.HostPath.Path)
			}
		}
		at := slices.IndexFunc(run.Mounts, func(m cri.Mount) bool { return path.Clean(m.Container) == path.Clean(vm.MountPath) })
		if hostPath == "" || len(run.Mounts) == 0 || at >= 0 && path.Clean(run.Mounts[at].Host) == hostPath {
			continue
		}
		runs := "no mount at " + vm.MountPath
		if at >= 0 {
			runs = vm.MountPath + " on " + run.Mounts[at].Host
		}
		out = append(out, mismatch{vm.MountPath + " on " + hostPath, runs, pod.Ref(fmt.Sprintf("/spec/containers/%d/volumeMounts/%d", pod.Main(), i))})
	}
	return out
}

// sameImage compares image names; one of them may carry a digest.
func sameImage(a, b string) bool {
	if a == b {
		return true
	}
	na, da, _ := strings.Cut(a, "@")
	nb, db, _ := strings.Cut(b, "@")
	if da != "" && db != "" {
		return da == db
	}
	return na == nb || (da != "" || db != "") && strings.Split(na, ":")[0] == strings.Split(nb, ":")[0]
}

// arguments compares command lines as sets: the order of flags says nothing,
// repeated ones do.
func arguments(pod *staticpod.Pod, want, have []string) []mismatch {
	var out []mismatch
	place := func(arg string) bundle.Ref {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if f, ok := pod.Flag(name); ok {
			return f.Ref
		}
		return pod.Ref(fmt.Sprintf("/spec/containers/%d/command", pod.Main()))
	}
	flag := func(list []string, arg string) string {
		name, _, _ := strings.Cut(arg, "=")
		for _, a := range list {
			if n, _, _ := strings.Cut(a, "="); n == name {
				return a
			}
		}
		return ""
	}
	rest := slices.Clone(have)
	for _, w := range want {
		if i := slices.Index(rest, w); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
			continue
		}
		runs := "without it"
		if other := flag(rest, w); other != "" {
			runs = other
			rest = slices.Delete(rest, slices.Index(rest, other), slices.Index(rest, other)+1)
		}
		out = append(out, mismatch{w, runs, place(w)})
	}
	for _, r := range rest {
		out = append(out, mismatch{"nothing of " + r, r, place(r)})
	}
	return out
}

// kubeletDown reports whether the kubelet's unit is known not to run.
func kubeletDown(p *analyze.Pass) (bool, bundle.Ref, string) {
	l, err := host.Units.Try(p, p.Node())
	if err != nil {
		return false, bundle.Ref{}, ""
	}
	for i, u := range l.Items {
		if u.Name == "kubelet.service" && u.ActiveState != "" && u.ActiveState != "active" {
			return true, l.Refs[i], u.ActiveState
		}
	}
	return false, bundle.Ref{}, ""
}
