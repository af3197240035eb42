package nod

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD109", Name: "undersized-host", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The host is smaller than a control-plane node needs",
		Why:   "kubeadm asks for two CPUs and 1700 MB. etcd maps its database into memory: with less memory than its quota the page cache thrashes when the database grows. Few descriptors end long-lived watches.",
		Fix:   "Give the machine more CPUs or memory, or raise the limit (LimitNOFILE of the runtime's unit).",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/hardware/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "cpus", Default: 2, Unit: "CPUs", Source: "kubeadm, cmd/kubeadm/app/constants ControlPlaneNumCPU"},
		{Name: "memory", Default: 1700, Unit: "MB", Source: "kubeadm, cmd/kubeadm/app/constants ControlPlaneMem"},
		{Name: "files", Default: 65536, Unit: "descriptors", Source: "etcd hardware guide"},
	},
	Needs: []analyze.Need{host.Machine},
	Wants: []analyze.Need{staticpod.Manifests, host.Processes, logs.OnNode},
	Run:   undersized,
})

func undersized(p *analyze.Pass) error {
	m, _ := host.Machine.In(p)
	if !controlPlane(p) {
		return p.NotApplicable("no control-plane manifest on this node")
	}
	if m.CPUs == 0 && m.MemTotal == 0 {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "CPUs and memory of the machine")
	}
	if m.CPUs > 0 && float64(m.CPUs) < p.Param("cpus") {
		p.Report(analyze.Finding{Subject: "CPUs", Severity: report.Medium, Message: fmt.Sprintf("the machine has %d CPU, kubeadm asks for %.0f", m.CPUs, p.Param("cpus")),
			Evidence: []analyze.Evidence{analyze.See(m.Ref.At(0, "/cpus"), fmt.Sprint(m.CPUs))}})
	}
	if m.MemTotal > 0 && float64(m.MemTotal) < p.Param("memory")*1e6 {
		p.Report(analyze.Finding{Subject: "memory", Severity: report.Medium, Message: fmt.Sprintf("the machine has %s of memory, kubeadm asks for %.0f MB", bundle.FormatBytes(m.MemTotal), p.Param("memory")),
			Evidence: []analyze.Evidence{analyze.See(m.Ref.At(0, "/memTotal"), bundle.FormatBytes(m.MemTotal))}})
	} else if q, ref, ok := quota(p); ok && m.MemTotal > 0 && m.MemTotal < q {
		p.Report(analyze.Finding{Subject: "memory", Severity: report.Medium, Message: fmt.Sprintf("the machine has %s of memory, less than etcd's quota of %s", bundle.FormatBytes(m.MemTotal), bundle.FormatBytes(q)),
			Evidence: []analyze.Evidence{analyze.See(m.Ref.At(0, "/memTotal"), bundle.FormatBytes(m.MemTotal)), analyze.Expect(ref, "quota-backend-bytes")}})
	}
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil {
		if at, ok := n.Last(signature.Etcd|signature.APIServer|signature.Kubelet, "X09"); ok {
			p.Report(analyze.Finding{Subject: "descriptors", Severity: report.Medium, Confidence: report.Probable, Message: "a program ran out of descriptors" + when(at.Time),
				Evidence: []analyze.Evidence{at.See()}, ObservedAt: at.Time})
			return nil
		}
	}
	if l, err := host.Processes.Try(p, p.Node()); err == nil {
		for i, pr := range l.Items {
			if (pr.Comm == "etcd" || pr.Comm == "kube-apiserver") && pr.FileLimit > 0 && float64(pr.FileLimit) < p.Param("files") {
				p.Report(analyze.Finding{Subject: "descriptors of " + pr.Comm, Severity: report.Low, Message: fmt.Sprintf("%s may open %d files only", pr.Comm, pr.FileLimit),
					Evidence: []analyze.Evidence{analyze.See(l.Refs[i], fmt.Sprintf("fileLimit %d", pr.FileLimit))}})
			}
		}
	}
	return nil
}

// quota is etcd's quota where a flag sets it.
func quota(p *analyze.Pass) (int64, bundle.Ref, bool) {
	m, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		return 0, bundle.Ref{}, false
	}
	pod := m.Component(staticpod.Etcd)
	if pod == nil {
		return 0, bundle.Ref{}, false
	}
	f, ok := pod.Setting("quota-backend-bytes")
	var v int64
	if !ok {
		return 0, bundle.Ref{}, false
	}
	if _, err := fmt.Sscan(f.Value, &v); err != nil || v <= 0 {
		return 0, bundle.Ref{}, false
	}
	return v, f.Ref, true
}
