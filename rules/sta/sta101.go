package sta

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA101", Name: "stray-file-in-static-pod-directory", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "The static-pod directory holds a file that does not belong there",
		Why: "The kubelet reads every file of the directory whose name does not begin with a dot, whatever its extension, so a backup copy made " +
			"beside a manifest is a second pod of the same name. Its store has one place per namespace and name: at each reading the last file " +
			"by name wins, and a file event can flip it in between, so edits of the real manifest seem to be ignored. Files that are no Pod are an " +
			"error in the kubelet's log every 20 seconds.",
		Fix: "Move the stray file out of the directory (renaming it inside changes nothing), one node at a time, and wait 20 s. When it shared its name " +
			"with a real pod, that pod may stop until the kubelet lists the directory again.",
		Links: []string{
			"https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/",
			"https://github.com/kubernetes/kubernetes/issues/129364",
			"https://github.com/kubernetes/kubeadm/issues/2718",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{cri.OnNode},
	Run:   strayFile,
})

// backupName matches names that editors, packages and people give to copies.
var backupName = regexp.MustCompile(`(?i)([.-](bak|backup|orig|old|save|saved|rpmnew|rpmsave|rpmorig|dpkg-dist|dpkg-old|dpkg-new|tmp|disabled)[0-9]*|\.ya?ml[._-].+|~)$`)

func strayFile(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	byPod := map[string][]*staticpod.Entry{}
	var keys []string
	for _, e := range d.Entries {
		switch {
		case e.Ignored == "hidden":
		case e.Ignored != "":
			ignoredEntry(p, d, e)
		case e.Pod != nil:
			k := e.Pod.Namespace + "/" + e.Pod.Name
			if byPod[k] == nil {
				keys = append(keys, k)
			}
			byPod[k] = append(byPod[k], e)
		case isComponentFile(d, e):
			// STA102 speaks about the components' own manifests.
		default:
			junk(p, d, e)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		duplicates(p, d, k, byPod[k])
	}
	return nil
}

func isComponentFile(d *staticpod.Dir, e *staticpod.Entry) bool {
	for _, c := range staticpod.Components() {
		if d.Broken(c) == e {
			return true
		}
	}
	return false
}

// duplicates judges the files that give one pod; a single one is judged by its name.
func duplicates(p *analyze.Pass, d *staticpod.Dir, key string, es []*staticpod.Entry) {
	canon := canonical(es)
	last := es[len(es)-1]
	for _, e := range es {
		name := e.File.Name()
		if e == canon {
			if len(es) == 1 && backupName.MatchString(name) {
				p.Report(analyze.Finding{
					Subject: "static pod file " + name, Severity: report.Medium,
					Message:  fmt.Sprintf("%s is named like a backup copy, and the kubelet runs it as pod %s", name, key),
					Evidence: []analyze.Evidence{analyze.See(e.Pod.Ref("/metadata/name"), "name: "+e.Pod.Name)},
					Fix:      moveOut(d, e, "If the pod is wanted, give the file a plain name; otherwise move it out, and the pod stops.", ""),
				})
			}
			continue
		}
		sev, runs := report.High, ""
		evidence := []analyze.Evidence{
			analyze.See(e.Pod.Ref("/metadata/name"), "name: "+e.Pod.Name),
			analyze.Expect(canon.Pod.Ref("/metadata/name"), "name: "+canon.Pod.Name),
		}
		if c := runningFrom(p, e.Pod, canon.Pod); c != nil {
			sev, runs = report.Critical, fmt.Sprintf(" The running container has the command of %s, not that of %s.", name, canon.File.Name())
			evidence = append(evidence, analyze.Context(c.Where(), "running: "+strings.Join(c.Command, " ")))
		}
		differ := difference(e.Pod, canon.Pod)
		if at, what := firstDifference(e.Pod, canon.Pod); !at.IsZero() {
			evidence = append(evidence, analyze.Context(at, what))
		}
		p.Report(analyze.Finding{
			Subject: "static pod file " + name, Severity: sev,
			Message: fmt.Sprintf("%s and %s both give the pod %s (%s); the kubelet keeps one of them, and %s is the last by name.%s",
				name, canon.File.Name(), key, differ, last.File.Name(), runs),
			Evidence: evidence,
			Fix: moveOut(d, e, fmt.Sprintf("Decide which of the two is right: compare %s with %s.", name, canon.File.Name()),
				fmt.Sprintf("diff %s %s", recipe.Quote(canon.File.Origin), recipe.Quote(e.File.Origin))),
		})
	}
}

// canonical picks the file that should give the pod: the one named after it,
// else one that is not named like a copy, else the first.
func canonical(es []*staticpod.Entry) *staticpod.Entry {
	for _, e := range es {
		if b := e.File.Name(); b == e.Pod.Name+".yaml" || b == e.Pod.Name+".yml" || b == e.Pod.Name+".json" {
			return e
		}
	}
	for _, e := range es {
		if !backupName.MatchString(e.File.Name()) {
			return e
		}
	}
	return es[0]
}

// runningFrom returns the running container when it has the command of the
// stray manifest and not that of the canonical one.
func runningFrom(p *analyze.Pass, stray, canon *staticpod.Pod) *cri.Container {
	v, err := cri.OnNode.Try(p, p.Node())
	if err != nil {
		return nil
	}
	c := v.Running(stray.Spec.Containers[stray.Main()].Name)
	if c == nil || !c.Inspected {
		return nil
	}
	words := func(pod *staticpod.Pod) []string {
		s := pod.Spec.Containers[pod.Main()]
		return slices.Concat(s.Command, s.Args)
	}
	if slices.Equal(c.Command, words(stray)) && !slices.Equal(words(stray), words(canon)) {
		return c
	}
	return nil
}

const shown = 4 // differences named in a message

// difference names what differs between two pods.
func difference(a, b *staticpod.Pod) string {
	var out []string
	ca, cb := a.Spec.Containers[a.Main()], b.Spec.Containers[b.Main()]
	if ca.Image != cb.Image {
		out = append(out, "image")
	}
	out = append(out, differingFlags(a, b)...)
	switch {
	case len(out) == 0 && slices.Equal(ca.Command, cb.Command) && slices.Equal(ca.Args, cb.Args):
		return "same image and command"
	case len(out) == 0:
		return "different commands"
	case len(out) > shown:
		out = append(out[:shown], fmt.Sprintf("and %d more", len(out)-shown))
	}
	return "they differ in " + strings.Join(out, ", ")
}

func differingFlags(a, b *staticpod.Pod) []string {
	values := func(p *staticpod.Pod) map[string]string {
		m := map[string]string{}
		for _, f := range p.Flags {
			if f.Container == p.Main() {
				m["--"+f.Name] += "\x00" + f.Text()
			}
		}
		return m
	}
	va, vb := values(a), values(b)
	var out []string
	for k, v := range va {
		if vb[k] != v {
			out = append(out, k)
		}
	}
	for k := range vb {
		if _, ok := va[k]; !ok {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// firstDifference points at the first flag of a that b has not or has otherwise.
func firstDifference(a, b *staticpod.Pod) (bundle.Ref, string) {
	for _, f := range a.Flags {
		if g, ok := b.Flag(f.Name); f.Container == a.Main() && (!ok || g.Text() != f.Text()) {
			return f.Ref, f.Text()
		}
	}
	return bundle.Ref{}, ""
}

func ignoredEntry(p *analyze.Pass, d *staticpod.Dir, e *staticpod.Entry) {
	what := "is a directory; the kubelet does not read what is in it"
	if e.Ignored != "directory" {
		what = "is neither a file nor a directory; the kubelet complains about it and reads nothing from it"
	}
	p.Report(analyze.Finding{
		Subject: "static pod directory entry " + e.File.Name(), Severity: report.Low,
		Message:  fmt.Sprintf("%s in %s %s", e.File.Name(), d.Path, what),
		Evidence: []analyze.Evidence{analyze.See(e.File.Ref(), e.Ignored)},
		Fix:      moveOut(d, e, "Look whether something in it is meant to run.", ""),
	})
}

// junk is a file that gives no Pod and is none of the components' manifests.
func junk(p *analyze.Pass, d *staticpod.Dir, e *staticpod.Entry) {
	var m *bundle.MissingError
	reason := bundle.ReasonOf(e.Err)
	if reason != bundle.Damaged && reason != bundle.TooLarge {
		p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
		return
	}
	name := e.File.Name()
	what := "is not a Pod manifest"
	ref := e.File.Ref()
	if asMissing(e.Err, &m) {
		what += ": " + m.Detail
		if !m.Ref.IsZero() {
			ref = m.Ref
		}
	}
	excerpt := name
	if e.Kind != "" {
		excerpt = e.Kind
	}
	evidence := []analyze.Evidence{analyze.See(ref, excerpt)}
	first := "Move it out; nothing that runs depends on it."
	for _, pod := range d.Pods() {
		for _, f := range pod.Flags {
			if mnt := pod.Resolve(f.Container, f.Value); strings.HasPrefix(f.Value, "/") && mnt.Kind == staticpod.Host && mnt.HostPath == e.File.Origin {
				evidence = append(evidence, analyze.Context(f.Ref, f.Text()))
				first = fmt.Sprintf("%s reads it through %s: put a copy elsewhere (for example under /etc/kubernetes), mount that, and change the flag before the file is moved.", pod.Name, "--"+f.Name)
			}
		}
	}
	p.Report(analyze.Finding{
		Subject: "static pod file " + name, Severity: report.Medium,
		Message:  fmt.Sprintf("%s %s; the kubelet tries to read it as one at every look at %s and logs an error", name, what, d.Path),
		Evidence: evidence,
		Fix:      moveOut(d, e, first, ""),
	})
}

// moveOut gives the steps to take a file out of the directory.
func moveOut(d *staticpod.Dir, e *staticpod.Entry, first, command string) []report.Step {
	src := path.Join(d.Path, e.File.Name())
	dst := "/root/" + path.Base(d.Path) + "-removed"
	steps := []report.Step{
		{Text: first, Command: command},
		{Text: "Move it out of the directory; a new name inside it would not help.", Command: fmt.Sprintf("mkdir -p %s && mv -n %s %s/", recipe.Quote(dst), recipe.Quote(src), recipe.Quote(dst))},
	}
	if e.Pod == nil {
		return steps
	}
	c := e.Pod.Spec.Containers[e.Pod.Main()].Name
	steps[1].Text += " The pod of that name may stop for up to 20 s, until the kubelet lists the directory again: one node at a time."
	return append(steps, report.Step{Text: "Wait, then look for one container with the command of the manifest that stays.",
		Command: "sleep 30; crictl ps --name " + recipe.Quote("^"+regexp.QuoteMeta(c)+"$")})
}
