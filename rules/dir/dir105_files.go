package dir

import (
	"errors"
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/host"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/bundle/decode/boltpage"
	"coldplane/bundle/decode/walframe"
	"coldplane/report"
)

// database judges member/snap/db.
func (in *inspection) database(d *etcdwal.Dir, db *etcddb.DB, unused bool) {
	if db == nil {
		return
	}
	f := analyze.Finding{Subject: "etcd database in " + d.Path, Severity: report.Critical}
	switch {
	case db.Err != nil && db.File.Size == 0:
		f.Message = "the database has 0 bytes"
		f.Evidence = []analyze.Evidence{analyze.See(db.Ref(), "0 bytes")}
		if d.Log != nil && d.Log.FirstIndex == 1 && d.Log.Whole() {
			f.Severity = report.High
			f.Message += fmt.Sprintf("; the write-ahead log is whole and reaches back to the first entry, so a start rebuilds the database up to index %d", d.Log.State.Commit)
			f.Evidence = append(f.Evidence, analyze.Context(d.LogRef(), fmt.Sprintf("entries 1 to %d, nothing missing", d.Log.LastIndex)))
		}
	case db.Damaged():
		f.Message = fmt.Sprintf("the database of %d bytes cannot be read: %v", db.File.Size, missingDetail(db.Err))
		f.Evidence = []analyze.Evidence{analyze.See(db.Ref(), fmt.Sprintf("%d bytes", db.File.Size))}
	case db.Store == nil || db.Store.Clean():
		return
	default:
		in.pages(db, &f)
	}
	in.add(f, unused, true)
}

func missingDetail(err error) string {
	var m *bundle.MissingError
	if errors.As(err, &m) {
		return m.Detail
	}
	return err.Error()
}

// pages words what the page reader found.
func (in *inspection) pages(db *etcddb.DB, f *analyze.Finding) {
	s := db.Store
	worst := report.Low
	var what []string
	metas := 0
	for _, x := range s.Damage {
		sev := report.High
		if x.Class == boltpage.MetaLost {
			metas++
		}
		switch {
		case metas == 2:
			sev = report.Critical
		case x.Class == boltpage.MetaLost && x.Lost == "":
			sev = report.Medium // the spare is gone: the next fault in the other one loses everything
		case x.Class == boltpage.FreelistWrong:
			sev = report.Low // etcd does not use a stored free list
		case x.Lost != "" || x.Class == boltpage.Truncated:
			sev = report.Critical
		}
		if sev.AtLeast(worst) {
			worst = sev
		}
		if len(what) < 5 {
			what = append(what, x.String())
		}
		if len(f.Evidence) < 12 {
			r := db.Ref()
			r.Offset = int64(x.Page) * int64(s.File().PageSize())
			f.Evidence = append(f.Evidence, analyze.Context(r, x.String()))
		}
	}
	f.Evidence[0].Role = report.RoleSubject
	f.Severity = worst
	n := len(s.Damage) + s.DamageDropped
	f.Message = fmt.Sprintf("the database (%d bytes) has %s: %s", db.File.Size, plural(n, "damaged place"), strings.Join(what, "; "))
	if n > len(what) {
		f.Message += fmt.Sprintf("; and %d more", n-len(what))
	}
	switch {
	case metas == 2:
		f.Message += fmt.Sprintf("; with both meta pages gone etcd and bbolt cannot open the file; %d records were read from its pages one by one", s.Records)
		return
	case !worst.AtLeast(report.High):
		f.Message += "; etcd starts from what is left, nothing is lost"
	}
	if s.Lossy {
		f.Message += fmt.Sprintf("; %d records could be read", s.Records)
	}
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// wal judges the write-ahead log.
func (in *inspection) wal(d *etcdwal.Dir, unused bool) {
	l := d.Log
	if l == nil {
		return
	}
	f := analyze.Finding{Subject: "etcd write-ahead log in " + d.Path}
	var what []string
	for _, x := range l.Damage {
		s := damageText(x)
		if len(what) < 4 {
			what = append(what, s)
		}
		if len(f.Evidence) < 12 {
			f.Evidence = append(f.Evidence, analyze.Context(d.Ref(x.Segment, x.Offset), x.Segment+": "+s))
		}
	}
	switch {
	case l.Start == walframe.StartRefuses:
		f.Severity = report.Critical
		f.Message = "etcd refuses to start on this log"
	case l.Start == walframe.StartDrops:
		f.Severity = report.High
		f.Message = "etcd starts on this log and silently loses what follows the damage"
	case len(l.Damage) > 0:
		f.Severity = report.Medium
		f.Message = "the log is not whole"
	case l.Torn != nil:
		f.Severity = report.Info
		f.Message = fmt.Sprintf("the last record of %s, at byte %d, was not written to its end: normal after a crash or in a copy of a running etcd, which cuts it off at the next start", l.Torn.Segment, l.Torn.Offset)
		f.Evidence = []analyze.Evidence{analyze.See(d.Ref(l.Torn.Segment, l.Torn.Offset), "unfinished record")}
		in.add(f, unused, false)
		return
	default:
		if float64(d.Segments()) > in.p.Param("segments") {
			f.Severity = report.Medium
			f.Message = fmt.Sprintf("%d segments lie in the log; etcd keeps five and has not purged the others", d.Segments())
			f.Evidence = []analyze.Evidence{analyze.See(d.LogRef(), plural(d.Segments(), "segment"))}
			f.Fix = []report.Step{{Text: "See in etcd's log why segments are not purged: --max-wals=0, or a follower that holds its snapshot back."}}
			in.add(f, unused, false)
		}
		return
	}
	f.Evidence[0].Role = report.RoleSubject
	f.Message += fmt.Sprintf(": %s; %s in all; what could be read runs from entry %d to %d, with %d committed", strings.Join(what, "; "),
		plural(l.Breaks, "independent break"), l.FirstIndex, l.LastIndex, l.State.Commit)
	in.add(f, unused, true)
}

// damageText says in words what is wrong at a place of the log.
func damageText(x walframe.Damage) string {
	at := fmt.Sprintf("%s at byte %d", x.Segment, x.Offset)
	var s string
	switch x.Kind {
	case walframe.BadChecksum:
		s = "crc mismatch: " + plural(int(x.Records), "record") + " not fitting the checksum, " + at
	case walframe.BadChain:
		s = "crc mismatch: " + x.Segment + " does not go on where the segment before it ended"
	case walframe.BadLength:
		s = "an impossible record length, " + at
	case walframe.BadRecord:
		s = "bytes that are no record, " + at
	case walframe.BadType:
		s = "a record of unknown type, " + at
	case walframe.BadContent:
		s = "a record whose content does not fit its type, " + at
	case walframe.BadPadding:
		s = "a record with wrong padding, " + at
	case walframe.CutShort:
		s = "the file ends inside a record, " + at
	case walframe.ZeroGap:
		s = fmt.Sprintf("zero bytes and more data behind them, %s to %d", at, x.End)
	case walframe.ZeroSector:
		s = "a zeroed disk sector inside a record, " + at
	case walframe.Unreadable:
		s = "the file cannot be read, " + at
	case walframe.SequenceGap:
		s = "segments are missing before " + x.Segment
	case walframe.SequenceTwice:
		s = "a second segment with the number of " + x.Segment
	case walframe.IndexGap:
		s = "entries are missing, " + at
	case walframe.TermBack:
		s = "an older term or commit index after a newer one, " + at
	case walframe.IdentityDiffers:
		s = x.Segment + " belongs to another member or cluster"
	case walframe.CommitBeyond:
		s = fmt.Sprintf("the log ends at entry %d although %d was committed", x.Before, x.After-1)
	case walframe.NoHead:
		s = x.Segment + " does not begin as a segment does"
	default:
		s = x.Kind.String() + ", " + at
	}
	if n := x.Missing(); n > 0 && x.Kind != walframe.CommitBeyond {
		if n == 1 {
			s += fmt.Sprintf(" (entry %d)", x.Before+1)
		} else {
			s += fmt.Sprintf(" (entries %d to %d)", x.Before+1, x.After-1)
		}
	}
	return s
}

// snaps judges the raft snapshots and how they fit the database.
func (in *inspection) snaps(d *etcdwal.Dir, db *etcddb.DB, unused bool) {
	for i, s := range d.Snaps {
		if s.Err == nil || etcdwal.SnapGone(s.Err) {
			continue
		}
		f := analyze.Finding{Subject: "etcd snapshot " + s.Name, Severity: report.Low,
			Message:  fmt.Sprintf("the raft snapshot %s cannot be used: %v", s.Name, s.Err),
			Evidence: []analyze.Evidence{analyze.See(s.File.Ref(), s.Err.Error())}}
		if i == 0 {
			f.Severity = report.Medium
			f.Message += "; it is the newest, and etcd up to 3.6 goes back to the one before it"
			if d.NewestSnap() == nil && (d.Log == nil || d.Log.FirstIndex > 1) {
				f.Severity = report.High
				f.Message += ", of which there is none"
			}
		}
		in.add(f, unused, true)
	}
	if db == nil || db.Store == nil || !db.Store.Meta.HasConsistentIndex || db.Store.Lossy {
		return
	}
	index := db.Store.Meta.ConsistentIndex
	if s := d.NewestSnap(); s != nil && s.Index > index && !hasSnapDB(d, s.Index) {
		in.add(analyze.Finding{Subject: "etcd database in " + d.Path, Severity: report.Critical,
			Message:  fmt.Sprintf("the database stands at raft index %d, the newest snapshot at %d: an older copy of the database was put there, or its last writes were lost", index, s.Index),
			Evidence: []analyze.Evidence{analyze.See(db.AtKey("meta/consistent_index", 0), fmt.Sprint(index)), analyze.Expect(s.File.Ref(), fmt.Sprintf("index %d, term %d", s.Index, s.Term))},
		}, unused, true)
		return
	}
	if l := d.Log; l != nil && l.Whole() && index > l.LastIndex && !in.alive && !quorum.Restored(db.Store) {
		in.add(analyze.Finding{Subject: "etcd data directory " + d.Path, Severity: report.High, Confidence: report.Probable,
			Message: fmt.Sprintf("the database stands at raft index %d, the log beside it ends at %d: files of different times were put together, or the end of the log is gone", index, l.LastIndex),
			Evidence: []analyze.Evidence{analyze.See(db.AtKey("meta/consistent_index", 0), fmt.Sprint(index)),
				analyze.Expect(d.LogRef(), fmt.Sprintf("last entry %d, commit %d", l.LastIndex, l.State.Commit))},
		}, unused, true)
	}
}

func hasSnapDB(d *etcdwal.Dir, index uint64) bool {
	for _, l := range d.Leftovers {
		if l.Kind == etcdwal.SnapDB && l.Name == fmt.Sprintf("%016x.snap.db", index) {
			return true
		}
	}
	return false
}

// leftovers weighs files that do not belong to a running member.
func (in *inspection) leftovers(d *etcdwal.Dir) {
	var items []litter
	for _, l := range d.Leftovers {
		items = append(items, litter{l.Kind, l.Name, l.Size, l.Ref})
	}
	in.litter(d.Path, items)
}

type litter struct {
	kind etcdwal.LeftoverKind
	name string
	size int64
	ref  bundle.Ref
}

func (in *inspection) litter(dir string, items []litter) {
	sum := map[etcdwal.LeftoverKind]int64{}
	count := map[etcdwal.LeftoverKind]int{}
	for _, l := range items {
		sum[l.kind] += l.size
		count[l.kind]++
	}
	one := func(kind etcdwal.LeftoverKind, sev report.Severity, what, fix string) {
		f := analyze.Finding{Subject: fmt.Sprintf("%s files in %s", kind, dir), Severity: sev, Message: what, Fix: []report.Step{{Text: fix}}}
		for _, l := range items {
			if l.kind == kind && len(f.Evidence) < 10 {
				f.Evidence = append(f.Evidence, analyze.Context(l.ref, fmt.Sprintf("%s, %s", l.name, bundle.FormatBytes(l.size))))
			}
		}
		f.Evidence[0].Role = report.RoleSubject
		in.add(f, false, false)
	}
	if count[etcdwal.Broken] > 0 {
		one(etcdwal.Broken, report.Medium, fmt.Sprintf("etcd set %s aside as broken in %s: it met a damaged log or snapshot before", plural(count[etcdwal.Broken], "file"), dir),
			"Look in etcd's log for the time and the cause (power loss, disk). Keep the files until the member is known to be in step with the others; then they may go.")
	}
	if big := sum[etcdwal.Temp] + sum[etcdwal.Defrag]; float64(big) >= in.p.Param("temp") {
		kind := etcdwal.Temp
		if sum[etcdwal.Defrag] > sum[etcdwal.Temp] {
			kind = etcdwal.Defrag
		}
		one(kind, report.Medium, fmt.Sprintf("%s of interrupted transfers or defragmentations take %s in %s", plural(count[etcdwal.Temp]+count[etcdwal.Defrag], "temporary file"), bundle.FormatBytes(big), dir),
			"Find out why transfers break off (a follower that cannot keep up, a disk too slow, a probe that kills etcd). With etcd stopped, delete tmp* and db.tmp* in member/snap; never db, *.snap or anything in member/wal.")
	} else if count[etcdwal.Defrag] > 0 {
		one(etcdwal.Defrag, report.Low, fmt.Sprintf("an interrupted defragmentation left %s in %s; etcd deletes it at its next start", plural(count[etcdwal.Defrag], "file"), dir), "Nothing to do; defragment again when the member is healthy.")
	}
	if n := count[etcdwal.SnapDB]; float64(n) > in.p.Param("snapdbs") {
		one(etcdwal.SnapDB, report.Medium, fmt.Sprintf("%d databases received from the leader were never put into use in %s", n, dir),
			"The member cannot finish catching up: see in its log why the snapshot is not applied, and replace the member if it goes on.")
	}
}

// listings judges saved listings of directories whose files are not there.
// true when one of them shows a member directory.
func (in *inspection) listings(have bool) bool {
	ls, err := host.Listings.Try(in.p, in.p.Node())
	if err != nil || have {
		return false
	}
	seen := false
	for _, l := range ls {
		dir := ""
		switch {
		case strings.HasSuffix(l.Dir, "member/snap"):
			dir = "snap"
		case strings.HasSuffix(l.Dir, "member/wal"):
			dir = "wal"
		default:
			continue
		}
		seen = true
		var items []litter
		for _, e := range l.Entries {
			if strings.HasPrefix(e.Mode, "d") {
				continue
			}
			if dir == "snap" && e.Name == "db" && e.Size == 0 {
				in.add(analyze.Finding{Subject: "etcd database in " + l.Dir, Severity: report.Critical, Message: "the database has 0 bytes in the saved listing",
					Evidence: []analyze.Evidence{analyze.See(e.Ref, e.Name+", 0 bytes")}}, false, false)
			}
			if k := etcdwal.Classify(dir, e.Name); k != "" {
				items = append(items, litter{k, e.Name, e.Size, e.Ref})
			}
		}
		in.litter(l.Dir, items)
	}
	return seen
}
