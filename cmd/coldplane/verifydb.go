package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/bundle/decode/boltpage"
	"coldplane/bundle/redact"
)

// verifyDB checks a snapshot or a raw database: its sum, its pages, its records,
// and says whether and how it restores.
func verifyDB(ctx context.Context, e *env, p string, f io.ReaderAt, size int64) (bool, error) {
	s, err := etcdstore.Read(ctx, f, size, etcdstore.Options{Trailer: true})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	say := func(name, format string, a ...any) {
		fmt.Fprintf(e.out, "  %-12s %s\n", name, visible(fmt.Sprintf(format, a...)))
	}
	if err != nil {
		fmt.Fprintf(e.out, "%s: altered\n", visible(p))
		say("problem", "not readable as an etcd database: %v", err)
		return false, nil
	}
	state, problems := judgeDB(s, f, size)
	fmt.Fprintf(e.out, "%s: %s\n", visible(p), state)
	sum := map[etcdstore.Trailer]string{etcdstore.TrailerOK: ", SHA-256 matches", etcdstore.TrailerNone: ", no SHA-256"}[s.Trailer]
	say("snapshot", "%s%s", bundle.FormatBytes(size), sum)
	for i, x := range problems {
		if i == 20 {
			say("problem", "%d more", len(problems)-i)
			break
		}
		say("problem", "%s", x)
	}
	if s.Clean() {
		say("pages", "%d of %d bytes, all sound", s.Pages.HWM, s.Pages.PageSize)
	}
	say("revision", "%d, compacted at %d; %d keys live in %d records", s.MaxRev, s.Compacted(), s.Live, s.Records)
	if last, ok := objects.New(&etcddb.DB{Store: s}).LastWrite(); ok {
		say("state of", "%s, %s ago", last.Time.UTC().Format(time.RFC3339), e.now().Sub(last.Time).Round(time.Minute))
	}
	if v := s.Meta.StorageVersion + s.Meta.ClusterVersion; v != "" {
		say("version", "storage %s, cluster %s", s.Meta.StorageVersion, s.Meta.ClusterVersion)
	}
	for _, m := range s.Members {
		say("member", "%s %s %s", etcdstore.MemberID(m.ID), m.Name, strings.Join(m.PeerURLs, ","))
	}
	for _, a := range s.Alarms {
		say("alarm", "%s of member %s: a cluster restored from this refuses writes until it is disarmed", a.Type, etcdstore.MemberID(a.MemberID))
	}
	if state == "intact" || state == "unsealed" {
		o, ok, err := secondOpinion(ctx, e, s, opinionLimit)
		if err != nil {
			return false, err
		}
		if ok {
			say("etcd's code", "%s", opinionText(o))
		}
	}
	restorable(say, p, s, state)
	return state == "intact" || state == "unsealed", nil
}

// judgeDB names the state of a file and what is wrong with it.
func judgeDB(s *etcdstore.Store, f io.ReaderAt, size int64) (state string, problems []string) {
	state = "intact"
	switch s.Trailer {
	case etcdstore.TrailerNone:
		state = "unsealed"
	case etcdstore.TrailerMismatch:
		state = "altered"
		var tail [32]byte
		if _, err := f.ReadAt(tail[:], size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
			break
		}
		if t := string(tail[:]); t == redact.TrailerWasGood || t == redact.TrailerWasWrong {
			return state, []string{"a scrubbed snapshot: its values are overwritten and it must not be restored"}
		}
		problems = append(problems, "the SHA-256 at the end does not match the content")
	case etcdstore.TrailerUnreadable:
		state = "altered"
		problems = append(problems, "the end of the file cannot be read")
	}
	for _, d := range s.Damage {
		problems = append(problems, d.String())
		if d.Class == boltpage.Truncated {
			state = "incomplete"
		}
	}
	if s.Undecoded+s.Strange > 0 {
		problems = append(problems, fmt.Sprintf("%d records are not what etcd writes", s.Undecoded+s.Strange))
	}
	if s.MissingTotal > 0 {
		problems = append(problems, fmt.Sprintf("%d revisions above the compaction have no record, from %d", s.MissingTotal, s.Missing[0].From))
	}
	if len(problems) > 0 && (state == "intact" || state == "unsealed") {
		state = "altered"
	}
	return state, problems
}

// restorable says whether the file restores, and the exact steps.
func restorable(say func(name, format string, a ...any), p string, s *etcdstore.Store, state string) {
	skip := ""
	switch {
	case state == "altered" || state == "incomplete":
		say("restorable", "no: take another snapshot, from a running member: etcdctl snapshot save FILE")
		return
	case state == "unsealed":
		skip = " --skip-hash-check"
		say("restorable", "yes, with --skip-hash-check; a raw copy may miss what only the write-ahead log had: keep member/wal with it")
	default:
		say("restorable", "yes")
	}
	say("step 1", "on every control-plane node move kube-apiserver.yaml, then the controller-manager's and the scheduler's manifest, then etcd.yaml out of the static-pod directory")
	say("step 2", "rename the old data directory; never delete it")
	say("step 3", "on each node, with its own name and address: etcdutl snapshot restore %s%s --name NODE --initial-cluster NODE1=https://IP1:2380,… --initial-cluster-token NEW --initial-advertise-peer-urls https://IP:2380 --data-dir DIR --bump-revision 1000000000 --mark-compacted", p, skip)
	say("step 4", "etcd.yaml back on all nodes; etcdctl alarm list; disarm only if every row says NOSPACE")
	say("step 5", "API servers back, then the others; restart all kubelets, kube-proxy and operators")
}
