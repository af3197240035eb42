//go:build linux

package collect

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"coldplane/bundle/archive"
	"coldplane/bundle/decode/spki"
	"coldplane/bundle/redact"
)

// manifests takes every file of the static-pod directories: a backup or an editor's
// rest in there is run by the kubelet too.
func (r *run) manifests(ctx context.Context, s *sink) error {
	any := false
	for _, dir := range r.paths.manifests {
		ok := s.takeDir(ctx, dir, func(abs string) { s.takeManifest(ctx, abs) })
		any = any || ok
	}
	if !any {
		return errNothing
	}
	return ctx.Err()
}

// takeManifest also follows a link, because the kubelet does.
func (s *sink) takeManifest(ctx context.Context, abs string) {
	s.take(ctx, abs, smallFile, asManifest)
	if li, err := s.run.root.lstat(abs); err == nil && li.Mode()&fs.ModeSymlink != 0 {
		s.follow(ctx, abs, asManifest)
	}
}

// follow takes the target of a link, under its own path.
func (s *sink) follow(ctx context.Context, abs string, f treatment) {
	for range 8 {
		t, err := s.run.root.readlink(abs)
		if err != nil {
			return
		}
		if !path.IsAbs(t) {
			t = path.Join(path.Dir(abs), t)
		}
		abs = path.Clean(t)
		li, err := s.run.root.lstat(abs)
		if err != nil {
			s.setAbsent(abs)
			return
		}
		if li.Mode()&fs.ModeSymlink == 0 {
			if !forbidden(abs) {
				s.take(ctx, abs, smallFile, f)
			}
			return
		}
		s.look(abs)
	}
}

// forbidden are paths that are never read, whatever names them.
func forbidden(abs string) bool {
	return strings.HasPrefix(abs, kubeDir+"/tmp/") || abs == kubeDir+"/tmp" || strings.HasPrefix(abs, "/proc/") || strings.HasPrefix(abs, "/sys/") || strings.HasPrefix(abs, "/dev/") ||
		abs == "/etc/shadow" || abs == "/etc/gshadow" || strings.HasPrefix(abs, "/etc/ssh/") || strings.Contains(abs, "/.ssh/")
}

// pki takes certificates, and of keys the fingerprint of their public half.
func (r *run) pki(ctx context.Context, s *sink) error {
	any := false
	for _, dir := range r.paths.pki {
		any = s.pkiDir(ctx, dir, 0) || any
	}
	if !any {
		return errNothing
	}
	return ctx.Err()
}

func (s *sink) pkiDir(ctx context.Context, dir string, depth int) bool {
	return s.takeDir(ctx, dir, func(abs string) {
		fi, err := s.run.root.lstat(abs)
		switch {
		case err == nil && fi.IsDir() && depth < 4:
			s.look(abs)
			s.pkiDir(ctx, abs, depth+1)
		case err == nil && fi.Mode()&fs.ModeSymlink != 0:
			s.look(abs)
			s.follow(ctx, abs, asPEM)
		default:
			s.take(ctx, abs, smallFile, pkiTreatment(abs))
		}
	})
}

var pemName = regexp.MustCompile(`\.(crt|cer|cert|pem|key|pub|csr|ca|ca-bundle)$|^(ca|sa|tls|server|client|peer)`)

func pkiTreatment(abs string) treatment {
	if pemName.MatchString(path.Base(abs)) {
		return asPEM
	}
	return func(s *sink, abs string, fi fs.FileInfo, b []byte) ([]byte, archive.Treatment, string) {
		if strings.Contains(string(b[:min(len(b), 4096)]), "-----BEGIN ") {
			return asPEM(s, abs, fi, b)
		}
		return nil, archive.Dropped, "not-pem"
	}
}

// asKubeconfig keeps the wiring and the certificates of a kubeconfig and turns
// its keys into records.
func asKubeconfig(s *sink, abs string, fi fs.FileInfo, b []byte) ([]byte, archive.Treatment, string) {
	for _, k := range redact.KubeconfigKeys(b) {
		f := spki.Parse(k.PEM)
		for _, bl := range f.Blocks {
			if bl.Kind == spki.PrivateKey {
				s.key(keyOf(abs, k.User, fi, bl))
			}
		}
		clear(k.PEM)
	}
	rule := "kubeconfig"
	if !redact.Kubeconfig(b) {
		rule += ", not parseable: skeleton"
	}
	return b, archive.Redacted, rule
}

func (r *run) kubeconfigs(ctx context.Context, s *sink) error {
	any := s.takeDir(ctx, kubeDir, func(abs string) {
		fi, err := r.root.lstat(abs)
		switch {
		case err == nil && fi.IsDir(), err == nil && fi.Mode()&fs.ModeSymlink != 0:
			s.look(abs)
		case kubeconfigName[path.Base(abs)]:
			s.take(ctx, abs, smallFile, asKubeconfig)
		case strings.Contains(path.Base(abs), "encrypt") || strings.Contains(path.Base(abs), "enc"):
			s.take(ctx, abs, smallFile, asEncryption)
		default:
			s.take(ctx, abs, smallFile, guess)
		}
	})
	homes := []string{"/root"}
	if names, _, err := r.root.readdir("/home", 200); err == nil {
		for _, n := range names {
			homes = append(homes, path.Join("/home", n))
		}
	}
	for _, h := range homes {
		s.take(ctx, h+"/.kube/config", smallFile, asKubeconfig)
	}
	if !any {
		return errNothing
	}
	return ctx.Err()
}

// kubeconfigName are the kubeconfigs that kubeadm writes; others are told by
// their content.
var kubeconfigName = map[string]bool{"admin.conf": true, "super-admin.conf": true, "kubelet.conf": true, "bootstrap-kubelet.conf": true, "controller-manager.conf": true, "scheduler.conf": true}

// guess tells by its content what a file below /etc/kubernetes is.
func guess(s *sink, abs string, fi fs.FileInfo, b []byte) ([]byte, archive.Treatment, string) {
	head := string(b[:min(len(b), 8192)])
	switch {
	case strings.Contains(head, "-----BEGIN "):
		return asPEM(s, abs, fi, b)
	case strings.Contains(head, "kind: EncryptionConfig"):
		return asEncryption(s, abs, fi, b)
	case strings.Contains(head, "kind: Config\n") || strings.Contains(head, "current-context:") || strings.Contains(head, "clusters:") || strings.Contains(head, "users:"):
		return asKubeconfig(s, abs, fi, b)
	case strings.Contains(head, "kubeadm.k8s.io/"):
		return asConfig(s, abs, fi, b)
	case strings.Contains(head, "kind: Pod"):
		return asManifest(s, abs, fi, b)
	case strings.Contains(head, "kind:"):
		return asOther(s, abs, fi, b)
	}
	return nil, archive.Dropped, "unknown-file"
}

func (r *run) kubelet(ctx context.Context, s *sink) error {
	s.take(ctx, kubeletDir+"/config.yaml", smallFile, asConfig)
	s.take(ctx, kubeletDir+"/instance-config.yaml", smallFile, asConfig)
	s.take(ctx, kubeletDir+"/kubeadm-flags.env", smallFile, asArguments)
	for _, p := range []string{"/etc/default/kubelet", "/etc/sysconfig/kubelet", "/usr/lib/systemd/system/kubelet.service", "/lib/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service"} {
		s.take(ctx, p, smallFile, asArguments)
	}
	for _, d := range []string{"/usr/lib/systemd/system/kubelet.service.d", "/lib/systemd/system/kubelet.service.d", "/etc/systemd/system/kubelet.service.d"} {
		s.takeDir(ctx, d, func(abs string) { s.take(ctx, abs, smallFile, asArguments) })
	}
	for _, f := range []string{"kubelet"} {
		for _, d := range []string{"/usr/bin/", "/usr/local/bin/"} {
			if _, err := r.root.stat(d + f); err == nil && r.o.Root == "/" {
				if out, err := command(ctx, 10, 4096, d+f, "--version"); err == nil {
					s.add(archive.Entry{Path: "listing/kubelet-version.txt", Treatment: archive.Derived}, redactLine(out))
				} else {
					s.fail(d+f+" --version", err)
				}
				break
			}
		}
	}
	return ctx.Err()
}

func redactLine(b []byte) []byte { redact.Text(b); return b }

func (r *run) runtime(ctx context.Context, s *sink) error {
	s.take(ctx, "/etc/containerd/config.toml", smallFile, asRuntime)
	s.takeDir(ctx, "/etc/containerd/conf.d", func(abs string) { s.take(ctx, abs, smallFile, asRuntime) })
	s.take(ctx, "/etc/crio/crio.conf", smallFile, asRuntime)
	s.takeDir(ctx, "/etc/crio/crio.conf.d", func(abs string) { s.take(ctx, abs, smallFile, asRuntime) })
	s.take(ctx, "/etc/crictl.yaml", smallFile, asArgumentsYAML)
	for _, u := range []string{"containerd", "crio"} {
		for _, d := range []string{"/usr/lib/systemd/system/", "/lib/systemd/system/", "/etc/systemd/system/"} {
			s.take(ctx, d+u+".service", smallFile, asArguments)
			s.takeDir(ctx, d+u+".service.d", func(abs string) { s.take(ctx, abs, smallFile, asArguments) })
		}
	}
	return ctx.Err()
}

var asArgumentsYAML = asText

// system takes a few files that say where the node is.
func (r *run) system(ctx context.Context, s *sink) error {
	for _, p := range []string{"/etc/os-release", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/etc/machine-id", "/etc/fstab"} {
		s.take(ctx, p, 64<<10, asText)
	}
	return ctx.Err()
}

// referenced takes, of files that flags and volumes name, what their kind allows,
// and of all others that they are there.
func (r *run) referenced(ctx context.Context, s *sink) error {
	seen := 0
	for _, p := range r.paths.named {
		if seen++; seen > 500 || ctx.Err() != nil {
			break
		}
		if forbidden(p) || inside(p, r.paths.manifests) || inside(p, r.paths.pki) || inside(p, r.paths.dataDirs) || strings.HasPrefix(p, "/healthz") || strings.HasPrefix(p, "/livez") || strings.HasPrefix(p, "/readyz") || p == "/health" {
			continue
		}
		fi, err := r.root.lstat(p)
		switch {
		case err == nil && fi.Mode()&fs.ModeSymlink != 0:
			s.look(p)
			s.follow(ctx, p, guess)
		case err == nil && fi.Mode().IsRegular() && fi.Size() <= smallFile && !strings.HasSuffix(p, ".log"):
			s.take(ctx, p, smallFile, guess)
		case err == nil && fi.Mode().IsRegular():
			s.record(archive.Entry{Path: entryPath(p), Treatment: archive.Dropped, Rule: "named-by-flag", Source: sourceOf(p, fi, "")})
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			s.fail(p, err)
		default:
			s.look(p)
		}
	}
	return ctx.Err()
}

func inside(p string, dirs []string) bool {
	for _, d := range dirs {
		if p == d || strings.HasPrefix(p, d+"/") {
			return true
		}
	}
	return false
}
