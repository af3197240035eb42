//go:build linux

package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"coldplane/bundle/archive"
	"coldplane/bundle/decode/spki"
	"coldplane/bundle/redact"
)

const (
	smallFile  = 1 << 20 // bytes of a configuration file that are read
	maxFiles   = 2000    // files of one directory tree
	maxListing = 20000   // entries of a listing
)

// A keyRecord is one private key that was seen: never the key.
type keyRecord struct {
	Path      string    `json:"path"`
	User      string    `json:"user,omitempty"` // for a key inside a kubeconfig
	Algorithm string    `json:"algorithm,omitempty"`
	SPKI      string    `json:"spkiSha256,omitempty"` // of the public half
	Encrypted bool      `json:"encrypted,omitempty"`
	Error     string    `json:"error,omitempty"` // why there is no fingerprint
	Mode      string    `json:"mode"`
	ModTime   time.Time `json:"mtime"`
}

// treatment masks a content in place or derives another one from it.
type treatment func(s *sink, abs string, fi fs.FileInfo, b []byte) (out []byte, t archive.Treatment, rule string)

// look notes what a path is when it is no regular file to be read: absent, a
// link, a directory, something special. It reports whether there is a regular
// file behind it.
func (s *sink) look(abs string) bool {
	root := s.run.root
	li, err := root.lstat(abs)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "not a directory") {
			s.setAbsent(abs)
			return false
		}
		s.record(archive.Entry{Path: entryPath(abs), Treatment: archive.Failed, Error: clean(reason(err))})
		s.fail(abs, err)
		return false
	}
	if li.Mode()&fs.ModeSymlink != 0 {
		link, _ := root.readlink(abs)
		s.record(archive.Entry{Path: entryPath(abs), Treatment: archive.LinkOnly, Source: sourceOf(abs, li, link)})
		return false
	}
	if !li.Mode().IsRegular() {
		t := archive.Dropped
		if li.IsDir() {
			t = archive.Directory
		}
		s.record(archive.Entry{Path: entryPath(abs), Treatment: t, Rule: "not-a-file", Source: sourceOf(abs, li, "")})
		return false
	}
	return true
}

// take reads a small file through a treatment.
func (s *sink) take(ctx context.Context, abs string, limit int64, f treatment) {
	if ctx.Err() != nil || !s.look(abs) {
		return
	}
	file, fi, err := s.run.root.open(abs)
	if err != nil {
		s.failed1(abs, fi, err)
		return
	}
	defer file.Close()
	b, more, err := limited(ctx, file, limit)
	s.didRead(int64(len(b)))
	if err != nil {
		s.failed1(abs, fi, err)
		return
	}
	if more {
		s.cap("file-size")
		s.record(archive.Entry{Path: entryPath(abs), Treatment: archive.Dropped, Rule: "too-large", Source: sourceOf(abs, fi, "")})
		return
	}
	out, t, rule, err := safely(f, s, abs, fi, b)
	if err != nil {
		s.failed1(abs, fi, err)
		return
	}
	e := archive.Entry{Path: entryPath(abs), Treatment: t, Rule: rule, Source: sourceOf(abs, fi, "")}
	if t == archive.Dropped {
		s.record(e)
		return
	}
	s.add(e, out)
}

// safely runs a treatment. One that panics costs its file, and nothing of the
// file is taken.
func safely(f treatment, s *sink, abs string, fi fs.FileInfo, b []byte) (out []byte, t archive.Treatment, rule string, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("a defect: %v", p)
		}
	}()
	out, t, rule = f(s, abs, fi, b)
	return out, t, rule, nil
}

func (s *sink) failed1(abs string, fi fs.FileInfo, err error) {
	e := archive.Entry{Path: entryPath(abs), Treatment: archive.Failed, Error: clean(reason(err))}
	if fi != nil {
		e.Source = sourceOf(abs, fi, "")
	}
	s.record(e)
	s.fail(abs, err)
}

// takeDir takes every entry of a directory, links followed in name only.
func (s *sink) takeDir(ctx context.Context, dir string, f func(abs string)) bool {
	names, more, err := s.run.root.readdir(dir, maxFiles)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			s.setAbsent(dir)
		} else {
			s.fail(dir, err)
		}
		return false
	}
	slices.Sort(names)
	for _, n := range names {
		if ctx.Err() != nil {
			return true
		}
		f(path.Join(dir, n))
	}
	if more {
		s.cap("directory-entries")
	} else {
		s.setDir(dir)
	}
	return true
}

// Treatments.

func textTreatment(mask func([]byte) bool, rule string) treatment {
	return func(_ *sink, _ string, _ fs.FileInfo, b []byte) ([]byte, archive.Treatment, string) {
		if bytes.IndexByte(b, 0) >= 0 {
			return nil, archive.Dropped, "binary"
		}
		if !mask(b) {
			return b, archive.Redacted, rule + ", not parseable: skeleton"
		}
		return b, archive.Redacted, rule
	}
}

func always(mask func([]byte)) func([]byte) bool {
	return func(b []byte) bool { mask(b); return true }
}

var (
	asManifest   = textTreatment(redact.Manifest, "manifest")
	asConfig     = textTreatment(redact.Config, "configuration")
	asOther      = textTreatment(redact.OtherConfig, "type-only")
	asEncryption = textTreatment(redact.EncryptionConfig, "encryption")
	asArguments  = textTreatment(always(redact.Arguments), "arguments")
	asRuntime    = textTreatment(always(redact.RuntimeConfig), "runtime")
	asText       = textTreatment(always(func(b []byte) { redact.Text(b) }), "text")
)

// asPEM keeps certificates, requests and public keys, and turns private keys into
// records.
func asPEM(s *sink, abs string, fi fs.FileInfo, b []byte) ([]byte, archive.Treatment, string) {
	f := spki.Parse(b)
	keys := 0
	for _, bl := range f.Blocks {
		if bl.Kind == spki.PrivateKey {
			keys++
			s.key(keyOf(abs, "", fi, bl))
		}
	}
	switch {
	case len(bytes.TrimSpace(b)) == 0:
		return b, archive.Kept, "empty"
	case f.Marker != "":
		redact.Text(b)
		return b, archive.Kept, "marker"
	case keys > 0 && keys == len(f.Blocks):
		return nil, archive.Dropped, "private-key"
	}
	out := publicBlocks(b)
	if len(out) == 0 {
		// Not PEM, or damaged beyond its first line. What it is not stays visible.
		if len(b) > 4096 || bytes.IndexByte(b, 0) >= 0 {
			return nil, archive.Dropped, "not-pem"
		}
		redact.Skeleton(b)
		return b, archive.Redacted, "not-pem"
	}
	if keys > 0 || !bytes.Equal(out, b) {
		return out, archive.Redacted, "public-part"
	}
	return out, archive.Kept, "certificate"
}

func keyOf(abs, user string, fi fs.FileInfo, bl spki.Block) keyRecord {
	k := keyRecord{Path: strings.ToValidUTF8(abs, "?"), User: user, Algorithm: bl.Algorithm, Encrypted: bl.Encrypted, Mode: modeText(fi), ModTime: fi.ModTime().UTC()}
	if !bl.SPKI.IsZero() {
		k.SPKI = bl.SPKI.String()
	}
	if bl.Err != nil {
		k.Error = clean(bl.Err.Error())
	}
	return k
}

func modeText(fi fs.FileInfo) string {
	const d = "01234567"
	m := fi.Mode().Perm()
	return "0" + string(d[m>>6&7]) + string(d[m>>3&7]) + string(d[m&7])
}

// publicBlocks copies the blocks of a PEM file whose label says that they are
// public, as they stand, damaged ones too. Text between blocks is left out; the
// lines it took stay, so that later blocks keep their line numbers.
func publicBlocks(b []byte) []byte {
	var out bytes.Buffer
	keep, any := false, false
	for line := range bytes.Lines(b) {
		t := bytes.TrimSpace(line)
		switch {
		case bytes.HasPrefix(t, []byte("-----BEGIN ")):
			label := strings.TrimSuffix(string(t[len("-----BEGIN "):]), "-----")
			switch label {
			case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE", "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST", "PUBLIC KEY", "RSA PUBLIC KEY", "X509 CRL":
				keep, any = true, true
			default:
				keep = false
			}
		case bytes.HasPrefix(t, []byte("-----END ")):
			if keep {
				out.Write(line)
			} else {
				out.WriteByte('\n')
			}
			keep = false
			continue
		}
		if keep && (bytes.HasPrefix(t, []byte("-----BEGIN ")) || base64Line(t)) {
			out.Write(line)
			continue
		}
		keep = keep && len(t) == 0
		out.WriteByte('\n')
	}
	if !any {
		return nil
	}
	return out.Bytes()
}

func base64Line(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '/' && c != '=' {
			return false
		}
	}
	return true
}

// copyRange copies size bytes of r to w, at a rate.
func copyRange(ctx context.Context, w io.Writer, r io.ReaderAt, size, rate int64) (n int64, err error) {
	buf := make([]byte, 256<<10)
	began := time.Now() //nolint:forbidigo // monotonic, for the rate
	for n < size {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := r.ReadAt(buf[:min(int64(len(buf)), size-n)], n)
		if k > 0 {
			if _, werr := w.Write(buf[:k]); werr != nil {
				return n, werr
			}
			n += int64(k)
		}
		if err != nil {
			if err == io.EOF {
				return n, nil
			}
			return n, err
		}
		if rate > 0 {
			want := time.Duration(float64(n) / float64(rate) * float64(time.Second))
			if d := want - time.Since(began); d > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(d):
				}
			}
		}
	}
	return n, nil
}
