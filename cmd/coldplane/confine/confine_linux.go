package confine

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

const (
	crashFile = "crash"
	grace     = 10 * time.Second // between SIGTERM and SIGKILL
)

// Spawn runs args in a confined child that has this process's files, and waits.
// scratchIn is where the child's scratch directory is made, "" for the temp
// directory; it is gone afterwards. cpu is the child's limit, by which its end is
// judged. ok is false when no child could be started;
// then nothing was run.
func Spawn(ctx context.Context, args []string, scratchIn string, cpu time.Duration) (end End, ok bool) {
	scratch, err := os.MkdirTemp(scratchIn, "coldplane-*")
	if err != nil {
		scratch = "" // the child reports what it cannot spool
	} else {
		defer os.RemoveAll(scratch)
	}
	c := exec.Command("/proc/self/exe", append([]string{Command, scratch}, args...)...)
	c.Args[0] = os.Args[0]
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = os.Environ()
	if scratch != "" {
		c.Env = append(c.Env, "TMPDIR="+scratch)
	}
	// The parent-death signal belongs to the thread that starts the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return End{}, false
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-done:
		case <-time.After(grace):
			_ = c.Process.Kill()
		}
	}()
	err = c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return End{Died: err.Error()}, true
	}
	ws := c.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() && ws.Signal() == syscall.SIGPIPE {
		return End{Code: 128 + int(syscall.SIGPIPE)}, true // whoever reads has had enough, as with any command before a head
	}
	signal := ""
	if ws.Signaled() {
		signal = "ended by signal " + ws.Signal().String()
	}
	// Go ignores SIGXCPU; what ends a process at its hard limit is SIGKILL.
	used := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	spent := ws.Signaled() && ws.Signal() == syscall.SIGKILL && cpu > 0 && used >= cpu-time.Second/2
	return verdict(c.ProcessState.ExitCode(), signal, crashText(scratch), spent), true
}

func crashText(scratch string) string {
	if scratch == "" {
		return ""
	}
	f, err := os.Open(filepath.Join(scratch, crashFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, crashBytes))
	if err != nil {
		return ""
	}
	return string(b)
}

// Limit puts limits on this process. What the process may not set stays.
func Limit(l Limits) {
	for _, r := range []struct {
		what int
		max  uint64
	}{
		{unix.RLIMIT_AS, uint64(l.Memory)}, {unix.RLIMIT_CPU, uint64(l.CPU / time.Second)},
		{unix.RLIMIT_FSIZE, uint64(l.File)}, {unix.RLIMIT_CORE, 0},
	} {
		var old unix.Rlimit
		if r.max == 0 && r.what != unix.RLIMIT_CORE || unix.Getrlimit(r.what, &old) != nil {
			continue
		}
		m := min(r.max, old.Max)
		_ = unix.Setrlimit(r.what, &unix.Rlimit{Cur: m, Max: m})
	}
	if l.Memory > 0 {
		debug.SetMemoryLimit(l.Memory / 4 * 3)
	}
}

// NoteCrash sends what the runtime says when it dies, and what libraries print by
// themselves, into the scratch directory for the parent. It returns where this
// process's own messages go: what stderr was.
func NoteCrash(scratch string) *os.File {
	if scratch == "" {
		return os.Stderr
	}
	f, err := os.OpenFile(filepath.Join(scratch, crashFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return os.Stderr
	}
	defer f.Close()
	fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil || unix.Dup3(int(f.Fd()), 2, 0) != nil {
		return os.Stderr
	}
	return os.NewFile(uintptr(fd), "stderr")
}

// Supported is the level that this kernel gives.
func Supported() Level {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return Level{}
	}
	return Level{ABI: abi}
}

const (
	fileRead = ll.AccessFSReadFile
	treeRead = ll.AccessFSReadFile | ll.AccessFSReadDir
	execute  = ll.AccessFSExecute | ll.AccessFSReadFile
	scratchW = treeRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSMakeReg | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSRemoveDir
	renew    = ll.AccessFSMakeReg | ll.AccessFSRemoveFile
)

// Enter takes from this process, for good, everything the policy does not name.
func Enter(p Policy) Level {
	l := Supported()
	if l.ABI <= 0 {
		return l
	}
	rights := ll.AccessFSWriteFile | ll.AccessFSTruncate // what older kernels do not know is cut off below
	if l.ABI < 3 {
		rights, l.ABI = ll.AccessFSWriteFile, min(l.ABI, 2)
	}
	var rules []landlock.Rule
	add := func(access landlock.AccessFSSet, paths ...string) {
		for _, path := range paths {
			a := access
			fi, err := os.Stat(path)
			if err != nil {
				continue // there is nothing to allow
			}
			if !fi.IsDir() {
				a &= execute | ll.AccessFSWriteFile | ll.AccessFSTruncate
			}
			if l.ABI < 3 {
				a &^= ll.AccessFSTruncate
			}
			rules = append(rules, landlock.PathAccess(a, path).IgnoreIfMissing())
		}
	}
	add(treeRead, p.Read...)
	add(renew, p.Renew...)
	add(scratchW, p.Write...)
	add(landlock.AccessFSSet(rights)|fileRead, os.DevNull)
	// The second opinion is a child of the same program.
	if exe, err := os.Executable(); err == nil {
		add(execute, exe)
	}
	add(execute|ll.AccessFSReadDir, "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
	if err := landlock.V11.BestEffort().Restrict(rules...); err != nil {
		l.Failed = err
	}
	return l
}
