package dir

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/etcdwal"
	"coldplane/report"
)

// remains judges a directory that holds one half of a member, the database or
// the log: what is left proves by itself that there was data. nil when nothing
// readable is left.
func remains(p *analyze.Pass, d *etcddir.Dir) *analyze.Finding {
	if d.DB != nil {
		dbs, err := etcddb.OnNode.Try(p, p.Node())
		if err != nil || dbs.Of(d) == nil || dbs.Of(d).Store == nil || dbs.Of(d).Store.Current() <= 1 {
			return nil
		}
		db := dbs.Of(d)
		return &analyze.Finding{Severity: report.Critical,
			Message:  fmt.Sprintf("its database is at revision %d: without its log etcd does not go on as the member it was", db.Store.Current()),
			Evidence: []analyze.Evidence{analyze.Context(db.Ref(), fmt.Sprintf("revision %d", db.Store.Current()))},
			Fix:      half("restore a snapshot; without one, the database that is left, copied away, can be restored as a snapshot with --skip-hash-check and lacks the last writes")}
	}
	dirs, err := etcdwal.OnNode.Try(p, p.Node())
	if err != nil {
		return nil
	}
	w := dirs.InUse()
	if w == nil || w.Log == nil || w.Log.Entries == 0 {
		return nil
	}
	l := w.Log
	f := &analyze.Finding{Severity: report.Critical,
		Message:  fmt.Sprintf("the write-ahead log beside it holds entries %d to %d: the database was lost, and the log does not reach back whole to the first entry, so it cannot be rebuilt from it", l.FirstIndex, l.LastIndex),
		Evidence: []analyze.Evidence{analyze.Context(w.LogRef(), fmt.Sprintf("entries %d to %d", l.FirstIndex, l.LastIndex))},
		Fix:      half("restore the newest good snapshot")}
	if l.FirstIndex == 1 && l.Whole() {
		f.Severity = report.High
		f.Message = fmt.Sprintf("the write-ahead log beside it is whole and reaches back to the first entry, so a start rebuilds the database up to index %d", l.State.Commit)
		f.Fix = half("start etcd: it reads the log from its first entry; compare the number of objects with what you expect before the API servers start")
	}
	return f
}

func half(alone string) []report.Step {
	return []report.Step{
		{Text: "Take etcd's manifest out of the static-pod directory and copy the whole data directory to another machine. Delete and edit nothing in it."},
		{Text: "Look for the missing half: a disk that is not mounted, another path, a tool that cleaned up.", Command: "find / -xdev \\( -path '*/member/snap/db' -o -name '*.wal' \\) -ls 2>/dev/null"},
		{Text: "Other members have quorum: remove this member, empty its directory, and join it anew."},
		{Text: "It is the only member: " + alone + "."},
	}
}
