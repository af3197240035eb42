package adm

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/objects"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM402", Name: "kubeadm-rbac-missing", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "A role binding that kubeadm's credentials need is missing",
		Why: "Since 1.29 admin.conf is of the group kubeadm:cluster-admins, which may do nothing without its ClusterRoleBinding; only super-admin.conf goes past RBAC. " +
			"Without the bindings of the bootstrap groups new nodes do not join, and kubelets do not renew their client certificates, which then expire.",
		Fix: "With super-admin.conf (or an admin.conf of system:masters) make the binding again: kubeadm init phase bootstrap-token for those of nodes, kubectl create clusterrolebinding for the administrators.",
		Links: []string{
			"https://kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details/",
			"https://github.com/kubernetes/kubernetes/blob/master/cmd/kubeadm/app/constants/constants.go",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{kubeconfig.Files, running.Config},
	Run:   bootstrapRBAC,
})

// Names of cmd/kubeadm/app/constants.
const (
	adminsBinding  = "kubeadm:cluster-admins" // binding and group, since 1.29
	renewBinding   = "kubeadm:node-autoapprove-certificate-rotation"
	approveBinding = "kubeadm:node-autoapprove-bootstrap"
	joinBinding    = "kubeadm:kubelet-bootstrap"
	builtinBinding = "cluster-admin" // the API server makes it at every start
)

func bootstrapRBAC(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	cfg, err := running.Config.Try(p, nil)
	if err != nil {
		return p.NotApplicable("no kubeadm-config: not a cluster of kubeadm, as far as can be seen")
	}
	l := set.ClusterRoleBindings()
	have := func(name string) bool {
		return slices.ContainsFunc(l.Items, func(o objects.Object[rbacv1.ClusterRoleBinding]) bool { return o.Value.Name == name })
	}
	if !l.Complete() || !have(builtinBinding) {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "the database does not hold the role bindings the API server itself makes; which are missing cannot be told")
		return nil
	}
	place := analyze.Context(set.DB.AtKey(set.Store.Prefix+"/clusterrolebindings/", 0), fmt.Sprintf("%d ClusterRoleBindings", len(l.Items)))
	say := func(name string, sev report.Severity, message string, fix []report.Step, ev ...analyze.Evidence) {
		p.Report(analyze.Finding{Subject: "ClusterRoleBinding " + name, Severity: sev, Message: message, Evidence: append(ev, place), Fix: fix})
	}
	if !have(adminsBinding) {
		if n, ev, ok := adminOf(p); ok {
			say(adminsBinding, report.High, fmt.Sprintf("admin.conf of %s is of the group %s, and the ClusterRoleBinding %s does not exist: it may do nothing", n.Name, adminsBinding, adminsBinding),
				steps("Make the binding with the credential that goes past RBAC.", "kubectl --kubeconfig /etc/kubernetes/super-admin.conf create clusterrolebinding "+adminsBinding+" --clusterrole=cluster-admin --group="+adminsBinding), ev)
		}
	}
	config := analyze.Context(cfg.Ref("/kubernetesVersion"), "kubernetesVersion: "+cfg.KubernetesVersion)
	again := steps("Make the bindings of bootstrap tokens and kubelets again.", "kubeadm init phase bootstrap-token --config full.yaml")
	sev, waiting := report.Low, "" // nobody needs them yet
	evidence := []analyze.Evidence{config}
	if o := pendingKubelet(set); o != nil {
		sev, waiting = report.High, fmt.Sprintf("; the request %s waits for it", o.Value.Name)
		evidence = append([]analyze.Evidence{analyze.See(o.Ref, o.Value.Spec.SignerName+", not approved")}, evidence...)
	}
	if !have(renewBinding) {
		say(renewBinding, sev, "the ClusterRoleBinding "+renewBinding+" does not exist: kubelets' requests to renew their client certificates are not approved, and they expire"+waiting, again, evidence...)
	}
	if sev == report.High {
		sev = report.Medium
	}
	for _, name := range []string{approveBinding, joinBinding} {
		if !have(name) {
			say(name, sev, "the ClusterRoleBinding "+name+" does not exist: new nodes cannot join with a bootstrap token", again, config)
		}
	}
	if v, ok := releases.Parse(cfg.KubernetesVersion); ok && v.Minor >= 37 && !have("kubeadm:apiserver-kubelet-client") {
		say("kubeadm:apiserver-kubelet-client", report.Medium, "the ClusterRoleBinding kubeadm:apiserver-kubelet-client does not exist: with a client certificate made by kubeadm 1.37 the API server may not read logs from kubelets or run commands there", again, config)
	}
	return nil
}

// pendingKubelet is a kubelet's request for a client certificate that nobody
// approved or denied, or nil.
func pendingKubelet(s *objects.Set) *objects.Object[certificatesv1.CertificateSigningRequest] {
	for _, o := range s.CSRs().Items {
		if o.Value.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && len(o.Value.Status.Conditions) == 0 {
			return &o
		}
	}
	return nil
}

// adminOf is a node whose admin.conf needs the binding.
func adminOf(p *analyze.Pass) (*bundle.Node, analyze.Evidence, bool) {
	for _, n := range p.All() {
		files, err := kubeconfig.Files.Try(p, n)
		if err != nil {
			continue
		}
		c := files.Role(kubeconfig.Admin)
		if c == nil {
			continue
		}
		for _, b := range c.Cert.PEM.Blocks {
			if b.Cert != nil && slices.Contains(b.Cert.Subject.Organization, adminsBinding) {
				return n, analyze.See(c.Cert.Ref, fmt.Sprintf("subject %q", b.Cert.Subject.String())), true
			}
		}
	}
	return nil, analyze.Evidence{}, false
}

func steps(text, command string) []report.Step { return []report.Step{{Text: text, Command: command}} }
