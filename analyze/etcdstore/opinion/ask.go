package opinion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// Command is the hidden subcommand that a parent starts.
const Command = "__second-opinion"

// maxAnswer bounds what a child may say, timeout how long it may take.
const (
	maxAnswer = 64 << 10
	timeout   = 2 * time.Minute
)

// Ask copies the first size bytes of a database into a private file in dir (the
// temp directory when empty) and has a child process, started as exe, judge it. A
// child that dies or does not answer is an Opinion too. Errors are failures of
// ours: no room, no child.
func Ask(ctx context.Context, exe, dir string, r io.ReaderAt, size, rev int64) (Opinion, error) {
	f, err := os.CreateTemp(dir, "coldplane-opinion-*.db")
	if err != nil {
		return Opinion{}, err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, io.NewSectionReader(r, 0, size))
	if err = errors.Join(err, f.Close()); err != nil {
		return Opinion{}, fmt.Errorf("private copy: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, Command, f.Name(), strconv.FormatInt(rev, 10))
	cmd.Env = []string{"GOTRACEBACK=none", "GOMEMLIMIT=1GiB"}
	var out, msg limited
	out.left, msg.left = maxAnswer, 4<<10
	cmd.Stdout, cmd.Stderr = &out, &msg
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return Opinion{}, ctx.Err()
	}
	var o Opinion
	if jerr := json.Unmarshal(out.buf.Bytes(), &o); jerr == nil && err == nil {
		return o, nil
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Opinion{}, fmt.Errorf("second opinion: %w", err)
	}
	first, _, _ := bytes.Cut(msg.buf.Bytes(), []byte{'\n'})
	o = Opinion{Bolt: fmt.Sprintf("the process that asked bbolt and etcd died: %v: %s", err, first)}
	return o, nil
}

// limited keeps the beginning of what is written and swallows the rest.
type limited struct {
	buf  bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.buf.Write(p[:n])
	l.left -= n
	return len(p), nil
}

// Child is what the started process does: it limits itself and judges.
func Child(w io.Writer, path string, rev int64) error {
	if err := limit(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(Judge(path, rev))
}
