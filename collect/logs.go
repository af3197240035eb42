//go:build linux

package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"coldplane/bundle/archive"
)

const podLogs = "/var/log/pods"

// controlPlane are names of pods whose logs are taken besides the static ones.
var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-vip", "haproxy", "keepalived", "kube-proxy", "coredns", "cloud-controller-manager"}

// logs takes the logs of the control plane's containers straight from the disk,
// so that they do not depend on a runtime that answers.
func (r *run) logs(ctx context.Context, s *sink) error {
	names, _, err := r.root.readdir(podLogs, maxListing)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			s.setAbsent(podLogs)
			return errNothing
		}
		return err
	}
	slices.Sort(names)
	for _, pod := range names {
		if !strings.HasPrefix(pod, "kube-system_") || !slices.ContainsFunc(controlPlane, func(c string) bool { return strings.HasPrefix(strings.TrimPrefix(pod, "kube-system_"), c) }) {
			continue
		}
		dir := path.Join(podLogs, pod)
		containers, _, err := r.root.readdir(dir, 100)
		if err != nil {
			s.fail(dir, err)
			continue
		}
		slices.Sort(containers)
		for _, c := range containers {
			r.containerLogs(ctx, s, path.Join(dir, c))
		}
	}
	return ctx.Err()
}

func (r *run) containerLogs(ctx context.Context, s *sink, dir string) {
	files, _, err := r.root.readdir(dir, 500)
	if err != nil {
		s.fail(dir, err)
		return
	}
	slices.Sort(files)
	since := r.o.Now().Add(-r.o.Since)
	newest := ""
	var newestTime time.Time
	for _, f := range files {
		if fi, err := r.root.stat(path.Join(dir, f)); err == nil && fi.ModTime().After(newestTime) {
			newest, newestTime = f, fi.ModTime()
		}
	}
	for _, f := range files {
		p := path.Join(dir, f)
		fi, err := r.root.stat(p)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.fail(p, err)
		case !fi.Mode().IsRegular():
			s.look(p)
		case strings.HasSuffix(f, ".gz"):
			s.record(archive.Entry{Path: entryPath(p), Treatment: archive.Dropped, Rule: "rotated", Source: sourceOf(p, fi, "")})
		case fi.ModTime().Before(since) && f != newest && r.o.Root == "/":
			s.record(archive.Entry{Path: entryPath(p), Treatment: archive.Dropped, Rule: "older than --since", Source: sourceOf(p, fi, "")})
		default:
			s.takeLog(ctx, p)
		}
	}
	s.setDir(dir)
}

// takeLog takes a log of any size: of one over the limit its beginning and its
// end, with a line between that says how much is left out. The size is taken
// once; what is appended meanwhile is not.
func (s *sink) takeLog(ctx context.Context, p string) {
	f, fi, err := s.run.root.open(p)
	if err != nil {
		s.failed1(p, fi, err)
		return
	}
	defer f.Close()
	size, limit := fi.Size(), s.run.o.LogBytes
	t := s.textWriter()
	e := archive.Entry{Path: entryPath(p), Treatment: archive.Redacted, Rule: "text", Source: sourceOf(p, fi, "")}
	var n int64
	if size <= limit {
		n, err = copyRange(ctx, t, f, size, s.run.o.Rate)
	} else {
		head := limit / 8
		tail := limit - head
		var k int64
		n, err = copyRange(ctx, t, f, head, s.run.o.Rate)
		if err == nil {
			fmt.Fprintf(t, "\n[coldplane: %d bytes left out]\n", size-limit)
			k, err = copyRange(ctx, t, io.NewSectionReader(f, size-tail, tail), tail, s.run.o.Rate)
			n += k
		}
		e.Treatment, e.Rule = archive.Truncated, "head and tail"
		s.cap("log-bytes")
	}
	s.didRead(n)
	dropCache(f)
	if err == nil && n < min(size, limit) {
		e.Error = "the file became shorter while it was read"
	}
	if err == nil || n > 0 && ctx.Err() != nil {
		if err != nil {
			e.Treatment, e.Error = archive.Truncated, clean(err.Error())
		}
		if derr := t.done(e); derr != nil {
			s.fail(p, derr)
		}
		return
	}
	s.failed1(p, fi, err)
}

// journal takes the journals of kubelet, runtime and kernel.
func (r *run) journal(ctx context.Context, s *sink) error {
	base := []string{"--no-pager", "--utc", "-o", "short-iso-precise", "-q"}
	if r.o.Root != "/" {
		dir := ""
		for _, d := range []string{"/var/log/journal", "/run/log/journal"} {
			if fi, err := r.root.lstat(d); err == nil && fi.IsDir() {
				dir = d
				break
			}
			s.setAbsent(d)
		}
		if dir == "" {
			return errNothing
		}
		base = append(base, "-D", path.Join(r.root.path, dir))
	} else {
		base = append(base, "--since", r.o.Now().Add(-r.o.Since).UTC().Format("2006-01-02 15:04:05"))
	}
	any := false
	for _, j := range []struct {
		name string
		args []string
	}{
		{"kubelet", []string{"-u", "kubelet"}},
		{"containerd", []string{"-u", "containerd"}},
		{"crio", []string{"-u", "crio"}},
		{"kernel", []string{"-k"}},
		{"etcd", []string{"-u", "etcd"}},
	} {
		t := s.textWriter()
		err := stream(ctx, 25*time.Second, r.o.LogBytes, t, "journalctl", append(slices.Clone(base), j.args...)...)
		e := archive.Entry{Path: "journal/" + j.name + ".log", Treatment: archive.Redacted, Rule: "text"}
		switch {
		case errors.Is(err, errNoProgram):
			s.note("journalctl: %v", err)
			return errNothing
		case errors.Is(err, errTooMuch):
			// The newest lines count: take the end instead of the beginning.
			t = s.textWriter()
			if err := stream(ctx, 25*time.Second, r.o.LogBytes, t, "journalctl", append(slices.Clone(base), append(j.args, "-n", fmt.Sprint(r.o.LogBytes/400))...)...); err != nil && !errors.Is(err, errTooMuch) {
				s.fail("journal of "+j.name, err)
				continue
			}
			e.Treatment, e.Rule = archive.Truncated, "newest lines"
			s.cap("journal-bytes")
		case err != nil:
			s.fail("journal of "+j.name, err)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if t.n == 0 && len(t.buf) == 0 {
				continue
			}
			e.Treatment, e.Error = archive.Truncated, clean(err.Error())
		}
		if t.n == 0 && len(bytesTrim(t.buf)) == 0 {
			continue // no such unit
		}
		s.didRead(t.n + int64(len(t.buf)))
		if err := t.done(e); err != nil {
			s.fail(e.Path, err)
			continue
		}
		any = true
	}
	if !any {
		return errNothing
	}
	return ctx.Err()
}
