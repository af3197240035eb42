package rst

import (
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "RST106", Name: "backup-age", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Low, report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Backup age and restorability",
		Why:   "Before an upgrade the last backup is the only way back. A snapshot without the PKI, the service-account keys and the encryption configuration is no full backup.",
		Fix:   "Set up a timer that saves a snapshot and a copy of /etc/kubernetes/pki and the encryption configuration, off the node; try a restore now and then.",
		Links: []string{"https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/#backing-up-an-etcd-cluster"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "age", Default: 24, Unit: "hours", Source: "a day of work at most"},
		{Name: "say", Default: 1, Unit: "0 or 1", Source: "whether a fresh backup is mentioned"}},
	Needs: []analyze.Need{etcddb.OnNode},
	Run:   backupAge,
})

func backupAge(p *analyze.Pass) error {
	now, dated := p.AsOf(nil)
	var newest time.Time
	var at member
	var ref bundle.Ref
	files := saved(p)
	for _, m := range files {
		if m.s == nil || m.s.Lossy {
			continue
		}
		if last, ok := objects.New(m.db).LastWrite(); ok && last.Time.After(newest) {
			newest, at, ref = last.Time, m, m.db.AtKey(last.Key, last.Rev)
		}
	}
	sev := report.Low
	if p.Target() != "" {
		sev = report.High
	}
	if newest.IsZero() {
		for _, m := range members(p) {
			p.Report(analyze.Finding{Node: m.node, Subject: "backup", Severity: sev, Confidence: report.Possible,
				Message:  "no backup was found in the input; backups kept elsewhere are invisible here",
				Evidence: []analyze.Evidence{analyze.See(m.db.Ref(), "the live database, not a backup")}})
			return nil
		}
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "no stored timestamp dates the snapshots")
		return nil
	}
	if !dated {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "no time to judge the age by")
		return nil
	}
	age := now.Sub(newest)
	text := fmt.Sprintf("the newest snapshot holds the state of %s, %s before the time of judgement: %s", newest.Format(time.RFC3339), age.Round(time.Minute), restorable(at.s))
	if age.Hours() <= p.Param("age") {
		if p.Param("say") == 0 && restorable(at.s) == "restorable" {
			return nil
		}
		sev = report.Info
	}
	p.Report(analyze.Finding{Node: at.node, Subject: "backup", Severity: sev, Message: text, Evidence: []analyze.Evidence{analyze.See(ref, "last write "+newest.Format(time.RFC3339))}})
	return nil
}

// restorable says in a word whether a snapshot restores here.
func restorable(s *etcdstore.Store) string {
	switch {
	case s.Trailer == etcdstore.TrailerMismatch:
		return "not restorable, its SHA-256 does not match"
	case !s.Clean():
		return "damaged"
	case len(s.Alarms) > 0:
		return "restorable, and carries an alarm (RST104)"
	case s.Trailer == etcdstore.TrailerNone:
		return "restorable with --skip-hash-check"
	}
	return "restorable"
}
