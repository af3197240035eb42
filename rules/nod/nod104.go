package nod

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD104", Name: "swap-conflicts-with-kubelet", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Low},
	Doc: analyze.Doc{
		Title: "Swap is on and the kubelet does not accept that",
		Why:   "With failSwapOn, the default, the kubelet ends at its next start when any swap is active. The node works until then: swap often comes back with a reboot through /etc/fstab.",
		Fix:   "swapoff -a and remove the line from /etc/fstab; or allow swap on purpose (failSwapOn: false with memorySwap.swapBehavior) and keep etcd out of it.",
		Links: []string{"https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{host.Machine, kubelet.File, logs.OnNode},
	Run:   swapOn,
})

func swapOn(p *analyze.Pass) error {
	looked := false
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil && n.Has(signature.Kubelet) {
		looked = true
		if at, ok := n.Last(signature.Kubelet, "K16"); ok {
			p.Report(analyze.Finding{Subject: "swap", Severity: report.High, Message: "the kubelet ended because swap is on" + when(at.Time),
				Evidence: []analyze.Evidence{at.See()}, ObservedAt: at.Time})
			return nil
		}
	}
	m, err := host.Machine.Try(p, p.Node())
	if err != nil || m.Swaps == nil {
		if !looked {
			p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "the active swap areas")
		}
		return nil
	}
	for i, s := range m.Swaps {
		if len(s.Device) >= 9 && s.Device[:9] == "/dev/zram" {
			continue
		}
		ev := []analyze.Evidence{analyze.See(m.Ref.At(0, fmt.Sprintf("/swaps/%d", i)), s.Device+" "+bundle.FormatBytes(s.Size))}
		cfg, ok := kubelet.File.In(p)
		if !ok {
			p.Unknown(bundle.KindKubelet, p.Node(), bundle.NotCollected, "whether the kubelet accepts swap")
			return nil
		}
		if cfg.FailSwapOn != nil && !*cfg.FailSwapOn {
			ev = append(ev, analyze.Context(cfg.Doc.Ref("/failSwapOn"), "failSwapOn: false"))
			if !controlPlaneSwap(cfg) {
				return nil
			}
			p.Report(analyze.Finding{Subject: "swap", Severity: report.Low, Message: "swap is on and allowed on a control-plane node: " + s.Device, Evidence: ev})
			return nil
		}
		p.Report(analyze.Finding{Subject: "swap", Severity: report.High,
			Message:  fmt.Sprintf("swap %s is active and failSwapOn is not false: the kubelet will not start again", s.Device),
			Evidence: append(ev, analyze.Context(cfg.Doc.Ref("/failSwapOn"), "failSwapOn is true by default"))})
		return nil
	}
	return nil
}

// controlPlaneSwap reports whether pods may use swap.
func controlPlaneSwap(c *kubelet.Config) bool {
	return c.MemorySwap.SwapBehavior != "" && c.MemorySwap.SwapBehavior != "NoSwap"
}
