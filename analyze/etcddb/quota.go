package etcddb

import (
	"fmt"
	"strconv"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// DefaultQuota is etcd's quota when the flag is 0 or absent, in bytes
// (go.etcd.io/etcd/server/v3 storage/quota.go DefaultQuotaBytes). MaxQuota is what
// etcd advises not to exceed.
const (
	DefaultQuota = 2 << 30
	MaxQuota     = 8 << 30
)

// A Quota is the backend quota of a node's member.
type Quota struct {
	Bytes   int64 // in effect; meaningless when Off
	Off     bool  // a negative value switches the quota off
	Set     bool  // somebody chose it
	Assumed bool  // nothing says it: etcd's default
	Source  string
	Ref     bundle.Ref // where it is said; zero when assumed
	Text    string
}

func (q *Quota) set(raw string) bool {
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return false
	}
	q.Bytes, q.Off, q.Set = n, n < 0, n != 0
	if n == 0 {
		q.Bytes = DefaultQuota
	}
	return true
}

// String is the quota with its source, for messages.
func (q *Quota) String() string {
	switch {
	case q.Off:
		return "switched off (" + q.Source + ")"
	case q.Assumed:
		return fmt.Sprintf("%d bytes (etcd's default, assumed)", q.Bytes)
	}
	return fmt.Sprintf("%d bytes (%s)", q.Bytes, q.Source)
}

const quotaFlag, quotaEnv = "quota-backend-bytes", "ETCD_QUOTA_BACKEND_BYTES"

// QuotaOf is the quota of a node's member: the manifest's flag, its environment,
// what a running etcd logged, kubeadm-config, else etcd's default.
var QuotaOf = &analyze.Fact[*Quota]{
	Name:  "etcddb.quota",
	Kinds: []bundle.Kind{bundle.KindManifests},
	Needs: []analyze.Need{staticpod.Manifests, kubeadm.Cluster, logs.OnNode},
	Compute: func(c *analyze.Ctx) (*Quota, error) {
		q := &Quota{}
		if m, err := staticpod.Manifests.Get(c); err == nil {
			if pod := m.Component(staticpod.Etcd); pod != nil {
				if fromPod(pod, q) {
					return q, nil
				}
				// The manifest is there and sets none: etcd takes its default, unless a
				// configuration file says otherwise.
				if _, file := pod.Setting("config-file"); !file {
					q.Bytes, q.Source, q.Ref, q.Text = DefaultQuota, "etcd's default, the manifest sets none", pod.Ref("/spec/containers/0"), "no --"+quotaFlag
					return q, nil
				}
			}
		}
		if fromLog(c, q) {
			return q, nil
		}
		if cfg, err := kubeadm.Cluster.Get(c); err == nil && cfg.Etcd.Local != nil {
			if a, ok := cfg.Etcd.Local.ExtraArgs.Get(quotaFlag); ok && q.set(a.Value) {
				q.Source, q.Ref, q.Text = "kubeadm-config", cfg.Ref("/etcd/local/extraArgs"+a.Pointer), quotaFlag+": "+a.Value
				return q, nil
			}
		}
		return &Quota{Bytes: DefaultQuota, Assumed: true, Source: "etcd's default, assumed"}, nil
	},
}

func fromPod(pod *staticpod.Pod, q *Quota) bool {
	for _, f := range pod.Flags {
		if f.Name == quotaFlag && q.set(f.Value) {
			q.Source, q.Ref, q.Text = "manifest", f.Ref, f.Text()
			return true
		}
	}
	for _, e := range pod.Env {
		if e.Name == quotaEnv && q.set(e.Value) {
			q.Source, q.Ref, q.Text = "manifest environment", e.Ref, e.Name+"="+e.Value
			return true
		}
	}
	return false
}

// fromLog takes what the last start of etcd said.
func fromLog(c *analyze.Ctx, q *Quota) bool {
	n, err := logs.OnNode.Get(c)
	if err != nil {
		return false
	}
	hit, ok := n.Last(signature.Etcd, "E69")
	if !ok || !q.set(hit.Value("quota-size-bytes")) {
		return false
	}
	q.Source, q.Ref, q.Text = "etcd's log", hit.Ref(), hit.Excerpt()
	return true
}
