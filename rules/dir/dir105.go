package dir

import (
	"cmp"
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "DIR105", Name: "etcd-data-dir-damaged-or-littered", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium, report.Low, report.Info},
	Doc: analyze.Doc{
		Title: "Damaged or leftover files in an etcd data directory",
		Why: "etcd stops at a database whose pages do not fit together, at a log with a gap or a wrong checksum, and at a database older than its snapshot. A log with a hole in its newest " +
			"segment is worse: etcd starts, and everything behind the hole is gone without a word. Temporary files of interrupted transfers and defragmentations fill the disk, " +
			"and files etcd set aside as broken tell of an earlier accident.",
		Fix: "Copy the whole data directory away before anything else; do not delete the log or .snap files, and do not edit them. With a healthy quorum, remove the member and let it join anew with an empty directory; " +
			"a single member is restored from a snapshot. Leftovers may be deleted once etcd does not use them.",
		Links: []string{"https://etcd.io/docs/v3.6/learning/persistent-storage-files/", "https://etcd.io/docs/v3.6/op-guide/recovery/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "temp", Default: 100 << 20, Unit: "bytes", Source: "temporary files below this are left by any interrupted transfer"},
		{Name: "snapdbs", Default: 5, Unit: "files", Source: "etcd keeps five snapshots (--max-snapshots)"},
		{Name: "segments", Default: 10, Unit: "files", Source: "etcd keeps five segments (--max-wals); twice that is not purged"},
		{Name: "backups", Default: 1 << 30, Unit: "bytes", Source: "kubeadm keeps copies of the cluster's data unencrypted under /etc/kubernetes/tmp"},
	},
	Wants: []analyze.Need{etcddir.OnNode, etcdwal.OnNode, etcddb.OnNode, logs.OnNode, host.Listings, quorum.Joined},
	Run:   damagedDir,
})

// inspection is one node's look at its data directories.
type inspection struct {
	p     *analyze.Pass
	alive bool // the member of this node was seen running: files copied then may be torn
	voter int  // voters of its cluster; 0 when not known
	found []analyze.Finding
}

func damagedDir(p *analyze.Pass) error {
	in := &inspection{p: p}
	in.cluster()
	dirs, err := etcdwal.OnNode.Try(p, p.Node())
	looked := false
	if err == nil {
		dbs, _ := etcddb.OnNode.Try(p, p.Node())
		inUse := dirs.InUse() != nil
		for _, d := range dirs {
			looked = looked || len(d.Snap)+len(d.WAL) > 0
			in.dir(d, dbs.Of(d.Dir), inUse && !d.Dir.InUse || etcdwal.Backup(d.Path))
		}
		in.backups(dirs)
	}
	if in.listings(looked) {
		looked = true
	}
	if in.logs() {
		looked = true
	}
	for _, f := range in.found {
		p.Report(f)
	}
	switch {
	case looked:
	case err != nil:
		p.UnknownErr(bundle.KindDataDir, p.Node(), err)
	default:
		p.Unknown(bundle.KindDataDir, p.Node(), bundle.NotCollected, "no file of an etcd data directory in the input")
	}
	return nil
}

// cluster learns whether the node's member runs and how many vote with it.
func (in *inspection) cluster() {
	v, err := quorum.Joined.Try(in.p, nil)
	if err != nil {
		return
	}
	for _, c := range v.Clusters {
		for _, s := range c.Sources {
			if s.Node != in.p.Node() || s.Kind == quorum.List || s.Snapshot || s.Self == 0 {
				continue
			}
			in.voter = max(in.voter, c.Sum().Voters)
			if m := c.Member(s.Self); m != nil && m.Life == quorum.Alive {
				in.alive = true
			}
		}
	}
}

// add keeps a finding. What lies in a directory that is not in use is milder,
// and what may be a torn copy is less sure.
func (in *inspection) add(f analyze.Finding, unused bool, torn bool) {
	if unused && f.Severity.AtLeast(report.High) {
		f.Severity = report.Medium
		f.Message += "; the directory is not the one in use"
	}
	if torn && in.alive && f.Severity.AtLeast(report.Medium) {
		f.Confidence = report.Possible
		f.Message += "; etcd was running when this was collected, so the copy may be torn and the original whole"
	}
	if len(f.Fix) == 0 {
		f.Fix = in.fix(f.Severity)
	}
	in.found = append(in.found, f)
}

func (in *inspection) fix(sev report.Severity) []report.Step {
	if !sev.AtLeast(report.Medium) {
		return nil
	}
	steps := []report.Step{{Text: "Stop etcd on this node (move its manifest out of the static-pod directory) and copy the whole data directory to another machine before anything else. Delete and edit nothing in it."}}
	switch {
	case in.voter > 1:
		steps = append(steps, report.Step{Text: "While the other members have quorum: remove this member, empty its data directory, and join it anew; it receives the data from the leader.", Command: "etcdctl member remove <id of this member>"})
	case in.voter == 1:
		steps = append(steps, report.Step{Text: "This is the only member: restore the newest good snapshot into a new directory. A copy of the damaged database restores only as far as its pages can be read, and without the tail of the log.",
			Command: "etcdutl snapshot restore FILE --data-dir NEWDIR --name ... --initial-cluster ... --initial-advertise-peer-urls ... --bump-revision 1000000000 --mark-compacted"})
	default:
		steps = append(steps, report.Step{Text: "If other members have quorum, remove this one, empty its directory and join it anew; if it is the only one, restore the newest good snapshot."})
	}
	return append(steps, report.Step{Text: "Look for the cause before it happens again: power loss, a disk that acknowledges writes early, a full or failing disk."})
}

// dir judges one data directory.
func (in *inspection) dir(d *etcdwal.Dir, db *etcddb.DB, unused bool) {
	in.database(d, db, unused)
	in.wal(d, unused)
	in.snaps(d, db, unused)
	in.leftovers(d)
}

// logs are what etcd itself said when it could not start. true when there is
// an etcd log at all.
func (in *inspection) logs() bool {
	l, err := logs.OnNode.Try(in.p, in.p.Node())
	if err != nil || !l.Has(signature.Etcd) {
		return false
	}
	hits := l.Hits(signature.Etcd, "E22", "E23", "E24", "E25", "E61", "E74", "E96", "E100")
	if len(hits) == 0 {
		return true
	}
	h := hits[len(hits)-1]
	if ok, there := l.Last(signature.Etcd, "E84"); there && !ok.Time.IsZero() && ok.Time.After(h.Time) {
		return true // it has started since
	}
	for i := range in.found {
		f := &in.found[i]
		if f.Severity.AtLeast(report.Medium) && f.Subject != "" && strings.HasPrefix(f.Subject, "etcd ") {
			f.Evidence = append(f.Evidence, analyze.Context(h.Ref(), h.Excerpt()))
			return true
		}
	}
	what := h.Stat.Sig.Means
	if d := cmp.Or(h.Value("error"), h.Value("detail")); d != "" {
		what += ": " + d
	}
	in.add(analyze.Finding{
		Subject: "etcd data directory", Severity: report.Critical, Confidence: report.Probable, ObservedAt: h.Time,
		Message:  "etcd could not use its data directory: " + lowerFirst(what) + logKind(h),
		Evidence: []analyze.Evidence{h.See()},
	}, false, false)
	return true
}

func logKind(h logs.At) string {
	if strings.Contains(h.Excerpt(), "crc mismatch") && !strings.Contains(h.Value("error"), "crc mismatch") {
		return " (crc mismatch in the write-ahead log)"
	}
	return ""
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// backups weighs the copies kubeadm leaves behind.
func (in *inspection) backups(dirs etcdwal.Dirs) {
	total := int64(0)
	var evidence []analyze.Evidence
	for _, d := range dirs {
		if etcdwal.Backup(d.Path) && d.DB != nil {
			total += d.Bytes()
			evidence = append(evidence, analyze.Context(d.DB.Ref(), bundle.FormatBytes(d.Bytes())))
		}
	}
	if float64(total) < in.p.Param("backups") {
		return
	}
	evidence[0].Role = report.RoleSubject
	in.add(analyze.Finding{Subject: "kubeadm's etcd backups", Severity: report.Low,
		Message:  fmt.Sprintf("%d copies of the etcd data directory, %s in all, lie unencrypted under /etc/kubernetes/tmp", len(evidence), bundle.FormatBytes(total)),
		Evidence: evidence,
		Fix:      []report.Step{{Text: "Move the ones still wanted off the node and delete the others; they hold every Secret of the cluster in clear unless encryption at rest is on."}},
	}, false, false)
}
