package sta

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA302", Name: "control-plane-container-dead", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Symptom:    true,
	Doc: analyze.Doc{
		Title: "A control-plane container is dead or restarts again and again",
		Why: "The kubelet starts a failing static pod again with a growing delay, up to five minutes. While the container is down its part of the " +
			"control plane is missing on this node. The reason stands in the last lines of the attempt that ended, not in those of the one running now.",
		Fix: "Cure the cause the message names. Read the last attempt first: crictl ps -a --name NAME, then crictl logs ID of the exited container. " +
			"Restarting the container by hand changes nothing while the cause is there.",
		Links: []string{"https://kubernetes.io/docs/tasks/debug/debug-cluster/crictl/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "attempts", Default: 3, Unit: "restarts", Source: "restarts that are no longer one edit or upgrade"},
		{Name: "recent", Default: 15, Unit: "minutes", Source: "three times the kubelet's longest restart delay (5 min, pkg/kubelet/kubelet.go)"},
		{Name: "repeats", Default: 12, Unit: "stops", Source: "orderly stops that are no longer maintenance"},
	},
	Wants: []analyze.Need{cri.OnNode, logs.OnNode},
	Run:   containerDead,
})

func containerDead(p *analyze.Pass) error {
	view, viewErr := cri.OnNode.Try(p, p.Node())
	log, logErr := logs.OnNode.Try(p, p.Node())
	if viewErr != nil && logErr != nil {
		p.UnknownErr(bundle.KindCRI, p.Node(), viewErr)
		return nil
	}
	seen := false
	for _, name := range staticpod.Components() {
		j := judgement{p: p, name: name, by: signature.Named(name), view: view, log: log}
		seen = j.judge() || seen
	}
	if !seen {
		p.Unknown(bundle.KindCRI, p.Node(), bundle.NotCollected, "no container and no log of a control-plane component")
	}
	return nil
}

// A judgement is about one component of one node.
type judgement struct {
	p    *analyze.Pass
	name string
	by   signature.Emitter
	view *cri.View
	log  *logs.Node
}

// judge reports whether there was anything to judge by.
func (j *judgement) judge() bool {
	if j.view != nil {
		if c := j.view.Newest(j.name); c != nil && c.State != cri.Unknown {
			j.fromRuntime(c)
			return true
		}
	}
	return j.fromLog()
}

// down is the severity of a component that does not run.
func (j *judgement) down() report.Severity {
	if j.name == staticpod.Etcd || j.name == staticpod.APIServer {
		return report.Critical
	}
	return report.High
}

// fromRuntime judges by what the runtime says of the containers.
func (j *judgement) fromRuntime(newest *cri.Container) {
	run := j.view.Running(j.name)
	var ended *cri.Container
	for _, c := range j.view.Of(j.name) {
		if c.State == cri.Exited {
			ended = c
			break
		}
	}
	if ended == nil {
		return
	}
	e := j.end(ended)
	many := int(j.p.Param("attempts"))
	now, timed := j.p.AsOf(j.p.Node())
	switch {
	case run == nil && newest == ended:
		if e.orderly && ended.Attempt < int(j.p.Param("repeats")) {
			return // stopped on purpose, by an edit or for maintenance
		}
		j.report(j.down(), report.Certain, fmt.Sprintf("%s is not running: %s%s", j.name, attempt(ended), e.text()), ended, nil, e)
	case run != nil && run.Attempt >= many:
		last := ended.FinishedAt
		if last.IsZero() {
			last = run.Began()
		}
		recent := timed && !last.IsZero() && now.Sub(last) < time.Duration(j.p.Param("recent"))*time.Minute
		young := timed && !run.Began().IsZero() && now.Sub(run.Began()) < 5*time.Minute
		// Restarts in a pod older than a day say nothing of today.
		if !recent && !j.within(run, now, 24*time.Hour) {
			return
		}
		sev := report.Medium
		if recent && young && e.class != logs.ClassLease && !e.orderly {
			sev = report.High
		}
		j.report(sev, report.Certain, fmt.Sprintf("%s runs, after %d restarts; %s%s", j.name, run.Attempt, attempt(ended), e.text()), ended, run, e)
	}
}

// within reports whether the pod of a container began less than d ago.
func (j *judgement) within(c *cri.Container, now time.Time, d time.Duration) bool {
	for _, s := range j.view.Sandboxes {
		if s.ID == c.Sandbox && !s.CreatedAt.IsZero() {
			return now.Sub(s.CreatedAt) < d
		}
	}
	return false
}

func attempt(c *cri.Container) string {
	s := "the last one"
	if c.Attempt >= 0 {
		s = "attempt " + strconv.Itoa(c.Attempt)
	}
	s += " ended"
	if c.ExitCode != nil {
		s += " with code " + strconv.Itoa(*c.ExitCode)
	}
	if !c.FinishedAt.IsZero() {
		s += " at " + c.FinishedAt.Format("2006-01-02 15:04:05Z")
	}
	return s
}

// fromLog judges by the end of the newest log when the runtime says nothing.
func (j *judgement) fromLog() bool {
	if j.log == nil {
		return false
	}
	streams := j.log.Of(j.by)
	if len(streams) == 0 {
		return false
	}
	s := streams[len(streams)-1]
	e := j.stops(s)
	d, ok := s.Death()
	if !ok {
		return true
	}
	e.fill(d, s)
	switch {
	case d.Orderly && e.count >= int(j.p.Param("repeats")):
		j.report(report.High, report.Probable, fmt.Sprintf("%s is stopped from outside again and again (%s), and each time ends in order: %s",
			j.name, e.how, clip(d.Line.Message)), nil, nil, e)
	case d.Orderly:
	case d.Class == logs.ClassLease:
		j.report(report.Medium, report.Probable, fmt.Sprintf("the log of %s ends%s", j.name, e.text()), nil, nil, e)
	default:
		j.report(j.down(), report.Probable, fmt.Sprintf("the log of %s ends%s", j.name, e.text()), nil, nil, e)
	}
	return true
}

// stops counts how often the component was stopped, by the number of its log
// file and by saved events.
func (j *judgement) stops(s *logs.Stream) *ending {
	e := &ending{}
	if s.Attempt > 0 {
		e.count, e.how = s.Attempt, "attempt "+strconv.Itoa(s.Attempt)
	}
	for _, at := range j.log.Hits(signature.Events, "X23", "X24", "K25") {
		text := at.Excerpt()
		if at.Stat.Sig.ID == "X24" && !strings.Contains(text, j.name) {
			continue
		}
		e.more = append(e.more, analyze.Context(at.Ref(), text))
		if n, err := strconv.Atoi(at.Value("times")); err == nil && n > e.count {
			e.count, e.how = n, fmt.Sprintf("%d times over %s", n, at.Value("span"))
		}
	}
	return e
}

func (j *judgement) report(sev report.Severity, conf report.Confidence, msg string, ended, run *cri.Container, e *ending) {
	var ev []analyze.Evidence
	if ended != nil {
		ev = append(ev, analyze.See(ended.Where(), state(ended)))
		if !ended.InspectRef.IsZero() && ended.Ref.Path != ended.InspectRef.Path {
			ev = append(ev, analyze.Context(ended.Ref, state(ended)))
		}
	}
	if run != nil {
		ev = append(ev, analyze.Context(run.Ref, state(run)))
	}
	ev = append(ev, e.evidence...)
	ev = append(ev, e.more...)
	at := e.at
	if ended != nil && !ended.FinishedAt.IsZero() {
		at = ended.FinishedAt
	}
	j.p.Report(analyze.Finding{Subject: j.name, Severity: sev, Confidence: conf, Message: msg, Evidence: ev, Fix: e.fix(j.name), ObservedAt: at})
}

func state(c *cri.Container) string {
	s := fmt.Sprintf("%s attempt %d %s", c.Name, c.Attempt, c.State)
	if c.ExitCode != nil {
		s += fmt.Sprintf(" exitCode %d reason %s", *c.ExitCode, c.Reason)
	}
	return s
}

func clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
