package quorum

import (
	"regexp"
	"strconv"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// serverVersions collects what a node says of etcd's version: the image in the
// manifest, the newest start line in its log, and what the database names.
func serverVersions(c *analyze.Ctx, n *bundle.Node) []Version {
	var out []Version
	add := func(text string, server bool, ref bundle.Ref) {
		if _, _, _, ok := ParseVersion(text); ok {
			out = append(out, Version{Node: n.Name, Text: strings.TrimPrefix(text, "v"), Server: server, Ref: ref})
		}
	}
	if m, err := staticpod.Manifests.Of(c, n); err == nil {
		if pod := m.Component(staticpod.Etcd); pod != nil {
			add(pod.ImageTag(), true, pod.ImageRef())
		}
	}
	if l, err := logs.OnNode.Of(c, n); err == nil {
		if at, ok := l.Last(signature.Etcd, "E52"); ok {
			v := at.Value("etcd-version")
			if v == "" {
				v = at.Value("etcdversion")
			}
			add(v, true, at.Ref())
		}
	}
	if dbs, err := etcddb.OnNode.Of(c, n); err == nil {
		if d := dbs.Live(); d != nil {
			add(d.Store.Meta.ClusterVersion, false, d.AtKey("cluster/clusterVersion", 0))
			add(d.Store.Meta.StorageVersion, false, d.AtKey("meta/storageVersion", 0))
		}
	}
	return out
}

var versionRE = regexp.MustCompile(`^v?(\d{1,3})\.(\d{1,4})\.(\d{1,5})`)

// ParseVersion reads the beginning of a version: "3.5.21", "v3.6.4-0".
func ParseVersion(s string) (major, minor, patch int, ok bool) {
	m := versionRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, 0, 0, false
	}
	major, _ = strconv.Atoi(m[1])
	minor, _ = strconv.Atoi(m[2])
	patch, _ = strconv.Atoi(m[3])
	return major, minor, patch, true
}

// Before reports whether a version is older than another, both as numbers.
func Before(s string, major, minor, patch int) bool {
	a, b, c, ok := ParseVersion(s)
	if !ok {
		return false
	}
	if a != major {
		return a < major
	}
	if b != minor {
		return b < minor
	}
	return c < patch
}

// Servers are the etcd versions a node's evidence shows running: the manifest's
// image, the newest start in the log, and saved endpoint status. Versions of
// the cluster or the storage are not among them.
var Servers = &analyze.Fact[[]Version]{
	Name:  "quorum.servers",
	Kinds: []bundle.Kind{bundle.KindManifests, bundle.KindLogs, bundle.KindEtcdctl},
	Needs: []analyze.Need{staticpod.Manifests, logs.OnNode, etcdctl.OnNode, etcddb.OnNode},
	Compute: func(c *analyze.Ctx) ([]Version, error) {
		var out []Version
		for _, v := range serverVersions(c, c.Node()) {
			if v.Server {
				out = append(out, v)
			}
		}
		if s, err := etcdctl.OnNode.Get(c); err == nil {
			for _, x := range s.Status {
				if _, _, _, ok := ParseVersion(x.Version); ok {
					ref := x.Ref
					if ref.Pointer != "" {
						ref.Pointer += "/Status/version"
					}
					out = append(out, Version{Member: x.ID, Text: x.Version, Server: true, Ref: ref})
				}
			}
		}
		if len(out) == 0 {
			return nil, analyze.Missing(bundle.KindManifests, c.Node().Name, bundle.NotCollected, "nothing names the version of etcd")
		}
		return out, nil
	},
}
