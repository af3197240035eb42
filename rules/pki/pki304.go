package pki

import (
	"fmt"
	"path"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI304", Name: "static-pod-uses-admin-kubeconfig", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "The VIP provider depends on an administrator's kubeconfig",
		Why: "A static pod that holds admin.conf or super-admin.conf stops with that certificate, and the virtual address with it. " +
			"super-admin.conf bypasses RBAC and exists on the first control-plane node only: it was meant for the minutes of kubeadm init, because " +
			"since 1.29 admin.conf has no rights before its binding is made.",
		Fix: "Give the pod a kubeconfig of its own with the rights it needs (leases in kube-system; services for load balancing) and renew it with " +
			"the others. As a first step put admin.conf back in place of super-admin.conf, one node at a time.",
		Links: []string{"https://github.com/kube-vip/kube-vip/issues/684", "https://github.com/kube-vip/kube-vip/issues/938"}, Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{kubeconfig.Files, creds.Files},
	Run:   podKubeconfig,
})

func podKubeconfig(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	k, okFiles := kubeconfig.Files.In(p)
	n, _ := creds.Files.In(p)
	pods := 0
	for _, pod := range d.Pods() {
		if pod.Component() != "" {
			continue
		}
		for i, v := range pod.Spec.Volumes {
			if v.HostPath == nil {
				continue
			}
			file := path.Clean("/" + v.HostPath.Path)
			if path.Dir(file) != "/etc/kubernetes" || !strings.HasSuffix(file, ".conf") {
				continue
			}
			pods++
			if !okFiles {
				p.Unknown(bundle.KindKubeconfig, p.Node(), bundle.NotCollected, file)
				continue
			}
			onePod(p, pod, pod.Ref(fmt.Sprintf("/spec/volumes/%d/hostPath/path", i)), file, k, n)
		}
	}
	if pods == 0 {
		return p.NotApplicable("no static pod beside the control plane's uses a kubeconfig of /etc/kubernetes")
	}
	return nil
}

func onePod(p *analyze.Pass, pod *staticpod.Pod, ref bundle.Ref, file string, k *kubeconfig.Node, n *creds.Node) {
	base := path.Base(file)
	subject := "static pod " + pod.Name
	see := analyze.See(ref, "hostPath: "+file)
	if _, err := p.Node().Stat(file); bundle.IsAbsent(err) {
		why := ""
		if base == "super-admin.conf" {
			why = ": kubeadm writes it on the first control-plane node only"
		}
		p.Report(analyze.Finding{Subject: subject, Severity: report.High, Evidence: []analyze.Evidence{see},
			Message: fmt.Sprintf("the static pod %s mounts %s, which is not on this node%s", pod.Name, file, why)})
		return
	}
	var cred *creds.Credential
	if n != nil {
		for _, c := range n.Credentials {
			if c.Config != nil && c.Config.File.Origin == file {
				cred = c
			}
		}
	}
	ev := []analyze.Evidence{see}
	if cred != nil && cred.Cert() != nil {
		ev = append(ev, analyze.Expect(cred.Ref(), lifetime(cred.Leaf)))
		now, ok := asOf(p, p.Node())
		if ok && now.After(cred.Cert().NotAfter) {
			p.Report(analyze.Finding{Subject: subject, Severity: report.High, Evidence: ev, ObservedAt: cred.Cert().NotAfter,
				Message: fmt.Sprintf("the static pod %s uses %s, whose certificate %s", pod.Name, file, ended(cred, now))})
			return
		}
	}
	c := k.Get(file)
	if c == nil || c.Role != kubeconfig.Admin && c.Role != kubeconfig.SuperAdmin {
		return
	}
	what := "a cluster administrator's credential"
	if c.Role == kubeconfig.SuperAdmin {
		what = "a credential that bypasses RBAC and that kubeadm writes on the first node only"
	}
	p.Report(analyze.Finding{Subject: subject, Severity: report.Medium, Evidence: ev,
		Message: fmt.Sprintf("the static pod %s permanently uses %s: %s", pod.Name, base, what)})
}
