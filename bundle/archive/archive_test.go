package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func testBundle(t testing.TB, o Options, s Status) ([]byte, string) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{BundleID: "00112233445566778899aabbccddeeff", Node: "cp1", CollectedAt: testTime}, o)
	if err != nil {
		t.Fatal(err)
	}
	add := func(p, c string) {
		t.Helper()
		if err := w.AddBytes(Entry{Path: p, Treatment: Kept}, []byte(c)); err != nil {
			t.Fatal(err)
		}
	}
	add("etc/kubernetes/manifests/etcd.yaml", "kind: Pod\n")
	add("crictl/ps.json", strings.Repeat("x", 3000))
	add("var/log/"+strings.Repeat("long/", 60)+"name.log", "a long name\n")
	add("var/log/ünïcode.log", "")
	if err := w.Record(Entry{Path: "etc/kubernetes/pki/ca.key", Treatment: Dropped, Rule: "private-key"}); err != nil {
		t.Fatal(err)
	}
	w.Absent("/etc/kubernetes/manifests/kube-scheduler.yaml")
	w.Dir("/etc/kubernetes/manifests")
	w.Result(Result{Source: "files", Outcome: OK, Read: 12})
	fp, err := w.Close(s, Clock{Wall: testTime})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), fp
}

func verify(t testing.TB, b []byte, ids ...age.Identity) *Verification {
	t.Helper()
	r, err := Unwrap(bytes.NewReader(b), ids)
	if err != nil {
		return NewChecker().Finish(err, 0)
	}
	return Verify(r, Limits{})
}

func TestRoundTrip(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Compression{Zstd, Gzip, None} {
		for _, rs := range [][]age.Recipient{nil, {id.Recipient()}} {
			b, fp := testBundle(t, Options{Compression: c, Recipients: rs}, Complete)
			v := verify(t, b, id)
			if v.State != Intact || v.Fingerprint != fp || len(fp) != 64 {
				t.Errorf("%s, %d recipients: %s %v, fingerprint %q want %q", c, len(rs), v.State, v.Problems, v.Fingerprint, fp)
			}
			if v.Header == nil || v.Header.Node != "cp1" || v.Manifest.Totals.Entries != 6 {
				t.Errorf("%s: header %+v totals %+v", c, v.Header, v.Manifest.Totals)
			}
		}
	}
	b, _ := testBundle(t, Options{Recipients: []age.Recipient{id.Recipient()}}, Complete)
	if _, err := Unwrap(bytes.NewReader(b), nil); !errors.Is(err, ErrNeedIdentity) {
		t.Errorf("without identity: %v", err)
	}
}

// Whatever changes a byte of what is stored may not pass as the same bundle: not a
// flip, not a cut, in any container. A change of the manifest itself shows in the
// fingerprint.
func TestDamageIsSeen(t *testing.T) {
	id, _ := age.GenerateX25519Identity()
	for _, o := range []Options{{Compression: None}, {Compression: Zstd}, {Compression: Gzip}, {Recipients: []age.Recipient{id.Recipient()}}} {
		b, fp := testBundle(t, o, Complete)
		want := contents(b, id)
		rng := rand.New(rand.NewPCG(1, 2))
		for range 150 {
			c := bytes.Clone(b)
			i := rng.IntN(len(c))
			c[i] ^= 1 << rng.IntN(8)
			if v := verify(t, c, id); v.State == Intact && v.Fingerprint == fp && contents(c, id) != want {
				t.Errorf("%s: flip at %d of %d passes as intact", o.Compression, i, len(c))
			}
			n := rng.IntN(len(b))
			if v := verify(t, b[:n], id); v.State == Intact && contents(b[:n], id) != want {
				t.Errorf("%s: cut at %d of %d passes as intact", o.Compression, n, len(b))
			}
		}
	}
}

// contents is all that a reader can see in a bundle, in one string.
func contents(b []byte, id age.Identity) string {
	r, err := Unwrap(bytes.NewReader(b), []age.Identity{id})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err != nil {
			return out.String()
		}
		fmt.Fprintln(&out, h.Name, h.Size, h.Mode)
		_, _ = io.Copy(&out, tr) // a cut shows in what is missing
	}
}

func TestStates(t *testing.T) {
	b, _ := testBundle(t, Options{Compression: None}, Complete)
	two, _ := testBundle(t, Options{Compression: None}, Interrupted)
	z, _ := testBundle(t, Options{Compression: Zstd}, Complete)
	for _, c := range []struct {
		name string
		in   []byte
		want State
	}{
		{"whole", b, Intact},
		{"interrupted", two, Incomplete},
		{"second archive behind", append(bytes.Clone(b), two...), Ambiguous},
		{"second frame behind", append(bytes.Clone(z), z...), Ambiguous},
		{"text behind", append(bytes.Clone(b), "more"...), Ambiguous},
		{"cut in the manifest", b[:len(b)-2500], Incomplete},
		{"only the header", b[:2048], Incomplete},
		{"empty", nil, Incomplete},
		{"entry twice", retar(t, b, func(h *tar.Header, c []byte) ([]*tar.Header, []byte) {
			if strings.HasSuffix(h.Name, "ps.json") {
				return []*tar.Header{h, h}, c
			}
			return []*tar.Header{h}, c
		}), Ambiguous},
		{"entry missing", retar(t, b, func(h *tar.Header, c []byte) ([]*tar.Header, []byte) {
			if strings.HasSuffix(h.Name, "ps.json") {
				return nil, nil
			}
			return []*tar.Header{h}, c
		}), Altered},
		{"content changed", retar(t, b, func(h *tar.Header, c []byte) ([]*tar.Header, []byte) {
			return []*tar.Header{h}, bytes.Replace(c, []byte("kind: Pod"), []byte("kind: Job"), 1)
		}), Altered},
		{"mode changed", retar(t, b, func(h *tar.Header, c []byte) ([]*tar.Header, []byte) {
			h.Mode = 0o644
			return []*tar.Header{h}, c
		}), Altered},
		{"a link", retar(t, b, func(h *tar.Header, c []byte) ([]*tar.Header, []byte) {
			if strings.HasSuffix(h.Name, "ps.json") {
				l := *h
				l.Name, l.Typeflag, l.Linkname, l.Size = "x", tar.TypeSymlink, "/etc/shadow", 0
				return []*tar.Header{h, &l}, c
			}
			return []*tar.Header{h}, c
		}), Altered},
	} {
		if v := verify(t, c.in); v.State != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, v.State, v.Problems, c.want)
		}
	}
}

// retar writes an archive again with some entries changed. Headers after the
// first share the content, or have none when their size is 0.
func retar(t *testing.T, b []byte, f func(*tar.Header, []byte) ([]*tar.Header, []byte)) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		hs, c := f(h, c)
		for _, h := range hs {
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if h.Size > 0 {
				if _, err := w.Write(c); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type failAfter struct{ n int }

var errNoSpace = errors.New("no space left on device")

func (f *failAfter) Write(p []byte) (int, error) {
	if f.n < len(p) {
		n := f.n
		f.n = 0
		return n, errNoSpace
	}
	f.n -= len(p)
	return len(p), nil
}

// A full disk at any byte is an error of some call, never a silent success.
func TestFullDiskAtEveryWrite(t *testing.T) {
	b, _ := testBundle(t, Options{Compression: Zstd}, Complete)
	for n := 0; n < len(b); n += 11 {
		w, err := NewWriter(&failAfter{n}, Header{BundleID: "x"}, Options{Compression: Zstd})
		if err != nil {
			continue
		}
		e1 := w.AddBytes(Entry{Path: "a"}, bytes.Repeat([]byte("text "), 1000))
		_, e2 := w.Close(Complete, Clock{Wall: testTime})
		if e1 == nil && e2 == nil && n < 400 {
			t.Fatalf("disk full after %d bytes and nobody says so", n)
		}
	}
}

func TestShortContentEndsTheBundle(t *testing.T) {
	w, err := NewWriter(io.Discard, Header{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(Entry{Path: "a"}, 10, strings.NewReader("short")); err == nil {
		t.Fatal("no error")
	}
	if _, err := w.Close(Complete, Clock{}); err == nil {
		t.Fatal("closed as if whole")
	}
}

func TestPublish(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "b.tar.zst")
	f, err := Create(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(p); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second collection to the same name: %v", err)
	}
	fmt.Fprint(f, "x")
	if _, err := os.Stat(p); err == nil {
		t.Error("the final name exists before Publish")
	}
	got, err := f.Publish(false)
	if err != nil || got != p {
		t.Fatal(got, err)
	}
	fi, _ := os.Stat(p)
	if fi.Mode() != 0o600 {
		t.Errorf("mode %v", fi.Mode())
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := Create(p); !errors.Is(err, os.ErrExist) {
		t.Errorf("over an existing bundle: %v", err)
	}
	q := filepath.Join(dir, "c.tar.zst")
	f, err = Create(q)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(q, []byte("came meanwhile"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Publish(false); err == nil {
		t.Error("an existing file was replaced")
	}
	if b, _ := os.ReadFile(q); string(b) != "came meanwhile" {
		t.Errorf("content now %q", b)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+PartialSuffix)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSafePath(t *testing.T) {
	seen := map[string]string{}
	for _, p := range []string{"/a/b", "/a/b\n", "/a/%0A", "/a/\xff", "/a/%FF", "/a\\b", "/ü", "/a/%", "/a/ b"} {
		s := SafePath(p)
		if why := BadPath(s); why != "" {
			t.Errorf("%q -> %q: %s", p, s, why)
		}
		if q, dup := seen[s]; dup {
			t.Errorf("%q and %q both become %q", p, q, s)
		}
		seen[s] = p
	}
}

// Contract: whatever the stream, Verify ends, does not panic, and says intact
// only for what the writer wrote byte for byte.
func FuzzVerify(f *testing.F) {
	b, fp := testBundle(f, Options{Compression: None}, Complete)
	f.Add(b)
	f.Add(b[:1000])
	f.Fuzz(func(t *testing.T, in []byte) {
		v := Verify(bytes.NewReader(in), Limits{Entries: 1000, Bytes: 1 << 20})
		if v.State == Intact && v.Manifest == nil {
			t.Error("intact without a manifest")
		}
		_ = fp
	})
}
