package rst

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/bundle"
	"coldplane/bundle/decode/boltpage"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "RST105", Name: "snapshot-integrity", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Snapshot integrity and kind",
		Why: "A backup is worth what can be restored from it. `snapshot save` appends a SHA-256, which restore checks; pages and records are checked here one by one. A raw copy of a " +
			"database has no sum, needs --skip-hash-check and may miss what only the write-ahead log had.",
		Fix:   "Take a new one from a running member with etcdctl snapshot save, verify it, and keep the damaged file aside. If no member runs, keep member/wal together with a raw copy.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/recovery/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{etcddb.OnNode},
	Run:   integrity,
})

func integrity(p *analyze.Pass) error {
	files := saved(p)
	if len(files) == 0 {
		return p.NotApplicable("no saved snapshot in the input")
	}
	for _, m := range files {
		name := "snapshot " + m.db.File.Name()
		say := func(sev report.Severity, msg string, ev ...analyze.Evidence) {
			p.Report(analyze.Finding{Node: m.node, Subject: name, Severity: sev, Message: msg, Evidence: ev})
		}
		if m.s == nil {
			if m.db.Damaged() {
				say(report.Critical, "cannot be read as an etcd database: "+m.db.Err.Error(), analyze.See(m.db.Ref(), m.db.Err.Error()))
			} else {
				p.UnknownErr(bundle.KindStore, m.node, m.db.Err)
			}
			continue
		}
		if m.s.Trailer == etcdstore.TrailerMismatch {
			r := m.db.Ref()
			r.Offset = m.s.Size - 32
			say(report.Critical, "the SHA-256 appended by snapshot save does not match the content: the file changed after it was taken, and restore refuses it", analyze.See(r, "sha256 mismatch"))
			continue
		}
		if d := damage(m); len(d) > 0 {
			sev := report.Medium
			if m.s.Lossy || m.s.Undecoded > 0 || m.s.MissingTotal > 0 {
				sev = report.Critical
			} else if onlyMeta(m.s) {
				sev = report.Low
			}
			say(sev, "damaged: "+strings.Join(d[:min(len(d), 3)], "; "), pages(m)...)
			continue
		}
		if gone := required(m.s); len(gone) > 0 {
			say(report.Medium, "is sound and not a Kubernetes cluster's backup: no "+strings.Join(gone, ", no "), analyze.See(m.db.Ref(), fmt.Sprintf("%d live keys", m.s.Live)))
			continue
		}
		if m.s.Trailer == etcdstore.TrailerNone {
			say(report.Low, "has no SHA-256 trailer: a raw copy, which restores only with --skip-hash-check and may miss the end of the write-ahead log", analyze.See(m.db.Ref(), fmt.Sprintf("%d bytes", m.s.Size)))
		}
	}
	return nil
}

// damage lists what is wrong with a file in words.
func damage(m member) (out []string) {
	for i, d := range m.s.Damage {
		if i == 3 {
			out = append(out, fmt.Sprintf("and %d more", len(m.s.Damage)+m.s.DamageDropped-3))
			break
		}
		out = append(out, d.String())
	}
	if m.s.Undecoded > 0 {
		out = append(out, fmt.Sprintf("%d records are not etcd's", m.s.Undecoded))
	}
	if m.s.Strange > 0 {
		out = append(out, fmt.Sprintf("%d records carry another revision than their key", m.s.Strange))
	}
	if m.s.MissingTotal > 0 {
		r := m.s.Missing[0]
		out = append(out, fmt.Sprintf("%d revisions are missing, the first of them %d to %d", m.s.MissingTotal, r.From, r.To))
	}
	return out
}

// onlyMeta reports that the damage is one lost meta page: the other one serves.
func onlyMeta(s *etcdstore.Store) bool {
	return !slices.ContainsFunc(s.Damage, func(d boltpage.Damage) bool { return d.Class != boltpage.MetaLost })
}

// pages points at the damaged pages.
func pages(m member) (out []analyze.Evidence) {
	for i, d := range m.s.Damage {
		if i == 10 {
			break
		}
		r := m.db.Ref()
		r.Offset = int64(d.Page) * m.s.Pages.PageSize
		out = append(out, analyze.Context(r, d.String()))
	}
	if len(out) == 0 {
		out = append(out, analyze.See(m.db.Ref(), fmt.Sprintf("%d records", m.s.Records)))
	}
	out[0].Role = report.RoleSubject
	return out
}

// required names what every Kubernetes store holds and this one does not. Nodes are
// not among it: a control plane may have none yet.
func required(s *etcdstore.Store) (gone []string) {
	has := func(key string) bool { v, ok := s.Latest(s.Prefix + key); return ok && !v.Tombstone }
	if !has("/namespaces/kube-system") {
		gone = append(gone, "namespace kube-system")
	}
	return gone
}
