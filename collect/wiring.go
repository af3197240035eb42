//go:build linux

package collect

import (
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// wiring is where a node keeps its things, read from the manifests and the
// kubelet's configuration before anything is collected.
type wiring struct {
	manifests []string // static-pod directories
	dataDirs  []string // etcd's, on the host
	pki       []string
	named     []string            // absolute paths that flags and volumes name
	flags     map[string][]string // flag -> values, of all manifests
	endpoints []string            // etcd's client URLs
	endpoint  string              // host:port of the API's endpoint, as admin.conf or the kubelet has it
	local     []string            // host:port of this node's API server
	api       []string            // host:port of other API servers that kubeconfigs name
	sockets   []string            // CRI
	external  bool                // etcd runs elsewhere
}

const (
	kubeDir    = "/etc/kubernetes"
	kubeletDir = "/var/lib/kubelet"
)

var (
	flagLine   = regexp.MustCompile(`--([a-z][a-z0-9-]*)[= ]["']?([^"'\s]+)`)
	pathLine   = regexp.MustCompile(`(?m)^\s*-?\s*path:\s*["']?(/[^"'\s#]+)`)
	staticPath = regexp.MustCompile(`(?m)^staticPodPath:\s*["']?([^"'\s#]+)`)
	criLine    = regexp.MustCompile(`(?m)(?:^containerRuntimeEndpoint:\s*["']?|--container-runtime-endpoint[= ]["']?)([^"'\s#]+)`)
	serverKV   = regexp.MustCompile(`(?m)^\s*server:\s*["']?(https://[^"'\s#]+)`)
)

func (r *nodeRoot) small(abs string) []byte {
	f, fi, err := r.open(abs)
	if err != nil || fi.Size() > smallFile {
		if f != nil {
			f.Close()
		}
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, smallFile))
	return b
}

func findWiring(r *nodeRoot) wiring {
	w := wiring{flags: map[string][]string{}, manifests: []string{kubeDir + "/manifests"}, pki: []string{kubeDir + "/pki", kubeletDir + "/pki"}}
	kubelet := r.small(kubeletDir + "/config.yaml")
	if m := staticPath.FindSubmatch(kubelet); m != nil {
		w.manifests = add(w.manifests, path.Clean(string(m[1])))
	}
	for _, b := range [][]byte{kubelet, r.small(kubeletDir + "/kubeadm-flags.env"), r.small("/etc/default/kubelet"), r.small("/etc/sysconfig/kubelet"), r.small(kubeletDir + "/instance-config.yaml")} {
		for _, m := range criLine.FindAllSubmatch(b, -1) {
			w.sockets = add(w.sockets, strings.TrimPrefix(string(m[1]), "unix://"))
		}
	}
	w.sockets = add(w.sockets, "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock", "/var/run/containerd/containerd.sock", "/var/run/crio/crio.sock")
	etcd := false
	for _, dir := range w.manifests {
		names, _, _ := r.readdir(dir, 200)
		slices.Sort(names)
		for _, n := range names {
			b := r.small(path.Join(dir, n))
			if len(b) == 0 || strings.HasPrefix(n, ".") {
				continue
			}
			isEtcd := strings.Contains(string(b), "--data-dir=")
			etcd = etcd || isEtcd
			for _, m := range flagLine.FindAllSubmatch(b, -1) {
				w.flags[string(m[1])] = add(w.flags[string(m[1])], string(m[2]))
				if strings.HasPrefix(string(m[2]), "/") {
					w.named = add(w.named, path.Clean(string(m[2])))
				}
			}
			for _, m := range pathLine.FindAllSubmatch(b, -1) {
				p := path.Clean(string(m[1]))
				w.named = add(w.named, p)
				if isEtcd && strings.Count(p, "/") > 1 && !strings.Contains(p, "pki") && !strings.Contains(p, "ssl") && !strings.Contains(p, "healthz") {
					w.dataDirs = add(w.dataDirs, p)
				}
			}
		}
	}
	w.dataDirs = add(w.dataDirs, "/var/lib/etcd")
	for _, d := range w.flags["data-dir"] {
		w.dataDirs = add(w.dataDirs, path.Clean(d))
	}
	// A restore leaves the old directory beside the new one.
	for _, d := range slices.Clone(w.dataDirs) {
		if path.Dir(d) == "/" {
			continue
		}
		names, _, _ := r.readdir(path.Dir(d), 500)
		for _, n := range names {
			if strings.HasPrefix(n, "etcd") {
				w.dataDirs = add(w.dataDirs, path.Join(path.Dir(d), n))
			}
		}
	}
	for _, v := range w.flags["etcd-servers"] {
		for _, u := range strings.Split(v, ",") {
			w.endpoints = add(w.endpoints, u)
		}
	}
	for _, v := range w.flags["listen-client-urls"] {
		for _, u := range strings.Split(v, ",") {
			w.endpoints = add(w.endpoints, u)
		}
	}
	w.external = !etcd && len(w.flags["etcd-servers"]) > 0
	for _, n := range []string{"admin.conf", "super-admin.conf", "kubelet.conf", "controller-manager.conf"} {
		if m := serverKV.FindSubmatch(r.small(kubeDir + "/" + n)); m != nil {
			a := strings.TrimPrefix(string(m[1]), "https://")
			if w.endpoint == "" && n != "controller-manager.conf" {
				w.endpoint = a
			}
			w.api = add(w.api, a)
		}
	}
	for _, a := range w.flags["advertise-address"] {
		port := "6443"
		if p := w.flags["secure-port"]; len(p) > 0 && p[0] != "0" {
			port = p[0]
		}
		w.local = add(w.local, hostPort(a, port), hostPort("127.0.0.1", port))
	}
	for _, f := range []string{"etcd-cafile", "etcd-certfile", "etcd-keyfile", "trusted-ca-file", "client-ca-file", "tls-cert-file"} {
		for _, p := range w.flags[f] {
			if d := path.Dir(path.Clean(p)); strings.HasPrefix(d, "/etc/") && d != kubeDir && !strings.HasPrefix(d, kubeDir+"/pki") && d != "/etc" {
				w.pki = add(w.pki, d)
			}
		}
	}
	for _, d := range []string{"/etc/ssl/etcd/ssl", "/etc/etcd/pki", "/etc/etcd/ssl"} {
		if fi, err := r.stat(d); err == nil && fi.IsDir() {
			w.pki = add(w.pki, d)
		}
	}
	return w
}

func hostPort(h, p string) string {
	if strings.Contains(h, ":") {
		h = "[" + h + "]"
	}
	return h + ":" + p
}

func add(list []string, more ...string) []string {
	for _, m := range more {
		if m != "" && !slices.Contains(list, m) && len(list) < 1000 {
			list = append(list, m)
		}
	}
	return list
}
