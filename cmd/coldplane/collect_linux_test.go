package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"coldplane/bundle/archive"
)

// program builds the binary once.
func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the program many times")
	}
	p := filepath.Join(t.TempDir(), "coldplane")
	if out, err := exec.Command("go", "build", "-o", p, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return p
}

func nodeTree(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	for p, c := range map[string]string{
		"etc/hostname": name + "\n",
		"etc/kubernetes/manifests/kube-scheduler.yaml":                                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-scheduler\n",
		"var/log/pods/kube-system_kube-scheduler-" + name + "_1/kube-scheduler/0.log": strings.Repeat("2026-01-01T00:00:00.0Z stderr F I0101 00:00:00.0 1 x.go:1] a line of a log\n", 60_000),
	} {
		full := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(c), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func stateOf(t *testing.T, p string) *archive.Verification {
	t.Helper()
	f, err := os.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := archive.Unwrap(f, nil)
	if err != nil {
		return &archive.Verification{State: archive.Altered, Problems: []string{err.Error()}}
	}
	return archive.Verify(r, archive.Limits{})
}

// Killed at any moment, a collection leaves no half bundle under a final name;
// ended by a signal, it leaves a valid one named interrupted, or none.
func TestKilledCollections(t *testing.T) {
	bin, root := program(t), nodeTree(t, "cp1")
	r := rand.New(rand.NewPCG(1, 2))
	whole, interrupted, none := 0, 0, 0
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM}
	rounds := 60
	if os.Getenv("COLDPLANE_TORTURE") == "full" { // 300 killed, 60 interrupted
		signals = slices.Concat(slices.Repeat([]syscall.Signal{syscall.SIGKILL}, 10), []syscall.Signal{syscall.SIGINT, syscall.SIGTERM})
		rounds = 360
	}
	ended := map[syscall.Signal]map[string]int{syscall.SIGKILL: {}, syscall.SIGINT: {}, syscall.SIGTERM: {}}
	for i := range rounds {
		sig := signals[i%len(signals)]
		dir := t.TempDir()
		out := filepath.Join(dir, "b.tar.zst")
		c := exec.Command(bin, "collect", "--root", root, "-o", out, "--rate", "20000000", "--reserve", "0", "--low-priority=false")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		_ = c.Process.Signal(sig) // it may have ended
		_ = c.Wait()              // the exit code is not the question
		if _, err := os.Stat(out); err == nil {
			whole++
			ended[sig]["whole"]++
			if v := stateOf(t, out); v.State != archive.Intact {
				t.Errorf("round %d, %s: the bundle is %s: %v", i, sig, v.State, v.Problems)
			}
		} else if _, err := os.Stat(out + archive.InterruptedSuffix); err == nil {
			interrupted++
			ended[sig]["interrupted"]++
			v := stateOf(t, out+archive.InterruptedSuffix)
			if v.Manifest == nil || v.Manifest.Status != archive.Interrupted || len(v.Problems) != 1 {
				t.Errorf("round %d, %s: the interrupted bundle: %v", i, sig, v.Problems)
			}
		} else {
			none++
			ended[sig]["none"]++
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); sig != syscall.SIGKILL {
			for _, l := range left {
				if strings.HasSuffix(l, archive.PartialSuffix) || strings.Contains(l, "spool") {
					t.Errorf("round %d, %s: left behind: %s", i, sig, l)
				}
			}
		}
	}
	t.Logf("%d rounds: %d whole, %d interrupted, %d none; %v", rounds, whole, interrupted, none, ended)
	if interrupted == 0 {
		t.Error("no round was interrupted: the test does not test")
	}
}

// A small disk: the collection ends with an error, and nothing is left.
func TestSmallDisk(t *testing.T) {
	bin, root := program(t), nodeTree(t, "cp1")
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a small tmpfs: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	for _, reserve := range []string{"-1", "0"} {
		c := exec.Command(bin, "collect", "--root", root, "-o", filepath.Join(dir, "b.tar"), "--compress", "none", "--rate", "0", "--reserve", reserve, "--spool", t.TempDir())
		var stderr bytes.Buffer
		c.Stderr = &stderr
		err := c.Run()
		if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != exitFailure {
			t.Errorf("reserve %s: %v, want exit code %d: %s", reserve, err, exitFailure, stderr.String())
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("reserve %s: left on the disk: %v", reserve, left)
		}
	}
}

// Three nodes over the system's ssh, one of which fails.
func TestNodesOverSSH(t *testing.T) {
	bin := program(t)
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("no ssh client here")
	}
	srv := startSSH(t)
	roots := t.TempDir()
	for _, n := range []string{"cp1", "cp2"} {
		if err := os.Rename(nodeTree(t, n), filepath.Join(roots, n)); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir()
	before, _ := filepath.Glob("/tmp/.coldplane.*")
	c := exec.Command(bin, "collect", "--nodes", "cp1,cp2,cp3", "-o", out, "--root", roots+"/%n", "--ssh-config", srv.config, "--rate", "0", "--reserve", "0", "--case-id", "it's a \"case\"; $(touch "+out+"/pwned)")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Run()
	if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != exitFailure {
		t.Errorf("%v, want exit code %d because cp3 fails:\n%s", err, exitFailure, stderr.String())
	}
	for _, n := range []string{"cp1", "cp2"} {
		m, _ := filepath.Glob(filepath.Join(out, "coldplane-"+n+"-*.tar.zst"))
		if len(m) != 1 {
			t.Fatalf("%s: %v\n%s", n, m, stderr.String())
		}
		if v := stateOf(t, m[0]); v.State != archive.Intact || v.Header.Node != n || !strings.Contains(v.Header.CaseID, `it's a "case"`) {
			t.Errorf("%s: %s %v %+v", n, v.State, v.Problems, v.Header)
		}
	}
	if all, _ := os.ReadDir(out); len(all) != 2 {
		t.Errorf("in the directory: %v", all)
	}
	for _, d := range []string{"/run", "/tmp", "/var/tmp"} {
		after, _ := filepath.Glob(d + "/.coldplane.*")
		// The far side removes its copy when its session ends, which may be
		// moments after ours.
		for i := 0; i < 100 && len(after) > len(before); i++ {
			time.Sleep(100 * time.Millisecond)
			after, _ = filepath.Glob(d + "/.coldplane.*")
		}
		if len(after) > len(before) {
			t.Errorf("left behind on the node: %v", after)
		}
	}
	if !strings.Contains(stderr.String(), "cp3: failed") {
		t.Errorf("stderr: %s", stderr.String())
	}
}

// A collection writes nothing but its output and an unlinked spool file.
func TestWritesNothingElse(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	bin, root, dir := program(t), nodeTree(t, "cp1"), t.TempDir()
	trace := filepath.Join(t.TempDir(), "trace")
	out, err := exec.Command(strace, "-f", "-qq", "-o", trace, "-e", "trace=open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,truncate,chmod,fchmodat,chown,fchownat,mknod,mknodat,utimensat",
		bin, "collect", "--root", root, "-o", filepath.Join(dir, "b.tar.zst"), "--rate", "0", "--reserve", "0").CombinedOutput()
	if err != nil {
		t.Skipf("cannot trace here: %v: %s", err, out)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	changes, spool := 0, 0
	for line := range strings.Lines(string(b)) {
		opens := strings.Contains(line, " open") || strings.Contains(line, "(open")
		if opens && !strings.Contains(line, "O_WRONLY") && !strings.Contains(line, "O_RDWR") && !strings.Contains(line, "O_CREAT") || strings.Contains(line, " resumed>") {
			continue
		}
		if strings.Contains(line, ".coldplane-spool-") {
			spool++
		}
		switch {
		case strings.Contains(line, dir): // the output and, beside it, the spool
			changes++
		case strings.Contains(line, "/proc/self/oom_score_adj"), strings.Contains(line, "/dev/null"), strings.Contains(line, "---"), strings.Contains(line, "+++"):
		default:
			t.Errorf("writes elsewhere: %s", line)
		}
	}
	if changes < 3 || spool < 2 { // created and renamed; created and removed
		t.Errorf("%d changes, %d of them of the spool: the trace shows too little:\n%s", changes, spool, b)
	}
}
