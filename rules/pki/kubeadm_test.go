package pki

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/facts"
	creds "coldplane/analyze/pki"
	"coldplane/bundle"
	"coldplane/report"
)

// A machine is one node a scenario makes with the real kubeadm.
type machine struct {
	name, address string
	phases        []string
}

// A scenario is a cluster made by the real kubeadm.
type scenario struct {
	name    string
	cluster string // ClusterConfiguration below kubernetesVersion
	nodes   []machine
	after   func(t *testing.T, root string) // a change to the last node
	beta3   bool
}

var stacked = []string{"certs all", "kubeconfig all", "control-plane all", "etcd local"}

func one(phases []string) []machine { return []machine{{"cp1", "10.0.0.11", phases}} }

func scenarios() []scenario {
	const endpoint = "controlPlaneEndpoint: api.k8s.example:6443\n"
	three := []machine{{"cp1", "10.0.0.11", stacked}, {"cp2", "10.0.0.12", stacked}, {"cp3", "10.0.0.13", stacked}}
	return []scenario{
		{name: "single", cluster: endpoint, nodes: one(stacked)},
		{name: "v1beta3", cluster: endpoint, nodes: one(stacked), beta3: true},
		{name: "three nodes", cluster: endpoint, nodes: three},
		{name: "ecdsa", cluster: endpoint + "encryptionAlgorithm: ECDSA-P256\n", nodes: one(stacked)},
		{name: "own periods", cluster: endpoint + "certificateValidityPeriod: 4000h\ncaCertificateValidityPeriod: 43800h\n", nodes: one(stacked)},
		{name: "own names", cluster: endpoint + "apiServer: {certSANs: [extra.example, 10.9.8.7]}\nnetworking: {dnsDomain: corp.example, serviceSubnet: 10.200.0.0/16}\netcd: {local: {serverCertSANs: [e.example], peerCertSANs: [p.example]}}\n", nodes: one(stacked)},
		{name: "ipv6", cluster: "networking: {serviceSubnet: 'fd00:10::/112', podSubnet: 'fd00:20::/56'}\n", nodes: []machine{{"cp1", "fd00::11", stacked}}},
		{name: "external etcd", cluster: endpoint + "etcd: {external: {endpoints: ['https://10.0.0.21:2379'], caFile: /etc/etcd/ca.crt, certFile: /etc/etcd/client.crt, keyFile: /etc/etcd/client.key}}\n",
			nodes: one([]string{"certs all", "kubeconfig all", "control-plane all"})},
		{name: "external CA", cluster: endpoint, nodes: one(stacked), after: func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, "etc/kubernetes/pki/ca.key")); err != nil {
				t.Fatal(err)
			}
		}},
	}
}

// TestAgainstKubeadm makes clusters with the real kubeadm and compares: the
// same certificates with the same dates as kubeadm certs check-expiration, and
// no finding at low or above on what kubeadm has just made.
//
// COLDPLANE_KUBEADM names kubeadm programs, separated by colons; the module in
// oracle/ builds them.
func TestAgainstKubeadm(t *testing.T) {
	bins := filepath.SplitList(os.Getenv("COLDPLANE_KUBEADM"))
	if len(bins) == 0 {
		if p, err := exec.LookPath("kubeadm"); err == nil {
			bins = []string{p}
		}
	}
	switch {
	case len(bins) == 0:
		t.Skip("no kubeadm in PATH or COLDPLANE_KUBEADM; oracle/ can build one: go run . -build-only -work DIR VERSION")
	case os.Getuid() != 0:
		t.Skip("kubeadm --rootfs needs root")
	}
	for _, bin := range bins {
		out, err := exec.CommandContext(t.Context(), bin, "version", "-o", "short").Output()
		if err != nil {
			t.Fatalf("%s: %v", bin, err)
		}
		version := strings.TrimSpace(string(out))
		var minor int
		if _, err := fmt.Sscanf(version, "v1.%d.", &minor); err != nil {
			t.Fatalf("%s says it is %q", bin, version)
		}
		for _, s := range scenarios() {
			if s.beta3 && minor >= 37 || !s.beta3 && minor < 31 {
				continue // the configuration's version is not read by this kubeadm
			}
			t.Run(version+"/"+s.name, func(t *testing.T) { againstKubeadm(t, bin, version, s) })
		}
	}
}

func runKubeadm(t *testing.T, bin, root string, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), bin, append(args, "--config", "/etc/full.yaml", "--rootfs", root)...)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("kubeadm %v: %v\n%s", args, err, errs.String())
	}
	return out
}

func againstKubeadm(t *testing.T, bin, version string, s scenario) {
	top := t.TempDir()
	api := "v1beta4"
	if s.beta3 {
		api = "v1beta3"
	}
	first, last := "", ""
	for _, m := range s.nodes {
		root := filepath.Join(top, "nodes", m.name)
		cluster := fmt.Sprintf("apiVersion: kubeadm.k8s.io/%s\nkind: ClusterConfiguration\nkubernetesVersion: %s\n%s", api, version, s.cluster)
		full := cluster + fmt.Sprintf("---\napiVersion: kubeadm.k8s.io/%s\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: %q}\nnodeRegistration: {name: %s, criSocket: 'unix:///run/containerd/containerd.sock'}\n", api, m.address, m.name)
		put(t, filepath.Join(root, "etc/full.yaml"), full)
		put(t, filepath.Join(top, "kubeadm-config.yaml"), cluster)
		if first != "" { // a joining node gets the CAs and the service-account key
			for _, f := range []string{"ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt", "etcd/ca.key"} {
				b, err := os.ReadFile(filepath.Join(first, "etc/kubernetes/pki", f))
				if err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(root, "etc/kubernetes/pki", f), string(b))
			}
		}
		for _, p := range m.phases {
			runKubeadm(t, bin, root, append([]string{"init", "phase"}, strings.Fields(p)...)...)
		}
		if first == "" {
			first = root
		}
		last = root
	}
	if s.after != nil {
		s.after(t, last)
	}
	now := time.Now().UTC()
	set, err := bundle.Open(t.Context(), []string{top}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	e := analyze.New(t.Context(), set, analyze.Options{AsOf: now, Witnesses: facts.Witnesses(), Kubeadm: facts.Kubeadm,
		Defect: func(what string, stack []byte) { t.Errorf("defect: %s\n%s", what, stack) }})
	findings, _, err := e.Evaluate(Rules.List())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Severity.AtLeast(report.Low) {
			t.Errorf("on a fresh tree: %s %s %s %q: %s", f.Rule, f.Severity, f.Node, f.Subject, f.Message)
		}
	}
	rows := creds.Table(e.Ctx(nil), func(*bundle.Node) (time.Time, bool) { return now, true })
	for _, m := range s.nodes {
		sameAsKubeadm(t, m.name, rows, runKubeadm(t, bin, filepath.Join(top, "nodes", m.name), "certs", "check-expiration", "-o", "json"))
	}
}

// sameAsKubeadm compares the table with what check-expiration says.
func sameAsKubeadm(t *testing.T, node string, rows []report.Certificate, out []byte) {
	t.Helper()
	type entry struct {
		Name     string    `json:"name"`
		Expires  time.Time `json:"expirationDate"`
		External bool      `json:"externallyManaged"`
		Missing  bool      `json:"missing"`
	}
	var said struct {
		Certificates []entry `json:"certificates"`
		CAs          []entry `json:"certificateAuthorities"`
	}
	if err := json.Unmarshal(out, &said); err != nil || len(said.Certificates) < 6 || len(said.CAs) < 2 {
		t.Fatalf("check-expiration: %v, %d certificates, %d CAs", err, len(said.Certificates), len(said.CAs))
	}
	for _, c := range append(said.Certificates, said.CAs...) {
		var row *report.Certificate
		for i := range rows {
			if rows[i].Node == node && rows[i].Role == c.Name {
				row = &rows[i]
				break
			}
		}
		switch {
		case c.Missing && (row == nil || row.Missing):
		case row == nil:
			t.Errorf("%s: %s is not in the table", node, c.Name)
		case !row.NotAfter.Equal(c.Expires):
			t.Errorf("%s: %s ends %v, kubeadm says %v", node, c.Name, row.NotAfter, c.Expires)
		case row.External != c.External && !row.CA:
			t.Errorf("%s: %s externally managed %v, kubeadm says %v", node, c.Name, row.External, c.External)
		case row.Chain == report.Bad || row.KeyMatch == report.Bad:
			t.Errorf("%s: %s chain %s, key %s", node, c.Name, row.Chain, row.KeyMatch)
		}
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
