package rst

import (
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

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
	looked = unknownNodes(p, s, why) || looked
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
	want, from := publishedCA(s)
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
			Evidence: []analyze.Evidence{analyze.See(f.Ref(), "the CA on disk"), analyze.Expect(from, "the CA in the store")},
		})
	}
	return looked
}

// publishedCA is the CA that the store gives to pods, or else to joining nodes.
func publishedCA(s *objects.Set) (certs []string, from bundle.Ref) {
	if cm, err := s.ConfigMap("kube-system", "kube-root-ca.crt"); err == nil {
		if certs = blocks([]byte(cm.Value.Data["ca.crt"])); len(certs) > 0 {
			return certs, cm.Ref
		}
	}
	cm, err := s.ConfigMap("kube-public", "cluster-info")
	if err != nil {
		return nil, bundle.Ref{}
	}
	var info struct {
		Clusters []struct {
			Cluster struct {
				CA []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	text := cm.Value.Data["kubeconfig"]
	if len(text) > 64<<10 || yaml.Unmarshal([]byte(text), &info) != nil {
		return nil, bundle.Ref{}
	}
	for _, c := range info.Clusters {
		certs = append(certs, blocks(c.Cluster.CA)...)
	}
	return certs, cm.Ref
}

// unknownNodes compares the Nodes of the store with the machines of the evidence:
// when it knows none of them it is a snapshot of another cluster.
func unknownNodes(p *analyze.Pass, s *objects.Set, why string) bool {
	nodes := s.Nodes()
	if !nodes.Complete() || len(nodes.Items) == 0 {
		return false
	}
	known := map[string]bool{}
	var names []string
	for _, n := range nodes.Items {
		known[n.Value.Name] = true
		names = append(names, n.Value.Name)
	}
	var here []string
	for _, n := range p.Nodes() {
		if n.Name == "" {
			continue
		}
		if known[n.Name] {
			return true
		}
		here = append(here, n.Name)
	}
	if len(here) == 0 {
		return false
	}
	p.Report(analyze.Finding{
		Subject: "nodes", Severity: report.High, Confidence: report.Possible,
		Message: fmt.Sprintf("the store was restored (%s) and knows none of the machines here (%s): its Nodes are %s; the snapshot may be of another cluster",
			why, strings.Join(here, ", "), strings.Join(names[:min(len(names), 5)], ", ")),
		Evidence: []analyze.Evidence{analyze.See(nodes.Items[0].Ref, fmt.Sprintf("%d Node objects", len(names)))},
	})
	return true
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
