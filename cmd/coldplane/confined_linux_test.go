package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"filippo.io/age"

	"coldplane/cmd/coldplane/confine"
)

// runProgram runs the built program and returns what a user sees.
func runProgram(t *testing.T, c *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// tarOf packs a directory.
func tarOf(t *testing.T, dir, recipient string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "node.tar")
	if out, err := exec.Command("tar", "-C", dir, "-cf", name, ".").CombinedOutput(); err != nil {
		t.Skipf("no tar here: %v: %s", err, out)
	}
	if recipient == "" {
		return name
	}
	r, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var enc bytes.Buffer
	w, err := age.Encrypt(&enc, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".age", enc.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name + ".age"
}

func TestConfined(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("commands are confined on Linux only")
	}
	bin := program(t)
	t.Run("answers", func(t *testing.T) { testConfinedAnswers(t, bin) })
	t.Run("limits", func(t *testing.T) { testConfinedLimits(t, bin) })
	t.Run("a reader that stops", func(t *testing.T) {
		c := exec.Command(bin, "analyze", incident, "-o", "json")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		c.Stdout = w
		var errs strings.Builder
		c.Stderr = &errs
		err = c.Run()
		w.Close()
		if err == nil || strings.Contains(errs.String(), "error") {
			t.Errorf("%v: %s", err, errs.String())
		}
	})
	t.Run("touches nothing else", func(t *testing.T) { testConfinedTouchesNothingElse(t, bin) })
}

// A confined command answers what the same command answers in one process, for
// every way of naming files, and leaves nothing behind.
func testConfinedAnswers(t *testing.T, bin string) {
	unchanged(t, incident)
	at := []string{"--as-of", "2026-05-12T09:30:00Z", "--fail-on", "none"}
	dir, temp := t.TempDir(), t.TempDir()
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(bin, args...)
		c.Env = append(os.Environ(), "TMPDIR="+temp)
		return c
	}

	out := filepath.Join(dir, "r.json")
	code, text, errs := runProgram(t, command(append([]string{"analyze", "-v", incident, "--report", "json=" + out, "--report", "html=" + filepath.Join(dir, "r.html")}, at...)...))
	if code != exitOK || !strings.Contains(errs, "msg=confined") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	_, wantText, _ := coldplane(t, append([]string{"analyze", incident}, at...)...)
	if text != wantText {
		t.Error("the report of the confined command differs from that of the unconfined one")
	}
	if b, err := os.ReadFile(out); err != nil || strings.Contains(string(b), "Landlock") {
		t.Errorf("%s: %v, or it names the confinement", out, err)
	}

	// An encrypted tar, its identity through a pipe, members in the spool.
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	enc := tarOf(t, incident, id.Recipient().String())
	c := command(append([]string{"analyze", enc, "--identity", "/dev/stdin", "--limit", "memory-entry=1KiB", "-o", "json"}, at...)...)
	c.Stdin = strings.NewReader(id.String() + "\n")
	if code, text, errs = runProgram(t, c); code != exitOK || !strings.Contains(text, `"findings"`) {
		t.Errorf("encrypted: exit %d: %s", code, errs)
	}

	// The second opinion is a child of the confined child.
	if code, text, errs = runProgram(t, command("etcd", "status", incident)); code != exitOK || !strings.Contains(text, "bbolt opens it, etcd starts on it") {
		t.Errorf("second opinion: exit %d: %s%s", code, text, errs)
	}

	// A report into a device is written, not put in its place.
	if code, _, errs = runProgram(t, command(append([]string{"analyze", incident, "--out", os.DevNull}, at...)...)); code != exitOK {
		t.Errorf("device: exit %d: %s", code, errs)
	}
	if fi, err := os.Lstat(os.DevNull); err != nil || fi.Mode().IsRegular() {
		t.Fatalf("%s was replaced", os.DevNull)
	}

	// Exit codes pass through, and a report that is not written leaves no file.
	if code, _, _ = runProgram(t, command("analyze", incident)); code != exitFindings {
		t.Errorf("findings: exit %d", code)
	}
	none := filepath.Join(dir, "none.json")
	if code, _, _ = runProgram(t, command("analyze", filepath.Join(dir, "missing"), "--out", none)); code != exitUsage {
		t.Errorf("no input: exit %d", code)
	}
	if left, _ := filepath.Glob(none + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left in the temp directory: %v", left)
	}
}

// A child that ends at a limit is one line that names the limit, not a crash.
func testConfinedLimits(t *testing.T, bin string) {
	c := exec.Command(bin, "analyze", incident, "--limit", "memory=256MiB")
	code, _, errs := runProgram(t, c)
	if code != exitFailure || !strings.Contains(errs, "limit memory is 256MiB") || strings.Contains(errs, "goroutine") {
		t.Errorf("exit %d: %s", code, errs)
	}
	// 64 GiB of hole in a tar cost no disk and much time.
	hdr := make([]byte, 512)
	copy(hdr, "var/lib/etcd/member/snap/db")
	copy(hdr[100:], "0000600\x000000000\x000000000\x00")
	copy(hdr[124:], "\x80\x00\x00\x00\x00\x00\x00\x0f\x00\x00\x00\x00") // 60 GiB
	copy(hdr[136:], "00000000000\x00        0\x00ustar\x0000")
	sum := 0
	for _, b := range hdr {
		sum += int(b)
	}
	copy(hdr[148:], fmt.Sprintf("%06o\x00 ", sum))
	big := filepath.Join(t.TempDir(), "node.tar")
	if err := os.WriteFile(big, hdr, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 60<<30+2048); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	code, _, errs = runProgram(t, exec.Command(bin, "analyze", big, "--limit", "cpu=1s", "--limit", "entry-bytes=100GiB", "--limit", "archive-bytes=100GiB"))
	if code != exitFailure || !strings.Contains(errs, "limit cpu is 1s") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

var opened = regexp.MustCompile(`\b(?:openat|open|creat|mkdirat|mkdir|symlinkat|linkat|mknodat|renameat2?|unlinkat|rename|unlink|truncate)\((.*)`)

// Reading evidence touches no network and writes nothing but the report and its
// own scratch directory, under a kernel without any network too.
func testConfinedTouchesNothingElse(t *testing.T, bin string) {
	for _, need := range []string{"strace", "unshare"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("%s is missing", need)
		}
	}
	dir, temp := t.TempDir(), t.TempDir()
	trace := filepath.Join(t.TempDir(), "trace")
	out := filepath.Join(dir, "r.json")
	in := tarOf(t, incident, "")
	c := exec.Command("unshare", "-n", "strace", "-f", "-qq", "-s", "300", "-o", trace, "-e", "trace=%network,%file", bin, "analyze", in, "--limit", "memory-entry=1KiB", "--fail-on", "none", "-o", "json", "--out", out)
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	if code, _, errs := runProgram(t, c); code != exitOK {
		if strings.Contains(errs, "unshare") || strings.Contains(errs, "ptrace") || strings.Contains(errs, "PTRACE") {
			t.Skipf("namespaces or tracing are missing: %s", errs)
		}
		t.Fatalf("exit %d: %s", code, errs)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for line := range strings.SplitSeq(string(b), "\n") {
		calls++
		for _, net := range []string{"socket(", "connect(", "bind(", "sendto(", "sendmsg("} {
			if strings.Contains(line, net) && !strings.Contains(line, "socketpair(") {
				t.Errorf("a call of the network: %s", line)
			}
		}
		m := opened.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, "openat") && !strings.Contains(line, "O_WRONLY") && !strings.Contains(line, "O_RDWR") && !strings.Contains(line, "O_CREAT") {
			continue
		}
		if !strings.Contains(m[1], temp+"/coldplane-") && !strings.Contains(m[1], out) && !strings.Contains(m[1], os.DevNull) && !strings.Contains(m[1], `AT_FDCWD, "/dev/null"`) && !scratchRelative(m[1]) {
			t.Errorf("a write elsewhere: %s", line)
		}
	}
	if calls < 100 {
		t.Errorf("only %d calls were traced: the test does not test", calls)
	}
}

// scratchRelative tells calls of RemoveAll below an opened scratch directory.
func scratchRelative(call string) bool {
	return regexp.MustCompile(`^\d+, "[^/"]*"`).MatchString(call)
}

// A hostile process could do nothing either: what the policy does not name fails.
func TestPolicyIsEnforced(t *testing.T) {
	if os.Getenv("COLDPLANE_ENTER") == "" {
		if confine.Supported().ABI <= 0 {
			t.Skip("Landlock is missing in this kernel")
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, d := range []string{"in", "out", "scratch", "other"} {
			if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, d, "f"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command(exe, "-test.run", "^TestPolicyIsEnforced$", "-test.v")
		c.Env = append(os.Environ(), "COLDPLANE_ENTER="+dir)
		if code, out, errs := runProgram(t, c); code != 0 || !strings.Contains(out, "PASS") {
			t.Errorf("exit %d: %s%s", code, out, errs)
		}
		return
	}
	p := func(s string) string { return filepath.Join(os.Getenv("COLDPLANE_ENTER"), s) }
	if l := confine.Enter(confine.Policy{Read: []string{p("in")}, Renew: []string{p("out")}, Write: []string{p("scratch")}}); l.Failed != nil {
		t.Fatal(l)
	}
	check := func(what string, allowed bool, err error) {
		if (err == nil) != allowed {
			t.Errorf("%s: %v, allowed: %v", what, err, allowed)
		}
	}
	read := func(f string) error { _, err := os.ReadFile(p(f)); return err }
	write := func(f string) error { return os.WriteFile(p(f), []byte("y"), 0o600) }
	check("read input", true, read("in/f"))
	check("write input", false, write("in/f"))
	check("remove input", false, os.Remove(p("in/f")))
	check("read elsewhere", false, read("other/f"))
	check("write elsewhere", false, write("other/new"))
	check("write beside the output", false, write("out/new"))
	check("read beside the output", false, read("out/f"))
	check("finish the output", true, os.Rename(p("out/f"), p("out/g")))
	check("write scratch", true, write("scratch/new"))
}
