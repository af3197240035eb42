package sta

import (
	"fmt"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/report"
)

// An ending is why a container ended, as far as anything tells.
type ending struct {
	class    logs.Class
	words    string // the line that says so
	orderly  bool
	killed   string // who killed it: "memory", "liveness", "signal"; "" if it ended itself
	value    string
	at       time.Time
	evidence []analyze.Evidence
	more     []analyze.Evidence
	count    int    // stops seen
	how      string // by what they were counted
}

// end finds out why a container ended: what the runtime says, the kernel, the
// kubelet's probes, and the last words of its own log.
func (j *judgement) end(c *cri.Container) *ending {
	e := &ending{}
	if j.log != nil {
		if s := j.stream(c); s != nil {
			if d, ok := s.Death(); ok {
				e.fill(d, s)
			} else if l, ok := s.LastError(); ok {
				e.words = l.Message
				e.evidence = append(e.evidence, analyze.Context(s.Ref(l.Number, l.Offset), l.Excerpt))
			}
		}
	}
	code := -1
	if c.ExitCode != nil {
		code = *c.ExitCode
	}
	switch {
	case c.Reason == "OOMKilled" || j.kernelKill(c, e):
		e.killed = "memory"
	case (code == 137 || code == 143) && j.probeKill(c, e):
		e.killed = "liveness"
	case code == 137:
		e.killed = "signal"
	case code == 0:
		e.orderly = true
	}
	if e.killed != "" {
		e.orderly = false
	}
	return e
}

// fill takes over what a log says of the end.
func (e *ending) fill(d logs.Death, s *logs.Stream) {
	e.class, e.words, e.orderly, e.value, e.at = d.Class, d.Line.Message, d.Orderly, d.Value, d.Line.Time
	e.evidence = append(e.evidence, analyze.See(s.Ref(d.Line.Number, d.Line.Offset), d.Line.Excerpt))
}

// stream returns the log of a container: the same pod and attempt, else the
// same attempt.
func (j *judgement) stream(c *cri.Container) *logs.Stream {
	var found *logs.Stream
	for _, s := range j.log.Of(j.by) {
		switch {
		case s.Container != "" && strings.HasPrefix(c.ID, s.Container), s.PodUID != "" && s.PodUID == c.PodUID && s.Attempt == c.Attempt:
			return s
		case s.Attempt == c.Attempt && s.PodUID == "" && s.Container == "" || s.Attempt == -1:
			found = s
		}
	}
	return found
}

// kernelKill looks for a kill of the component by the kernel near its end.
func (j *judgement) kernelKill(c *cri.Container, e *ending) bool {
	if j.log == nil || c.FinishedAt.IsZero() {
		return false
	}
	for _, at := range j.log.Hits(signature.Kernel, "X01", "X02") {
		comm := at.Value("comm")
		if comm != "" && strings.HasPrefix(j.name, comm) && at.Time.Sub(c.FinishedAt).Abs() < 30*time.Second {
			e.evidence = append(e.evidence, analyze.Context(at.Ref(), at.Excerpt()))
			return true
		}
	}
	return false
}

// probeKill looks for a failed liveness probe of the component before its end.
func (j *judgement) probeKill(c *cri.Container, e *ending) bool {
	if j.log == nil {
		return false
	}
	hits := j.log.Hits(signature.Kubelet|signature.Events, "K51")
	for i := len(hits) - 1; i >= 0; i-- {
		at := hits[i]
		text := at.Excerpt()
		if strings.Contains(strings.ToLower(text), "readiness") || at.Value("probeType") == "Readiness" {
			continue
		}
		if n := at.Value("containerName"); n != "" && n != j.name || n == "" && !strings.Contains(text, j.name) {
			continue
		}
		if !c.FinishedAt.IsZero() && !at.Time.IsZero() && (at.Time.After(c.FinishedAt.Add(5*time.Second)) || c.FinishedAt.Sub(at.Time) > 2*time.Minute) {
			continue
		}
		e.evidence = append(e.evidence, analyze.Context(at.Ref(), text))
		return true
	}
	return false
}

// text is the reason as a part of the message.
func (e *ending) text() string {
	var s string
	switch e.killed {
	case "memory":
		return ": killed for lack of memory"
	case "liveness":
		return ": killed by the kubelet after its liveness probe failed (not for lack of memory)"
	case "signal":
		s = ": killed by a signal (exit 137)"
	}
	if e.class != logs.ClassUnknown {
		s += ": " + string(e.class)
	}
	switch {
	case e.value != "" && !strings.Contains(e.words, e.value):
		s += fmt.Sprintf(" (%s): %s", clip(e.value), clip(e.words))
	case e.words != "":
		s += ": " + clip(e.words)
	}
	return s
}

// fix is what to do about the class.
func (e *ending) fix(name string) []report.Step {
	read := report.Step{Text: "Read the last words of the attempt that ended.", Command: "crictl ps -a --name " + name + "; crictl logs $(crictl ps -a --name " + name + " --state exited -q | head -1)"}
	step := func(text string) []report.Step { return []report.Step{read, {Text: text}} }
	switch {
	case e.killed == "memory":
		return step("Find what makes the process grow (large lists, many objects, CAP105) before giving it more memory.")
	case e.killed == "liveness":
		return step("The process was healthy enough to run but did not answer its probe: compare probe path and port with what it listens on (STA207, STA208), and look for a slow disk (QRM106).")
	}
	switch e.class {
	case logs.ClassFlag:
		return step("Correct the flag in the manifest, and in kubeadm-config too, so that the next upgrade does not bring it back.")
	case logs.ClassFile:
		return step("Bring the missing file back, or mount its directory (STA202).")
	case logs.ClassPort:
		return step("Find who holds the port: ss -ltnp.")
	case logs.ClassAddress:
		return step("Give the node its address back, or correct the URLs (NOD113).")
	case logs.ClassDisk:
		return step("Make room on the file system of the data directory, then let the kubelet start it again (NOD101).")
	case logs.ClassData:
		return step("Do not delete anything. Keep a copy of the whole data directory; with quorum elsewhere, replace this member; without, restore a snapshot (DIR105).")
	case logs.ClassBehind:
		return step("This data directory is older than the member: never put back a file copy of one member. Remove the member, empty the directory, join it anew (QRM116).")
	case logs.ClassStore, logs.ClassTLS:
		return step("Check --etcd-servers and the client certificate (STA201, PKI101, PKI202), and whether etcd itself runs.")
	case logs.ClassLease:
		return step("The process ends on purpose when it cannot renew its lease: look at the API server and etcd at that time (QRM105, QRM106, HAV103).")
	}
	return []report.Step{read}
}
