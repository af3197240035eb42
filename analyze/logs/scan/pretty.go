package scan

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"coldplane/analyze/logs/logline"
)

// maxPretty is how much of one entry is kept; a journal's own fields take about
// 2 KiB, the message the rest.
const maxPretty = 4 * MaxLine

// isPretty tells "journalctl -o json-pretty": objects over several lines, each
// field on its own, named in capitals.
func isPretty(head []byte) bool {
	rest, ok := bytes.CutPrefix(head, []byte("{\n"))
	if !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte(`"`))
	name, _, end := bytes.Cut(rest, []byte(`"`))
	return ok && end && len(name) > 0 && len(bytes.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")) == 0
}

// pretty reads such objects. An entry has the number of its first line.
func (s *state) pretty(ctx context.Context, r io.Reader) error {
	br := bufio.NewReaderSize(io.LimitReader(r, s.o.Limit), 64<<10)
	var entry []byte
	var first int
	var at, offset int64
	lines := 0
	end := func() {
		if len(entry) == 0 {
			return
		}
		l := logline.Parse(entry)
		if s.line = first; l.Wrap == logline.JournalJSON {
			if s.res.Wrap == "" {
				s.res.Wrap, s.res.Format = l.Wrap.String(), l.Format.String()
			}
			s.res.LastTimed = first
			s.tick(s.at(l.Outer))
			s.whole(&l, bytes.Clone(entry), first, at)
		} else {
			s.res.Untimed++
		}
		s.keepTail(entry)
		s.keepTail([]byte("\n"))
		entry = entry[:0]
	}
	for {
		line, err := br.ReadSlice('\n')
		if s.res.Bytes += int64(len(line)); len(line) > 0 {
			if lines++; len(entry) == 0 {
				first, at = lines, offset
			}
			offset += int64(len(line))
			text := bytes.TrimSpace(line)
			if room := maxPretty - len(entry); room < len(text) {
				s.res.Cut += int64(len(text) - max(room, 0))
				text = text[:max(room, 0)]
			}
			if entry = append(entry, text...); len(line) < 3 && line[0] == '}' {
				end()
			}
		}
		switch {
		case err == nil && lines%1024 == 0 && ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, bufio.ErrBufferFull):
			lines-- // the rest of the same line follows
		case err != nil:
			end()
			s.line = lines
			if !errors.Is(err, io.EOF) {
				s.res.Broken = err.Error()
			}
			s.res.Limited = s.res.Bytes >= s.o.Limit
			return nil
		}
	}
}
