package qrm

import (
	"fmt"
	"strconv"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM113", Name: "etcd-raft-timing-inconsistent", Scope: analyze.PerCluster, Latent: true,
	Severities: []report.Severity{report.Medium},
	Doc: analyze.Doc{
		Title: "Raft timing or per-member settings of etcd differ or do not fit together",
		Why: "Heartbeat interval and election timeout must be the same on every member, and the election timeout several heartbeats long: a member with a shorter one calls elections the others see no reason for. " +
			"A very large snapshot count keeps that many entries in memory and makes every restart slow.",
		Fix:   "Write the same --heartbeat-interval and --election-timeout on every member (absent means 100 and 1000 ms), the election timeout at least five, better ten times the heartbeat and at most 50000 ms.",
		Links: []string{"https://etcd.io/docs/v3.6/tuning/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "ratio", Default: 5, Unit: "ratio", Source: "etcd refuses to start below five heartbeats per election timeout"},
		{Name: "snapshots", Default: 100000, Unit: "entries", Source: "default of etcd up to 3.5; kubeadm writes 10000"},
	},
	Wants: []analyze.Need{staticpod.Manifests},
	Run:   raftTiming,
})

// timing is one member's settings, in milliseconds.
type timing struct {
	node      *bundle.Node
	heartbeat int64
	election  int64
	ref       bundle.Ref
	text      string
}

func raftTiming(p *analyze.Pass) error {
	var all []timing
	for _, n := range p.Nodes() {
		m, err := staticpod.Manifests.Try(p, n)
		if err != nil || m.Component(staticpod.Etcd) == nil {
			continue
		}
		pod := m.Component(staticpod.Etcd)
		t := timing{node: n, heartbeat: 100, election: 1000, ref: pod.ImageRef(), text: "defaults: heartbeat 100 ms, election 1000 ms"}
		read := func(name string, into *int64) {
			f, ok := pod.Setting(name)
			if !ok {
				return
			}
			if v, err := millis(f.Value); err == nil {
				*into, t.ref, t.text = v, f.Ref, f.Text()
			}
		}
		read("heartbeat-interval", &t.heartbeat)
		read("election-timeout", &t.election)
		all = append(all, t)
		if float64(t.election) < p.Param("ratio")*float64(t.heartbeat) || t.election > 50000 {
			p.Report(analyze.Finding{Node: n, Subject: "raft timing of " + nodeName(n), Severity: report.Medium, Evidence: []analyze.Evidence{analyze.See(t.ref, t.text)},
				Message: fmt.Sprintf("election timeout %d ms with heartbeats every %d ms: at least %g heartbeats and at most 50000 ms are allowed", t.election, t.heartbeat, p.Param("ratio"))})
		}
		if f, ok := pod.Setting("snapshot-count"); ok {
			if v, err := strconv.ParseInt(f.Value, 10, 64); err == nil && float64(v) > p.Param("snapshots") {
				p.Report(analyze.Finding{Node: n, Subject: "snapshot count of " + nodeName(n), Severity: report.Medium, Evidence: []analyze.Evidence{analyze.See(f.Ref, f.Text())},
					Message: fmt.Sprintf("a snapshot every %d entries: that many entries stay in memory and are replayed at every start", v)})
			}
		}
	}
	if len(all) == 0 {
		p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "no etcd manifest")
		return nil
	}
	for _, t := range all[1:] {
		if t.heartbeat != all[0].heartbeat || t.election != all[0].election {
			p.Report(analyze.Finding{Subject: "raft timing", Severity: report.Medium,
				Message: fmt.Sprintf("%s runs with heartbeat %d ms and election timeout %d ms, %s with %d and %d", nodeName(all[0].node), all[0].heartbeat, all[0].election,
					nodeName(t.node), t.heartbeat, t.election),
				Evidence: []analyze.Evidence{analyze.See(t.ref, t.text), analyze.Expect(all[0].ref, all[0].text)}})
			break
		}
	}
	return nil
}

// millis reads a number of milliseconds, or a duration with its unit.
func millis(s string) (int64, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	d, err := time.ParseDuration(s)
	return d.Milliseconds(), err
}
