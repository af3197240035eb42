package rst

import (
	"encoding/pem"
	"fmt"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "RST107", Name: "restored-data-foreign-identity", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "Restored data does not fit this node's identity material",
		Why: "The store holds what an earlier set of credentials made: the CA that pods trust, the bindings that give admin.conf its rights. Restored beside newer files, pods reject the API " +
			"server or the administrator has no rights.",
		Fix:   "Restore pki and the encryption configuration of the same backup. If only the binding is missing, create it with super-admin.conf.",
		Links: []string{"https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{kubeconfig.Files},
	Run:   foreignIdentity,
})

const (
	adminsBinding = "kubeadm:cluster-admins"
	caPath        = "/etc/kubernetes/pki/ca.crt"
)

func foreignIdentity(p *analyze.Pass) error {
	s, ok := objects.Cluster.In(p)
	if !ok {
		return nil
	}
	why, back := restored(s.Store)
	if !back {
		return p.NotApplicable("nothing shows that the store was restored")
	}
	looked := storedCA(p, s, why)
	for _, n := range p.Nodes() {
		ks, err := kubeconfig.Files.Try(p, n)
		if err != nil {
			continue
		}
		admin := ks.Role(kubeconfig.Admin)
		if admin == nil || !hasGroup(admin, adminsBinding) {
			continue
		}
		looked = true
		if s.Has(s.Store.Prefix+"/clusterrolebindings/"+adminsBinding) || !s.ClusterRoleBindings().Complete() {
			continue
		}
		p.Report(analyze.Finding{
			Node: n, Subject: admin.Name, Severity: report.High,
			Message:  fmt.Sprintf("%s belongs to group %s, and the restored store (%s) has no ClusterRoleBinding of that name: the administrator has no rights", admin.Name, adminsBinding, why),
			Evidence: []analyze.Evidence{analyze.See(admin.Cert.Ref, "O="+adminsBinding), analyze.Expect(s.DB.AtKey(s.Store.Prefix+"/clusterrolebindings/"+adminsBinding, 0), "not in the store")},
			Fix: []report.Step{{Text: "Create the binding with the credentials that need none.",
				Command: "kubectl --kubeconfig /etc/kubernetes/super-admin.conf create clusterrolebinding " + adminsBinding + " --clusterrole=cluster-admin --group=" + adminsBinding}},
		})
	}
	if !looked {
		p.Unknown(bundle.KindPKI, nil, bundle.NotCollected, "neither the cluster CA nor admin.conf of a node")
	}
	return nil
}

func hasGroup(c *kubeconfig.Config, group string) bool {
	for _, b := range c.Cert.PEM.Blocks {
		if b.Cert != nil && slices.Contains(b.Cert.Subject.Organization, group) {
			return true
		}
	}
	return false
}

// storedCA compares the CA that the store gives to pods with the one on disk.
func storedCA(p *analyze.Pass, s *objects.Set, why string) bool {
	cm, err := s.ConfigMap("kube-system", "kube-root-ca.crt")
	if err != nil {
		return false
	}
	want := blocks([]byte(cm.Value.Data["ca.crt"]))
	if len(want) == 0 {
		return false
	}
	looked := false
	for _, n := range p.Nodes() {
		f, err := n.Stat(caPath)
		if err != nil {
			continue
		}
		b, err := f.Bytes(1 << 20)
		if err != nil {
			continue
		}
		got := blocks(b)
		if len(got) == 0 {
			continue
		}
		looked = true
		if slices.ContainsFunc(got, func(x string) bool { return slices.Contains(want, x) }) {
			continue
		}
		p.Report(analyze.Finding{
			Node: n, Subject: "cluster CA", Severity: report.Critical,
			Message:  fmt.Sprintf("the store was restored (%s) and gives pods another CA than %s: they will reject the API server", why, caPath),
			Evidence: []analyze.Evidence{analyze.See(f.Ref(), "the CA on disk"), analyze.Expect(cm.Ref, "the CA in the store")},
		})
	}
	return looked
}

// blocks returns the certificates of a PEM text, as DER.
func blocks(b []byte) (out []string) {
	for len(out) < 100 {
		var blk *pem.Block
		if blk, b = pem.Decode(b); blk == nil {
			return out
		}
		if blk.Type == "CERTIFICATE" {
			out = append(out, string(blk.Bytes))
		}
	}
	return out
}
