package bundle

import (
	"io/fs"
	"path"
	"strings"
)

// A shape is what a directory, on disk or in an archive, turns out to be.
type shape struct {
	format Format
	prefix string            // where inside the tree it begins
	nodes  map[string]string // for FormatNodes: name -> prefix
	shared bool              // for FormatNodes: there is more beside nodes/
}

// rootMarks are paths that make a directory a node root, or a loose
// collection of one node's evidence. A trailing slash asks for a directory.
var rootMarks = []string{
	"etc/kubernetes/", "var/lib/kubelet/", "var/lib/etcd/", "var/log/", "coldplane/HEADER.json", "coldplane/KEYS.json",
	"kubeadm-config.yaml", "crictl/", "etcdctl/", "journal/", "listing/", "host/", "probe/", "etcd/", "root/.kube/",
	"etc/containerd/", "events.txt", "var/lib/containerd/", "etc/crio/", "etc/etcd/", "etc/ssl/etcd/",
	"etc/haproxy/", "etc/keepalived/", "etc/docker/",
}

// looseFiles are names of saved output that make a directory a collection of
// evidence although no directory of a node is in it.
var looseFiles = []string{"kubeadm-*.log", "journal*.log", "health-*.json", "metrics-*.txt"}

func has(t tree, p string) bool {
	dir := strings.HasSuffix(p, "/")
	e, err := t.lstat(strings.TrimSuffix(p, "/"))
	return err == nil && e.refused == "" && (!dir || e.mode.IsDir() || e.mode&fs.ModeSymlink != 0)
}

func isRoot(t tree) bool {
	for _, m := range rootMarks {
		if has(t, m) {
			return true
		}
	}
	es, err := t.readdir("")
	for _, e := range es {
		for _, p := range looseFiles {
			if ok, _ := path.Match(p, e.name); ok && err == nil && e.refused == "" && !e.mode.IsDir() {
				return true
			}
		}
	}
	return false
}

func isDataDir(t tree) (prefix string, ok bool) {
	for _, p := range []string{"", "etcd"} {
		s := sub(t, p)
		if has(s, "member/snap/") || has(s, "member/wal/") {
			return p, true
		}
	}
	if has(t, "snap/db") && has(t, "wal/") {
		return "", true
	}
	return "", false
}

// recognize says what a tree is. It looks at names only, at most one
// directory below the top (archives of a directory).
func recognize(t tree) shape {
	if s := recognizeAt(t, ""); s.format != FormatUnknown {
		return s
	}
	es, err := t.readdir("")
	if err != nil || len(es) != 1 || !es[0].mode.IsDir() {
		return shape{}
	}
	return recognizeAt(t, es[0].name)
}

func recognizeAt(t tree, prefix string) shape {
	s := sub(t, prefix)
	switch {
	case has(s, "sos_commands/") || has(s, "sos_logs/"):
		return shape{format: FormatSOS, prefix: prefix}
	case has(s, "cluster-resources/") && (has(s, "version.yaml") || has(s, "cluster-info/")):
		return shape{format: FormatSupport, prefix: prefix}
	case has(s, "cluster-scoped-resources/") && has(s, "namespaces/"):
		return shape{format: FormatGather, prefix: prefix}
	case has(s, "kube-system/pods.json") || has(s, "kube-system/pods.yaml"):
		return shape{format: FormatDump, prefix: prefix}
	}
	if es, err := s.readdir("nodes"); err == nil {
		out := shape{format: FormatNodes, prefix: prefix, nodes: map[string]string{}}
		for _, e := range es {
			if e.mode.IsDir() && e.refused == "" && isRoot(sub(s, path.Join("nodes", e.name))) {
				out.nodes[e.name] = path.Join(prefix, "nodes", e.name)
			}
		}
		if len(out.nodes) > 0 {
			top, _ := s.readdir("")
			out.shared = len(top) > 1
			return out
		}
	}
	if p, ok := isDataDir(s); ok && !isRootBesides(s) {
		return shape{format: FormatDataDir, prefix: path.Join(prefix, p)}
	}
	if isRoot(s) {
		return shape{format: FormatNodeRoot, prefix: prefix}
	}
	return shape{}
}

// isRootBesides reports whether a tree with a member/ directory is more than a data directory.
func isRootBesides(t tree) bool {
	return has(t, "etc/kubernetes/") || has(t, "var/lib/") || has(t, "coldplane/")
}

// isWholeRoot reports whether a directory is a complete root file system.
func isWholeRoot(t tree) bool {
	return has(t, "usr/") && has(t, "etc/") && has(t, "var/") && (has(t, "etc/os-release") || has(t, "usr/lib/os-release"))
}
