package collect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// programDirs are where programs are looked for. The caller's PATH is not: it
// may be anybody's.
var programDirs = []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"}

func findProgram(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, d := range programDirs {
		p := filepath.Join(d, name)
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", errNoProgram
}

var (
	errNoProgram = errors.New("no such program on this node")
	errTooMuch   = errors.New("more output than is taken")
)

// command runs a program for at most seconds and returns at most limit bytes of
// its output. The program gets an empty environment, no shell, a process group of
// its own, and is killed with all of the group at the deadline or the limit.
func command(ctx context.Context, seconds int, limit int64, name string, args ...string) ([]byte, error) {
	var b bytes.Buffer
	err := stream(ctx, time.Duration(seconds)*time.Second, limit, &b, name, args...)
	return b.Bytes(), err
}

// stream is command with the output written as it comes.
func stream(ctx context.Context, d time.Duration, limit int64, w io.Writer, name string, args ...string) error {
	p, err := findProgram(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	c := exec.CommandContext(ctx, p, args...)
	c.Env = []string{"PATH=" + strings.Join(programDirs, ":"), "LC_ALL=C", "LANG=C", "TZ=UTC", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER="}
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second // a child of its own may keep the pipe open
	lw := &limitWriter{w: w, left: limit, full: cancel}
	c.Stdout = lw
	err = c.Run()
	switch {
	case lw.over:
		return errTooMuch
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay):
		return nil
	}
	return err
}

// limitWriter ends its program when it has had enough.
type limitWriter struct {
	w    io.Writer
	left int64
	over bool
	full func()
}

func (l *limitWriter) Write(p []byte) (int, error) {
	if l.over {
		return 0, errTooMuch
	}
	if int64(len(p)) > l.left {
		n, err := l.w.Write(p[:l.left])
		l.over = true
		l.full()
		return n, errors.Join(err, errTooMuch)
	}
	l.left -= int64(len(p))
	return l.w.Write(p)
}
