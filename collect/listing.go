//go:build linux

package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"coldplane/bundle/archive"
)

func bytesTrim(b []byte) []byte { return bytes.TrimSpace(b) }

// listings notes what lies in etcd's data directories and in kubeadm's working
// directory. The latter holds copies of whole databases and, after dry runs,
// private keys: its files are never opened.
func (r *run) listings(ctx context.Context, s *sink) error {
	any := false
	for _, d := range r.paths.dataDirs {
		if fi, err := r.root.stat(d); err == nil && fi.IsDir() {
			s.recordDir(d)
			any = r.list(ctx, s, d, 0, true) || any
		} else if err != nil && errors.Is(err, fs.ErrNotExist) {
			s.setAbsent(d)
		}
	}
	if fi, err := r.root.lstat(kubeDir + "/tmp"); err == nil && fi.IsDir() {
		any = r.list(ctx, s, kubeDir+"/tmp", 0, false) || any
	}
	for _, d := range []string{"/var/lib/kubelet/pods", "/var/lib/containerd"} {
		s.recordDir(d)
	}
	if !any {
		return errNothing
	}
	return ctx.Err()
}

// recordDir notes a directory itself: its mode is evidence.
func (s *sink) recordDir(d string) {
	if fi, err := s.run.root.lstat(d); err == nil && fi.IsDir() {
		s.record(archive.Entry{Path: entryPath(d), Treatment: archive.Directory, Source: sourceOf(d, fi, "")})
	}
}

// list records every entry of a directory tree, opening none. The database of a
// data directory is left to the source that copies it.
func (r *run) list(ctx context.Context, s *sink, dir string, depth int, data bool) bool {
	names, more, err := r.root.readdir(dir, maxListing)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			s.fail(dir, err)
		}
		return false
	}
	slices.Sort(names)
	for _, n := range names {
		if ctx.Err() != nil {
			return true
		}
		p := path.Join(dir, n)
		fi, err := r.root.lstat(p)
		if err != nil {
			continue
		}
		link := ""
		e := archive.Entry{Path: entryPath(p), Treatment: archive.Dropped, Rule: "listed"}
		switch {
		case fi.IsDir():
			e.Treatment = archive.Directory
		case fi.Mode()&fs.ModeSymlink != 0:
			link, _ = r.root.readlink(p)
			e.Treatment = archive.LinkOnly
		}
		e.Source = sourceOf(p, fi, link)
		if !(data && r.storeOf() && (strings.HasSuffix(p, "/member/snap/db") || strings.HasSuffix(dir, "/member/snap") && strings.HasSuffix(n, ".snap"))) {
			s.record(e)
		}
		if fi.IsDir() && depth < 6 {
			r.list(ctx, s, p, depth+1, data)
		}
	}
	if more {
		s.cap("directory-entries")
	} else {
		s.setDir(dir)
	}
	return true
}

// storeOf reports whether the etcd source will decide about databases and raft
// snapshots.
func (r *run) storeOf() bool {
	return r.o.Etcd != EtcdNone && r.skipped(&source{name: "etcd"}) == ""
}

// plan lists what a run would look at.
func (r *run) plan(ctx context.Context) (out []PlanItem) {
	size := func(p string) int64 {
		if fi, err := r.root.stat(p); err == nil && fi.Mode().IsRegular() {
			return fi.Size()
		}
		return 0
	}
	dir := func(name, treatment, d string) {
		names, _, err := r.root.readdir(d, maxFiles)
		if err != nil {
			return
		}
		slices.Sort(names)
		for _, n := range names {
			p := path.Join(d, n)
			if fi, err := r.root.lstat(p); err == nil && fi.Mode().IsRegular() {
				out = append(out, PlanItem{name, p, fi.Size(), treatment})
			}
		}
	}
	for _, d := range r.paths.manifests {
		dir("manifests", "redacted", d)
	}
	for _, d := range r.paths.pki {
		dir("pki", "certificates kept, keys as fingerprints", d)
		dir("pki", "certificates kept, keys as fingerprints", d+"/etcd")
	}
	dir("kubeconfigs", "redacted", kubeDir)
	for _, p := range []string{kubeletDir + "/config.yaml", kubeletDir + "/kubeadm-flags.env", "/etc/containerd/config.toml"} {
		if n := size(p); n > 0 {
			out = append(out, PlanItem{"kubelet", p, n, "redacted"})
		}
	}
	for _, d := range r.paths.dataDirs {
		if n := size(d + "/member/snap/db"); n > 0 {
			out = append(out, PlanItem{"etcd", d + "/member/snap/db", n, string(r.o.Etcd)})
		}
	}
	pods, _, _ := r.root.readdir(podLogs, maxListing)
	slices.Sort(pods)
	for _, p := range pods {
		if !strings.HasPrefix(p, "kube-system_") {
			continue
		}
		cs, _, _ := r.root.readdir(path.Join(podLogs, p), 100)
		for _, c := range cs {
			fsn, _, _ := r.root.readdir(path.Join(podLogs, p, c), 500)
			for _, f := range fsn {
				full := path.Join(podLogs, p, c, f)
				if n := size(full); n > 0 {
					out = append(out, PlanItem{"logs", full, min(n, r.o.LogBytes), "secret shapes masked"})
				}
			}
		}
	}
	for _, s := range r.sources() {
		if s.live && r.skipped(&s) == "" {
			out = append(out, PlanItem{s.name, s.what, 0, "derived"})
		}
	}
	return out
}

// A PlanItem is one thing a collection would look at.
type PlanItem struct {
	Source    string
	What      string
	Bytes     int64
	Treatment string
}

func (p PlanItem) String() string {
	return fmt.Sprintf("%-12s %12d  %-40s %s", p.Source, p.Bytes, p.Treatment, p.What)
}
