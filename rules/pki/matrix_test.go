package pki

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/analyzetest"
	"coldplane/analyze/facts"
	"coldplane/analyze/pki/pkitest"
	"coldplane/bundle"
	"coldplane/report"
)

// tree writes a generated tree as an archive and returns its path.
func tree(t testing.TB, base, spec string) string {
	t.Helper()
	files, err := analyzetest.Base(base)
	if err != nil {
		t.Fatal(err)
	}
	files["x!pki"] = []byte(spec)
	if err := pkitest.Make(files); err != nil {
		t.Fatal(err)
	}
	return archive(t, files)
}

func archive(t testing.TB, files map[string][]byte) string {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Name: p, Mode: 0o600, Size: int64(len(files[p])), ModTime: pkitest.Made}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[p]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "in.tar")
	if err := os.WriteFile(name, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ask asks the family's rules over an input.
func ask(t testing.TB, in string, asOf time.Time) []report.Finding {
	t.Helper()
	set, err := bundle.Open(t.Context(), []string{in}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	e := analyze.New(t.Context(), set, analyze.Options{
		AsOf: asOf, Witnesses: facts.Witnesses(), Kubeadm: facts.Kubeadm,
		Defect: func(what string, stack []byte) { t.Errorf("defect: %s\n%s", what, stack) },
	})
	findings, results, err := e.Evaluate(Rules.List())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Outcome == report.Errored {
			t.Errorf("%s: %s", r.Rule, r.Detail)
		}
	}
	return findings
}

func brief(fs []report.Finding) []string {
	out := []string{}
	for _, f := range fs {
		if f.Severity.AtLeast(report.Medium) {
			out = append(out, fmt.Sprintf("%s %s %s", f.Rule, f.Severity, f.Subject))
		}
	}
	slices.Sort(out)
	return out
}

// TestFreshTreesAreSilent: what kubeadm makes, in every layout and key form,
// gives nothing at medium or above, and neither does a rotation done right.
func TestFreshTreesAreSilent(t *testing.T) {
	for _, base := range []string{"single", "ha", "external"} {
		for _, spec := range []string{
			"", "keys files", "keys redacted", "life 700d", "apiserver via=mid\netcd/server via=mid", "kubelet.conf inline=yes\nat 2026-05-28T00:00:00Z",
			"ca add=old1\nfront-proxy-ca first=old2\netcd/ca add=old3", "root/.kube/config same=admin.conf", "ca absent=key\netcd/ca absent=key\nfront-proxy-ca absent=key",
			"sa add=old", "apiserver alg=rsa2048\netcd/peer alg=ed25519", "kubelet.crt cn=cp1@1",
			"apiserver san+=extra.example,10.9.8.7", "root/.kube/config cadata=foreign ca=foreign server=https://elsewhere.example to=2026-04-02",
		} {
			t.Run(base+"/"+strings.ReplaceAll(spec, "\n", ";"), func(t *testing.T) {
				t.Parallel()
				for _, f := range ask(t, tree(t, base, spec), analyzetest.DefaultAsOf) {
					if f.Severity.AtLeast(report.Low) {
						t.Errorf("%s %s %s %q: %s", f.Rule, f.Severity, f.Node, f.Subject, f.Message)
					}
				}
			})
		}
	}
}

// TestMatrix breaks each certificate kubeadm makes in each way and expects
// the one finding of the catalogue and nothing else at medium or above.
func TestMatrix(t *testing.T) {
	type cert struct{ name, subject, expired, chain, unreadable string }
	// What an unusable certificate of each kind weighs, by the catalogue.
	certs := []cert{
		{"apiserver", "apiserver.crt", "critical", "critical", "critical"},
		{"apiserver-etcd-client", "apiserver-etcd-client.crt", "critical", "critical", "critical"},
		{"apiserver-kubelet-client", "apiserver-kubelet-client.crt", "critical", "critical", "critical"},
		{"front-proxy-client", "front-proxy-client.crt", "high", "critical", "critical"},
		{"etcd/server", "etcd/server.crt", "critical", "critical", "critical"},
		{"etcd/peer", "etcd/peer.crt", "critical", "critical", "critical"},
		{"etcd/healthcheck-client", "etcd/healthcheck-client.crt", "medium", "medium", "medium"},
		{"admin.conf", "admin.conf", "high", "high", "critical"},
		{"super-admin.conf", "super-admin.conf", "high", "high", "critical"},
		{"controller-manager.conf", "controller-manager.conf", "critical", "critical", "critical"},
		{"scheduler.conf", "scheduler.conf", "critical", "critical", "critical"},
		{"kubelet-client-current.pem", "kubelet-client-current.pem", "critical", "critical", "critical"},
	}
	for _, c := range certs {
		server := c.name == "apiserver" || c.name == "etcd/server" || c.name == "etcd/peer"
		life := "PKI101"
		if strings.HasPrefix(c.name, "kubelet-client") {
			life = "PKI302"
		}
		ways := map[string]struct {
			change string
			want   []string
		}{
			"expired":       {"from=2025-05-01 to=2026-05-01", []string{life + " " + c.expired}},
			"not-yet-valid": {"from=2026-07-01 to=2027-07-01", []string{life + " " + c.expired}},
			"wrong-CA":      {"ca=other", []string{"PKI202 " + c.chain}},
			"wrong-key":     {"beside=stranger", []string{"PKI201 critical"}},
			"weak":          {"alg=rsa1024", nil}, // low
			"unparsable":    {"raw=garbage", []string{"PKI201 " + c.unreadable}},
			"negative":      {"serial=negative", []string{"PKI201 " + c.unreadable}},
			"absent":        {"absent=cert", nil}, // STA202's
			"wrong-EKU":     {"usage=code", []string{"PKI206 high"}},
			"soon":          {"to=2026-06-08", []string{"PKI102 high"}},
		}
		if server {
			sev := "critical"
			ways["missing-SAN"] = struct {
				change string
				want   []string
			}{"san=nobody.example", []string{"PKI205 " + sev}}
		}
		switch {
		case c.name == "etcd/healthcheck-client":
			ways["wrong-EKU"] = struct {
				change string
				want   []string
			}{"usage=code", []string{"PKI206 medium"}}
			ways["soon"] = struct {
				change string
				want   []string
			}{"to=2026-06-08", []string{"PKI102 medium"}}
		case c.name == "kubelet-client-current.pem":
			ways["soon"] = struct {
				change string
				want   []string
			}{"from=2025-06-10 to=2026-06-08", []string{"PKI302 medium"}}
			ways["absent"] = struct {
				change string
				want   []string
			}{"absent=cert", nil} // the whole directory is gone: not collected
		}
		for way, w := range ways {
			if strings.HasSuffix(c.name, ".conf") && way == "absent" {
				continue // an absent kubeconfig is no certificate
			}
			t.Run(c.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				var want []string
				for _, x := range w.want {
					want = append(want, x+" "+c.subject)
				}
				if want == nil {
					want = []string{}
				}
				got := brief(ask(t, tree(t, "ha", "cp2:"+c.name+" "+w.change), analyzetest.DefaultAsOf))
				if !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}
