package sta

import (
	"fmt"
	"path"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/report"
)

// kubeletRepeats is how long before the end of the kubelet's log its word still
// counts: it looks at the directory every 20 seconds (pkg/kubelet/config/file.go).
const kubeletRepeats = 2 * time.Minute

// toldByKubelet takes the kubelet's word where the manifests themselves are not
// in the input: a required one it cannot read, or a directory that is not there.
// It repeats itself, so the end of its log counts.
func toldByKubelet(p *analyze.Pass) {
	l, err := logs.OnNode.Try(p, p.Node())
	if err != nil {
		return
	}
	var end time.Time
	for _, s := range l.Of(signature.Kubelet) {
		if s.Result.Last.After(end) {
			end = s.Result.Last
		}
	}
	newest := map[string]logs.At{}
	for _, h := range l.Hits(signature.Kubelet, "K01", "K02", "K03") {
		if file := h.Value("path"); file != "" && end.Sub(h.Time) <= kubeletRepeats {
			newest[file] = h
		}
	}
	for _, c := range staticpod.Components() {
		for file, h := range newest {
			if name := strings.TrimSuffix(path.Base(file), path.Ext(file)); name != c || h.Stat.Sig.ID != "K01" {
				continue
			}
			sev, state, more := weigh(p, c)
			p.Report(analyze.Finding{Subject: c + " manifest", Severity: sev, Confidence: report.Probable, ObservedAt: h.Time,
				Message:  fmt.Sprintf("the kubelet cannot read %s: %s%s", file, detail(h.Value("err")), state),
				Evidence: append([]analyze.Evidence{h.See()}, more...), Fix: regenerate(c, path.Dir(file), path.Base(file))})
		}
	}
	for _, id := range []string{"K02", "K03"} {
		h, ok := l.Last(signature.Kubelet, id)
		if !ok || end.Sub(h.Time) > kubeletRepeats {
			continue
		}
		dir := h.Value("path")
		if dir == "" {
			dir = "its static-pod directory"
		}
		p.Report(analyze.Finding{Subject: "kubelet static-pod directory", Severity: report.High, Confidence: report.Probable, ObservedAt: h.Time,
			Message:  fmt.Sprintf("the kubelet finds no manifests: it cannot read %s", dir),
			Evidence: []analyze.Evidence{h.See()},
			Fix:      []report.Step{{Text: "See whether the directory is there and is the one with the manifests.", Command: "grep staticPodPath /var/lib/kubelet/config.yaml; ls -la /etc/kubernetes/manifests"}}})
		return
	}
}

func detail(err string) string {
	if err == "" {
		return "it could not be decoded"
	}
	return err
}
