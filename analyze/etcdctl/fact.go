package etcdctl

import (
	"errors"
	"strings"

	"coldplane/analyze"
	"coldplane/bundle"
)

// maxFiles bounds the saved outputs read of one node.
const maxFiles = 256

// OnNode is what was saved of etcdctl in a node's evidence, or beside the
// nodes for the shared pseudo-node.
var OnNode = &analyze.Fact[*Saved]{
	Name:    "etcdctl.saved",
	Kinds:   []bundle.Kind{bundle.KindEtcdctl},
	Compute: func(c *analyze.Ctx) (*Saved, error) { return read(c.Node()) },
}

// read parses etcdctl/*, and etcd/members.json and etcd/status.json of a
// collected bundle.
func read(n *bundle.Node) (*Saved, error) {
	files := n.Glob("/etcdctl/*")
	for _, p := range []string{"/etcd/members.json", "/etcd/status.json"} {
		if f, err := n.Stat(p); err == nil {
			files = append(files, f)
		}
	}
	out := &Saved{}
	seen := 0
	batch := 0
	failed := map[string]bool{} // base names with an error beside them
	var empty []*bundle.File
	for _, f := range files {
		if f.Mode.IsDir() {
			continue
		}
		if seen++; seen > maxFiles {
			out.Unread = append(out.Unread, Unread{f.Ref(), bundle.LimitReached, "too many saved outputs"})
			break
		}
		b, err := f.Bytes(maxBytes)
		if err != nil {
			var m *bundle.MissingError
			u := Unread{f.Ref(), bundle.Unreadable, err.Error()}
			if errors.As(err, &m) {
				u.Reason, u.Detail = m.Reason, m.Detail
			}
			out.Unread = append(out.Unread, u)
			continue
		}
		base := strings.TrimSuffix(f.Name(), ".err")
		if len(strings.TrimSpace(string(b))) == 0 {
			if base == f.Name() && strings.Contains(base, "alarm") {
				empty = append(empty, f)
			}
			continue
		}
		batch++
		before := len(out.Failures)
		p := parser{out: out, ref: f.Ref(), batch: &batch}
		p.parse(b)
		if len(out.Failures) > before {
			stem, _, _ := strings.Cut(base, ".")
			failed[stem] = true
		}
		if !p.found && !known(f.Name()) {
			out.Unread = append(out.Unread, Unread{f.Ref(), bundle.Unsupported, "no etcdctl output that is known"})
		}
	}
	for _, f := range empty {
		if stem, _, _ := strings.Cut(f.Name(), "."); !failed[stem] {
			out.NoAlarms = append(out.NoAlarms, f.Ref())
		}
	}
	if out.Empty() && len(out.Unread) == 0 {
		return nil, analyze.Missing(bundle.KindEtcdctl, n.Name, bundle.NotCollected, "no saved etcdctl output in the input")
	}
	return out, nil
}

// known names outputs that hold nothing for us: they are no gap.
func known(name string) bool {
	for _, s := range []string{"put", "snapshot", "member-add", "member-remove", "member-promote", "defrag", "compact", "version", "get"} {
		if strings.HasPrefix(name, s) {
			return true
		}
	}
	return false
}
