// Package facts gathers what every report shows whatever the rules say: the
// inventory of nodes, the times evidence was seen at, the kind of
// distribution. It only composes facts of its sibling packages.
package facts

import (
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/identity"
	"coldplane/analyze/logs"
	"coldplane/analyze/objects"
	"coldplane/analyze/pki"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

// Witnesses are the sources of an inferred as-of time.
func Witnesses() []analyze.Witness {
	return []analyze.Witness{fileTimes, logTimes, storeTimes}
}

// fileTimes is the newest modification time among the files that components
// and the collection itself write.
func fileTimes(c *analyze.Ctx) (time.Time, string) {
	var t time.Time
	what := ""
	for _, pattern := range []string{"/crictl/*", "/journal/*", "/etcdctl/*", "/var/log/pods/*/*/*.log", "/etcd/*"} {
		for _, f := range c.Node().Glob(pattern) {
			if f.Mode.IsRegular() && f.ModTime.After(t) {
				t, what = f.ModTime, f.Path
			}
		}
	}
	if ds, err := etcddir.OnNode.Get(c); err == nil {
		if d := ds.InUse(); d != nil && d.Newest().After(t) {
			t, what = d.Newest(), d.Path
		} else if c.Node().StoreOnly && len(ds) > 0 && ds[0].Newest().After(t) {
			t, what = ds[0].Newest(), ds[0].Path
		}
	}
	return t, what
}

// storeTimes is the last write that the node's database dates.
func storeTimes(c *analyze.Ctx) (time.Time, string) {
	s, err := objects.OnNode.Get(c)
	if err != nil {
		return time.Time{}, ""
	}
	last, ok := s.LastWrite()
	if !ok {
		return time.Time{}, ""
	}
	return last.Time, s.DB.File.Path + " " + last.Key
}

// logTimes is the time of the newest log line.
func logTimes(c *analyze.Ctx) (time.Time, string) {
	n, err := logs.OnNode.Get(c)
	if err != nil {
		return time.Time{}, ""
	}
	t, s := n.End()
	if s == nil {
		return time.Time{}, ""
	}
	return t, s.File.Path
}

// Kubeadm reports whether a node is laid out by kubeadm or something like it;
// what names the distribution when it is not.
func Kubeadm(c *analyze.Ctx) (ok bool, what string) {
	n := c.Node()
	for _, d := range []struct{ path, name string }{
		{"/etc/rancher/k3s", "k3s"}, {"/var/lib/rancher/k3s", "k3s"},
		{"/etc/rancher/rke2", "RKE2"}, {"/var/lib/rancher/rke2", "RKE2"},
		{"/etc/kubernetes/static-pod-resources", "OpenShift"},
		{"/var/snap/microk8s", "MicroK8s"}, {"/system/state/config.yaml", "Talos"},
	} {
		if _, err := n.Stat(d.path); err == nil {
			return false, d.name + " lays its files out differently"
		}
	}
	return true, ""
}

// Mixed says that an input is of several clusters.
func Mixed(c *analyze.Ctx) string {
	cs, err := identity.OfSet.Get(c)
	if err != nil || !cs.Several() {
		return ""
	}
	return "the inputs are of several clusters; analyze each alone (BUN102)"
}

// Inventory returns the report's facts. parts are the clusters of a mixed input,
// none when there is one cluster.
func Inventory(e *analyze.Engine, parts []Part) map[string]any {
	out := map[string]any{}
	rows := []report.NodeInventory{}
	for _, n := range e.Set().Nodes {
		c := e.Ctx(n)
		row := report.NodeInventory{Node: n.Name, Roles: []string{}, Inputs: []string{}, Components: []report.Component{}}
		for _, in := range n.Inputs() {
			row.Inputs = append(row.Inputs, in.ID)
		}
		if a := c.AsOf(); !a.Time.IsZero() {
			row.AsOf, row.AsOfSource, row.AsOfDetail = &a.Time, a.Source, a.Detail
		}
		if d, err := staticpod.Manifests.Get(c); err == nil {
			for _, name := range staticpod.Components() {
				if p := d.Component(name); p != nil {
					row.Components = append(row.Components, report.Component{Name: name, Version: p.ImageTag(), Path: p.File().Path})
				}
			}
			if d.ControlPlane() {
				row.Roles = append(row.Roles, "control-plane")
			}
			if p := d.Component(staticpod.Etcd); p != nil {
				row.Roles = append(row.Roles, "etcd")
				row.DataDir, _ = etcddir.HostPaths(p)
			}
		}
		if n.StoreOnly {
			row.Roles = append(row.Roles, "database only")
		}
		rows = append(rows, row)
	}
	out[report.FactInventory] = rows
	if cfg, err := running.Config.Get(e.Ctx(nil)); err == nil {
		topo := report.Topology{
			KubernetesVersion: cfg.KubernetesVersion, ControlPlaneEndpoint: cfg.ControlPlaneEndpoint,
			Etcd: "stacked", Source: cfg.Ref("").Path,
		}
		if cfg.External() {
			topo.Etcd, topo.EtcdEndpoints = "external", cfg.Etcd.External.Endpoints
		}
		out[report.FactTopology] = topo
	}
	certs := pki.Table(e.Ctx(nil), func(n *bundle.Node) (time.Time, bool) {
		a := e.AsOf(n)
		return a.Time, !a.Time.IsZero()
	})
	if len(certs) > 0 {
		out[report.FactCertificates] = certs
	}
	if st := Stores(e); len(st) > 0 {
		out[report.FactStore] = st
	}
	if len(parts) == 0 {
		parts = []Part{{Engine: e}}
	}
	inPresent(parts, out)
	if v := versions(e); len(v) > 0 {
		out[report.FactVersions] = v
	}
	return out
}
