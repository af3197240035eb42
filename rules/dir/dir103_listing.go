package dir

import (
	"path"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/host"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// A listing is what saved "ls -l" output says of the data directory in use.
type listing struct {
	dir  *etcddir.Dir
	what string // what is not there; "" when nothing lacks
	at   bundle.Ref
}

// listed reads saved listings where the directory itself is not in the input.
// nil when none of them is of the directory etcd uses.
func listed(p *analyze.Pass, pod *staticpod.Pod) *listing {
	data, wal := etcddir.HostPaths(pod)
	ls, err := host.Listings.Try(p, p.Node())
	if err != nil || data == "" {
		return nil
	}
	if wal == "" {
		wal = path.Join(data, "member/wal")
	}
	of := func(dir string) *host.Listing {
		i := slices.IndexFunc(ls, func(l *host.Listing) bool { return path.Clean(l.Dir) == dir })
		if i < 0 {
			return nil
		}
		return ls[i]
	}
	out := &listing{dir: &etcddir.Dir{Path: data, Resolved: data, InUse: true, WALDir: wal}}
	seen := false
	for _, q := range []struct {
		dir, what string
		has       func(host.Entry) bool
	}{
		{data, "holds no member/", named("member")},
		{path.Join(data, "member"), "has no member/snap", named("snap")},
		{path.Join(data, "member/snap"), "has no member/snap/db", named("db")},
		{wal, "has no write-ahead log in " + wal, func(e host.Entry) bool { return strings.HasSuffix(e.Name, ".wal") }},
	} {
		l := of(q.dir)
		if l == nil {
			continue
		}
		seen = true
		if out.at = l.Ref; !slices.ContainsFunc(l.Entries, q.has) {
			out.what = q.what + " in the saved listing"
			return out
		}
	}
	if !seen {
		return nil
	}
	return out
}

func named(name string) func(host.Entry) bool {
	return func(e host.Entry) bool { return e.Name == name }
}
