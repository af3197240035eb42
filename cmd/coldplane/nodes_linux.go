package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"coldplane/bundle/archive"
	"coldplane/bundle/redact"
)

// remote is what runs on a node: it takes the program from stdin into a file of
// its own, runs it as root with the bundle on stdout, and removes it whatever
// happens. $@ are collect's arguments.
const remote = `umask 077
t=
for d in /run /tmp /var/tmp /dev/shm "$HOME"; do
  t=$(mktemp "$d/.coldplane.XXXXXXXX" 2>/dev/null) || continue
  printf '#!/bin/sh\nexit 0\n' > "$t" && chmod 700 "$t" && "$t" 2>/dev/null && break
  rm -f "$t"; t=
done
[ -n "$t" ] || { echo 'no directory on this node that allows programs' >&2; exit 4; }
trap 'rm -f "$t"' EXIT
trap 'exit 130' HUP INT TERM PIPE
cat > "$t" || exit 4
if [ "$(id -u)" = 0 ]; then "$t" "$@"; else sudo -n "$t" "$@"; fi`

// nodeArg bounds no length: a counted repeat takes milliseconds to compile at every start.
var nodeArg = regexp.MustCompile(`^[A-Za-z0-9_.@:\[\]%-]+$`)

// collectNodes runs one collection per node over the system's ssh, at most three
// at a time. One node's failure costs the others nothing.
func collectNodes(ctx context.Context, e *env, g *globals, f *collectFlags) error {
	if f.out == "-" {
		return usagef("name a directory: -o DIR", "--nodes writes one file per node")
	}
	dir := f.out
	if dir == "" {
		dir = "."
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return usagef("make it first", "-o %s: not a directory", dir)
	}
	for _, n := range f.nodes {
		if len(n) > 253 || !nodeArg.MatchString(n) || strings.HasPrefix(n, "-") {
			return usagef("names as ssh takes them, separated by commas", "--nodes: %q is no name of a node", n)
		}
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return usagef("install it, or run coldplane collect on each node", "--nodes needs ssh, which is not there")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(node, line string) {
		if g.quiet {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(e.err, "%s: %s\n", node, visible(strings.TrimPrefix(line, "coldplane: ")))
	}
	errs := make([]error, len(f.nodes))
	slots := make(chan struct{}, 3)
	var wg sync.WaitGroup
	for i, n := range f.nodes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			if errs[i] = collectNode(ctx, e, f, ssh, self, dir, n, say); errs[i] != nil {
				say(n, "failed: "+errs[i].Error())
			}
		}()
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d nodes failed; the bundles of the others are in %s", failed, len(errs), dir)
	}
	return nil
}

func (f *collectFlags) remoteArgs(node string) []string {
	a := []string{"collect", "-o", "-", "--since", f.since.String(), "--etcd", f.etcd, "--level", f.level, "--compress", f.compress, "--timeout", f.timeout.String(),
		"--rate", strconv.FormatInt(f.rate, 10), "--reserve", strconv.FormatInt(f.reserve, 10), "--low-priority=" + strconv.FormatBool(f.low), "--root", strings.ReplaceAll(f.root, "%n", node)}
	for _, x := range []struct {
		flag string
		v    []string
	}{{"--recipient", f.recipients}, {"--label", f.labels}, {"--only", f.only}, {"--skip", f.skip}} {
		for _, v := range x.v {
			a = append(a, x.flag, v)
		}
	}
	if f.caseID != "" {
		a = append(a, "--case-id", f.caseID)
	}
	return a
}

func shellQuote(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}

func collectNode(ctx context.Context, e *env, f *collectFlags, ssh, self, dir, node string, say func(node, line string)) (err error) {
	extra := f.recipientFiles
	rf := *f
	for _, p := range extra { // files are read here, not there
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				rf.recipients = append(rf.recipients, line)
			}
		}
	}
	suffix := archive.Compression(f.compress).Suffix()
	if len(rf.recipients) > 0 {
		suffix += ".age"
	}
	safe := regexp.MustCompile(`[^A-Za-z0-9_.-]`).ReplaceAllString(node, "_")
	file, err := archive.Create(filepath.Join(dir, "coldplane-"+safe+"-"+e.now().UTC().Format("20060102T150405Z")+suffix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Remove()) }()
	bin, err := os.Open(self)
	if err != nil {
		return err
	}
	defer bin.Close()
	args := []string{"-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15"}
	if f.sshConfig != "" {
		args = append(args, "-F", f.sshConfig)
	}
	args = append(args, "--", node, "sh -c "+shellQuote([]string{remote})+" coldplane "+shellQuote(rf.remoteArgs(node)))
	ctx, cancel := context.WithTimeout(ctx, f.timeout+2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, ssh, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 5 * time.Second
	c.Stdin = bin
	errPipe, err := c.StderrPipe()
	if err != nil {
		return err
	}
	// The stream is checked while it arrives; an encrypted one by its container
	// only, when it is opened.
	pr, pw := io.Pipe()
	checked := make(chan *archive.Verification, 1)
	if strings.HasSuffix(suffix, ".age") {
		go func() { _, _ = io.Copy(io.Discard, pr); checked <- nil }()
	} else {
		go func() {
			v := &archive.Verification{State: archive.Incomplete}
			if r, err := archive.Unwrap(pr, nil); err == nil {
				v = archive.Verify(r, archive.Limits{})
			}
			_, _ = io.Copy(io.Discard, pr) // so that the copy never waits
			checked <- v
		}()
	}
	c.Stdout = io.MultiWriter(file, pw)
	say(node, "collecting")
	if err := c.Start(); err != nil {
		return err
	}
	var last string
	sc := bufio.NewScanner(errPipe)
	for sc.Scan() {
		if last = redact.String(sc.Text()); last != "" {
			say(node, last)
		}
	}
	err = c.Wait()
	pw.Close()
	v := <-checked
	if err != nil {
		return fmt.Errorf("ssh: %w", err)
	}
	if v != nil && v.State != archive.Intact {
		return fmt.Errorf("the bundle did not arrive whole: %s %s", v.State, v.Detail())
	}
	name, err := file.Publish(false)
	if err == nil {
		say(node, "written to "+name)
	}
	return err
}
