package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A Compression names how the tar stream is packed.
type Compression string

// Compressions.
const (
	Zstd Compression = "zstd"
	Gzip Compression = "gzip"
	None Compression = "none"
)

// Suffix is the file name's end for a compression, without that of encryption.
func (c Compression) Suffix() string {
	switch c {
	case Gzip:
		return ".tar.gz"
	case None:
		return ".tar"
	}
	return ".tar.zst"
}

// maxWindow bounds what a zstd frame may ask of a reader's memory. The writer
// stays below it; an unbounded window was measured to take 531 MB from a 67 KB
// file.
const maxWindow = 8 << 20

// encoderWindow keeps the writer's memory small on a node that may have none.
const encoderWindow = 4 << 20

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func compressor(w io.Writer, c Compression) (io.WriteCloser, error) {
	switch c {
	case Zstd, "":
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(encoderWindow),
			zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true))
	case Gzip:
		return gzip.NewWriterLevel(w, gzip.BestSpeed)
	case None:
		return nopCloser{w}, nil
	}
	return nil, fmt.Errorf("compression %q: not one of zstd, gzip, none", c)
}

// ErrNeedIdentity says that a bundle is encrypted and no identity was given.
var ErrNeedIdentity = errors.New("encrypted with age and no identity was given")

// Unwrap returns the tar stream inside r: age encryption, then compression, are
// told by content. ids may be empty when the bundle is not encrypted. Reading
// errors of the returned stream mean a cut or altered container.
func Unwrap(r io.Reader, ids []age.Identity) (io.Reader, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, _ := br.Peek(32)
	if strings.HasPrefix(string(head), "age-encryption.org/") {
		if len(ids) == 0 {
			return nil, ErrNeedIdentity
		}
		d, err := age.Decrypt(br, ids...)
		if err != nil {
			return nil, err
		}
		br = bufio.NewReaderSize(d, 64<<10)
		head, _ = br.Peek(32)
	}
	switch {
	case strings.HasPrefix(string(head), "\x28\xb5\x2f\xfd"):
		d, err := zstd.NewReader(br, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case strings.HasPrefix(string(head), "\x1f\x8b"):
		return gzip.NewReader(br)
	}
	return br, nil
}

// ParseRecipient reads one recipient: age1..., ssh-ed25519 or ssh-rsa.
func ParseRecipient(s string) (age.Recipient, error) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "ssh-") {
		return agessh.ParseRecipient(s)
	}
	rs, err := age.ParseRecipients(strings.NewReader(s))
	if err != nil {
		return nil, fmt.Errorf("recipient %.20q: not age1…, ssh-ed25519 or ssh-rsa", s)
	}
	return rs[0], nil
}

// maxKeyFile bounds a file of recipients or identities.
const maxKeyFile = 1 << 20

// ParseRecipients reads a file of recipients, one a line; empty lines and lines
// that begin with # are skipped.
func ParseRecipients(r io.Reader) ([]age.Recipient, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxKeyFile))
	if err != nil {
		return nil, err
	}
	var out []age.Recipient
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rc, err := ParseRecipient(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, rc)
	}
	if len(out) == 0 {
		return nil, errors.New("no recipient in it")
	}
	return out, nil
}

// ParseIdentities reads a file of age identities or one unencrypted ssh private
// key. Errors never contain any of it.
func ParseIdentities(r io.Reader) ([]age.Identity, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxKeyFile))
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(b), "-----BEGIN") {
		id, err := agessh.ParseIdentity(b)
		if err != nil {
			return nil, errors.New("not an unencrypted ssh-ed25519 or ssh-rsa private key")
		}
		return []age.Identity{id}, nil
	}
	return age.ParseIdentities(strings.NewReader(string(b)))
}
