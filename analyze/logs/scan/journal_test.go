package scan

import (
	"context"
	"strings"
	"testing"
	"time"

	"coldplane/analyze/logs/signature"
)

// TestSavedJournals: the same entry of the kubelet in every form in which people
// save a journal is found once, at its time, as the kubelet's own.
func TestSavedJournals(t *testing.T) {
	const klog = `E0102 03:04:05.678901     700 file.go:187] "Could not process manifest file" err="no kind" path="/etc/kubernetes/manifests/x.yaml"`
	quoted := strings.ReplaceAll(klog, `"`, `\"`)
	want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	us := "1767323045678901"
	for name, in := range map[string]string{
		"short":             "Jan 02 03:04:05 cp1 kubelet[700]: " + klog + "\n",
		"short-precise":     "Jan 02 03:04:05.678901 cp1 kubelet[700]: " + klog + "\n",
		"short-iso":         "2026-01-02T03:04:05+0000 cp1 kubelet[700]: " + klog + "\n",
		"short-iso-precise": "2026-01-02T03:04:05.678901+00:00 cp1 kubelet[700]: " + klog + "\n",
		"json":              `{"MESSAGE":"` + quoted + `","_SYSTEMD_UNIT":"kubelet.service","SYSLOG_IDENTIFIER":"kubelet","__REALTIME_TIMESTAMP":"` + us + `"}` + "\n",
		"json, time far behind": `{"_CMDLINE":"` + strings.Repeat("x", 3000) + `","MESSAGE":"` + quoted +
			`","SYSLOG_IDENTIFIER":"kubelet","__REALTIME_TIMESTAMP":"` + us + `"}` + "\n",
		"json-pretty": "{\n\t\"__CURSOR\" : \"s=1\",\n\t\"_CMDLINE\" : \"/usr/bin/kubelet\",\n\t\"MESSAGE\" : \"" + quoted +
			"\",\n\t\"SYSLOG_IDENTIFIER\" : \"kubelet\",\n\t\"__REALTIME_TIMESTAMP\" : \"" + us + "\"\n}\n",
		"json-pretty, bytes": "{\n\t\"SYSLOG_IDENTIFIER\" : \"kubelet\",\n\t\"MESSAGE\" : [\n\t\t" + numbers(klog) +
			"\n\t],\n\t\"__REALTIME_TIMESTAMP\" : \"" + us + "\"\n}\n",
		"export": "__CURSOR=s=1\n__REALTIME_TIMESTAMP=" + us + "\nSYSLOG_IDENTIFIER=kubelet\nMESSAGE=" + klog + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(signature.Table())
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Scan(context.Background(), strings.NewReader(in+in), Options{Ref: want.Add(time.Hour), ZoneKnown: true})
			if err != nil || r.Broken != "" {
				t.Fatal(err, r.Broken)
			}
			k := r.Stat("K01")
			if k == nil || k.Count != 2 || k.Program != signature.Kubelet || k.First().Truncate(time.Second) != want {
				t.Fatalf("K01 %+v", k)
			}
			if k.Value(k.Hits[0], "path") != "/etc/kubernetes/manifests/x.yaml" || r.First.Truncate(time.Second) != want {
				t.Errorf("path %q, first %s", k.Value(k.Hits[0], "path"), r.First)
			}
			if n := strings.Count(in, "\n"); k.Hits[0].Line < 1 || k.Hits[1].Line <= k.Hits[0].Line || k.Hits[1].Line > 2*n {
				t.Errorf("lines %d, %d", k.Hits[0].Line, k.Hits[1].Line)
			}
		})
	}
}

// numbers writes bytes as journalctl does for a message that is no text.
func numbers(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if i > 0 {
			b.WriteString(",\n\t\t")
		}
		b.WriteString(decimal(s[i]))
	}
	return b.String()
}

func decimal(c byte) string {
	if c >= 100 {
		return string([]byte{'0' + c/100, '0' + c/10%10, '0' + c%10})
	}
	return string([]byte{'0' + c/10, '0' + c%10})
}
