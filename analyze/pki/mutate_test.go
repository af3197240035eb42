package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"coldplane/analyze/pki"
	"coldplane/bundle/decode/spki"
)

type certs = []*x509.Certificate

// budget is what one damaged file may cost.
const budget = 250 * time.Millisecond

// TestMutated damages certificates and PEM files in many ways and reads them:
// no panic, none over budget, and every block either read or with a reason.
// COLDPLANE_MUTATIONS sets how many; the default keeps the test short.
func TestMutated(t *testing.T) {
	n := 10_000
	if s := os.Getenv("COLDPLANE_MUTATIONS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	files := tree(t, "keys files\napiserver via=mid\netcd/ca alg=rsa2048\nca add=old")
	var ders, texts [][]byte
	for _, f := range []string{"apiserver.crt", "ca.crt", "etcd/ca.crt", "etcd/server.crt", "front-proxy-client.crt"} {
		texts = append(texts, files[dir+f])
		b, _ := pem.Decode(files[dir+f])
		ders = append(ders, b.Bytes)
	}
	texts = append(texts, files[dir+"apiserver.key"], files[dir+"sa.pub"])
	roots := pki.Certs(blocks(files[dir+"ca.crt"]))
	r := rand.New(rand.NewPCG(1, 2))
	read := 0
	for i := range n {
		var data []byte
		if i%2 == 0 {
			data = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: damage(r, ders[r.IntN(len(ders))])})
		} else {
			data = damage(r, texts[r.IntN(len(texts))])
		}
		took := budget
		for range 3 { // the machine may be busy: the best of three counts
			start := time.Now()
			read += look(t, data, roots)
			if took = min(took, time.Since(start)); took < budget {
				break
			}
		}
		if took >= budget {
			t.Errorf("input %d took %v", i, took)
		}
	}
	if read == 0 {
		t.Error("no damaged certificate was read: the damage is too heavy to test anything")
	}
	t.Logf("%d inputs, %d certificates read", n, read)
}

func look(t *testing.T, data []byte, roots certs) int {
	f := spki.Parse(data)
	n := 0
	for i := range f.Blocks {
		b := &f.Blocks[i]
		if b.Kind != spki.Other && b.Err == nil && !b.Encrypted && b.SPKI.IsZero() {
			t.Errorf("a %s without fingerprint and reason", b.Label)
		}
		if b.Cert == nil {
			continue
		}
		n++
		pki.Names(b.Cert)
		pki.Covers(b.Cert, "api.k8s.example")
		pki.Covers(b.Cert, "10.0.0.11")
		pki.Verify(b.Cert, roots, roots)
		pki.Verify(roots[0], certs{b.Cert}, certs{b.Cert})
	}
	return n
}

// damage returns a copy of b with a bit, a byte or a range changed, doubled,
// cut out or cut off.
func damage(r *rand.Rand, b []byte) []byte {
	out := append([]byte{}, b...)
	for range 1 + r.IntN(3) {
		i := r.IntN(len(out))
		j := min(len(out), i+1+r.IntN(64))
		switch r.IntN(6) {
		case 0:
			out[i] ^= 1 << r.IntN(8)
		case 1:
			out[i] = byte(r.IntN(256))
		case 2:
			for k := i; k < j; k++ {
				out[k] = byte(r.IntN(256))
			}
		case 3:
			out = append(out[:i:i], out[j:]...)
		case 4:
			out = append(append(append([]byte{}, out[:j]...), out[i:j]...), out[j:]...)
		case 5:
			out = out[:max(1, i)]
		}
		if len(out) == 0 {
			return []byte{0}
		}
	}
	return out
}
