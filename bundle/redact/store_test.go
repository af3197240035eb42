package redact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"coldplane/bundle/decode/boltpage"
	"coldplane/bundle/decode/kubevalue"
)

// canary is a secret nobody else writes: its prefix is searched for, and its
// random tail alone.
func canary(r *rand.Rand) string {
	return fmt.Sprintf("CANARY-%016x%016x", r.Uint64(), r.Uint64())
}

func protoValue(t testing.TB, o runtime.Object, apiVersion, kind string) []byte {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	var b bytes.Buffer
	if err := protobuf.NewSerializer(s, s).Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writeStore fills a bolt file the way etcd does: revisions of keys, some deleted
// and compacted afterwards, so that free pages hold what was there.
func writeStore(t testing.TB, path string, n int) (canaries []string) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, uint64(n)))
	secret := func() string {
		c := canary(r)
		canaries = append(canaries, c)
		return c
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	buckets := []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", "lease", "members", "members_removed", "meta"}
	rev := int64(1)
	put := func(b *bbolt.Bucket, key string, v []byte) {
		kv := &mvccpb.KeyValue{Key: []byte(key), Value: v, CreateRevision: 1, ModRevision: rev, Version: 1}
		d, err := proto.Marshal(kv)
		if err != nil {
			t.Fatal(err)
		}
		k := make([]byte, 17)
		for i := range 8 {
			k[7-i] = byte(rev >> (8 * i))
		}
		k[8] = '_'
		rev++
		if err := b.Put(k, d); err != nil {
			t.Fatal(err)
		}
	}
	meta := func(name, ns string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: ns, Labels: map[string]string{"app": "kept-label"},
			Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": secret(), "kubernetes.io/config.hash": "kept-hash"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kept-manager", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{"v:` + secret() + `":{}}}`)}}}}
	}
	for round := range 3 {
		err := db.Update(func(tx *bbolt.Tx) error {
			for _, name := range buckets {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			b := tx.Bucket([]byte("key"))
			for i := range n {
				name := fmt.Sprintf("obj-%d-%d", round, i)
				sec := &corev1.Secret{ObjectMeta: meta(name, "team"), Type: "kept/type", Data: map[string][]byte{"kept-key": []byte(secret())}, StringData: map[string]string{"x": secret()}}
				put(b, "/registry/secrets/team/"+name, protoValue(t, sec, "v1", "Secret"))
				cm := &corev1.ConfigMap{ObjectMeta: meta(name, "team"), Data: map[string]string{"kept-cm-key": secret()}, BinaryData: map[string][]byte{"b": []byte(secret())}}
				put(b, "/registry/configmaps/team/"+name, protoValue(t, cm, "v1", "ConfigMap"))
				pod := &corev1.Pod{ObjectMeta: meta(name, "team"), Spec: corev1.PodSpec{NodeName: "kept-node", Containers: []corev1.Container{{Name: "c", Image: "kept/image:1",
					Env: []corev1.EnvVar{{Name: "KEPT_ENV", Value: secret()}}, Args: []string{"--password=" + secret()}, Command: []string{secret()}}}}}
				put(b, "/registry/pods/team/"+name, protoValue(t, pod, "v1", "Pod"))
				cr, _ := json.Marshal(map[string]any{"apiVersion": "x.example/v1", "kind": "Thing", "metadata": map[string]any{"name": name, "namespace": "team", "annotations": map[string]string{"a": secret()}},
					"spec": map[string]any{"password": secret(), "list": []string{secret()}, "n": 123456789}})
				put(b, "/registry/x.example/things/team/"+name, cr)
				put(b, "/registry/secrets/team/enc-"+name, []byte("k8s:enc:aescbc:v1:key1:"+secret()))
				put(b, "/calico/x/"+name, []byte(`{"password":"`+secret()+`"}`))
				put(b, "/patroni/"+name, []byte(secret()))
				if i == 0 {
					big := &corev1.Secret{ObjectMeta: meta(name+"-big", "team"), Data: map[string][]byte{"blob": []byte(strings.Repeat(secret(), 3000))}}
					put(b, "/registry/secrets/team/"+name+"-big", protoValue(t, big, "v1", "Secret"))
				}
			}
			u, _ := proto.Marshal(&authpb.User{Name: []byte("root"), Password: []byte(secret()), Roles: []string{"kept-role"}})
			return tx.Bucket([]byte("authUsers")).Put([]byte("root"), u)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Compaction: most of the first round goes; its pages become free.
	err = db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("key")).Cursor()
		i := 0
		for k, _ := c.First(); k != nil && i < 5*n; k, _ = c.Next() {
			if i++; i%8 != 0 {
				if err := c.Delete(); err != nil {
					return err
				}
			}
		}
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), []byte{0, 0, 0, 0, 0, 0, 0, 9})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return canaries
}

type fileAt struct{ b []byte }

func (f *fileAt) WriteAt(p []byte, off int64) (int, error) { return copy(f.b[off:], p), nil }

func scrub(t testing.TB, src []byte, l Level, inPlace bool) []byte {
	t.Helper()
	out := &fileAt{make([]byte, len(src))}
	if inPlace {
		copy(out.b, src)
		src = out.b
	}
	if _, err := Store(context.Background(), bytes.NewReader(src), int64(len(src)), out, StoreOptions{Level: l, Workers: 2, InPlace: inPlace}); err != nil {
		t.Fatal(err)
	}
	return out.b
}

// layout is what must not change: every element's place, key and lengths.
func layout(t testing.TB, b []byte) (string, boltpage.Stats, int) {
	t.Helper()
	f, err := boltpage.Open(bytes.NewReader(b), int64(len(b)/512*512))
	if err != nil {
		t.Fatal(err)
	}
	w := f.NewWalk(boltpage.Limits{})
	bs, err := w.Buckets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, x := range bs {
		_ = w.Scan(t.Context(), w.List(x), boltpage.ScanOptions{Whole: 1 << 20}, func(int) func(*boltpage.Elem) {
			return func(e *boltpage.Elem) {
				fmt.Fprintln(&out, x.Name, e.Page, e.Index, e.Flags, e.KeyOff, e.ValOff, e.ValLen, string(e.Key))
				if x.Name == "key" {
					var kv mvccpb.KeyValue
					if err := proto.Unmarshal(e.Val, &kv); err != nil {
						t.Errorf("record at %d does not decode: %v", e.ValOff, err)
					}
					fmt.Fprintln(&out, string(kv.Key), kv.ModRevision, kv.CreateRevision, kv.Version, kv.Lease, len(kv.Value))
				}
			}
		})
	}
	ds, _ := w.Damage()
	return out.String(), w.Finish(), len(ds)
}

func sum(b []byte) []byte { s := sha256.Sum256(b); return s[:] }

func TestStoreLeavesNoSecretAndMovesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	canaries := writeStore(t, path, 60)
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	present := 0
	for _, c := range canaries {
		if bytes.Contains(src, []byte(c[7:])) {
			present++
		}
	}
	if present < len(canaries)/2 {
		t.Fatalf("only %d of %d canaries are in the source", present, len(canaries))
	}
	wantLayout, wantStats, _ := layout(t, src)
	for _, inPlace := range []bool{false, true} {
		out := scrub(t, src, LevelValues, inPlace)
		for _, c := range canaries {
			for what, needle := range map[string]string{"whole": c, "tail": c[7:], "base64": base64.StdEncoding.EncodeToString([]byte(c[8:]))[:20]} {
				if i := bytes.Index(out, []byte(needle)); i >= 0 {
					t.Fatalf("in place %v: a canary is left (%s) at %d, page %d", inPlace, what, i, i/os.Getpagesize())
				}
			}
		}
		gotLayout, gotStats, damage := layout(t, out)
		if gotLayout != wantLayout {
			t.Error("the layout changed")
		}
		gotStats.Growth, wantStats.Growth = 0, 0
		if gotStats != wantStats || damage != 0 {
			t.Errorf("stats %+v, want %+v; %d places of damage", gotStats, wantStats, damage)
		}
		for _, kept := range []string{"kept/type", "kept-key", "kept-cm-key", "kept-node", "kept/image:1", "KEPT_ENV", "kept-label", "kept-hash", "kept-manager", "kept-role", "k8s:enc:aescbc:v1:key1:"} {
			if !bytes.Contains(out, []byte(kept)) {
				t.Errorf("%s is gone", kept)
			}
		}
		p := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(p, out, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(p, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		err = db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				t.Error(err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLevels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	writeStore(t, path, 3)
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		level     Level
		kept, not []string
	}{
		{LevelSecrets, []string{"KEPT_ENV", "kept-label", "kept/image:1", "--password=CANARY", "kept-key"}, []string{"kept-hashx"}},
		{LevelValues, []string{"kept-label", "kept/image:1"}, []string{"CANARY"}},
		{LevelStructure, []string{"obj-2-1"}, []string{"CANARY", "kept-label", "kept/image:1", "kept-key", "KEPT_ENV", "kept-manager"}},
	} {
		out := scrub(t, src, c.level, false)
		for _, k := range c.kept {
			if !bytes.Contains(out, []byte(k)) {
				t.Errorf("%s: %s is gone", c.level, k)
			}
		}
		for _, k := range c.not {
			if bytes.Contains(out, []byte(k)) {
				t.Errorf("%s: %s is left", c.level, k)
			}
		}
	}
}

func TestTrailer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	writeStore(t, path, 2)
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(TrailerWasGood) != 32 || len(TrailerWasWrong) != 32 {
		t.Fatal("a trailer has 32 bytes")
	}
	good := append(bytes.Clone(src), sum(src)...)
	if out := scrub(t, good, LevelValues, false); !bytes.HasSuffix(out, []byte(TrailerWasGood)) {
		t.Error("good trailer")
	}
	if out := scrub(t, good, LevelValues, true); !bytes.HasSuffix(out, []byte(TrailerWasGood)) {
		t.Error("good trailer, in place")
	}
	good[5000] ^= 1
	if out := scrub(t, good, LevelValues, false); !bytes.HasSuffix(out, []byte(TrailerWasWrong)) {
		t.Error("wrong trailer")
	}
}

// Contract: whatever happens to the file, no canary gets out, nothing panics, and
// what is written has the source's length.
func TestDamagedStoreLeaksNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	canaries := writeStore(t, path, 6)
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 200 {
		d := bytes.Clone(src)
		switch i % 5 {
		case 0: // bit flips
			for range 1 + r.IntN(20) {
				d[r.IntN(len(d))] ^= 1 << r.IntN(8)
			}
		case 1: // a page somewhere else
			a, b := r.IntN(len(d)/4096), r.IntN(len(d)/4096)
			copy(d[a*4096:a*4096+4096], src[b*4096:b*4096+4096])
		case 2:
			d = d[:r.IntN(len(d))]
		case 3: // a page header or an element table
			p := (2 + r.IntN(len(d)/4096-2)) * 4096
			for range 8 {
				d[p+r.IntN(64)] = byte(r.Uint32())
			}
		case 4: // half a page of another
			a, b := r.IntN(len(d)/4096), r.IntN(len(d)/4096)
			copy(d[a*4096+512*r.IntN(8):a*4096+4096], src[b*4096+100:b*4096+4096])
		}
		out := &fileAt{make([]byte, len(d))}
		if _, err := Store(t.Context(), bytes.NewReader(d), int64(len(d)), out, StoreOptions{Level: LevelValues}); err != nil {
			continue
		}
		if j := bytes.Index(out.b, []byte("CANARY")); j >= 0 {
			t.Fatalf("damage %d: a canary got out at %d: %q", i, j, out.b[j:j+40])
		}
		for _, c := range canaries[i%7:] {
			if j := bytes.Index(out.b, []byte(c[20:])); i%10 == 0 && j >= 0 {
				t.Fatalf("damage %d: a canary's tail got out at %d", i, j)
			}
		}
	}
}

func TestRealStores(t *testing.T) {
	for _, p := range []string{os.Getenv("COLDPLANE_TEST_DB")} {
		if p == "" {
			t.Skip("COLDPLANE_TEST_DB names no database")
		}
		src, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		want, ws, wd := layout(t, src)
		got, gs, gd := layout(t, scrub(t, src, LevelValues, false))
		if got != want || gs != ws || gd != wd {
			t.Errorf("layout same %v, stats %+v %+v, damage %d %d", got == want, gs, ws, gd, wd)
		}
	}
}

func TestFillKeepsLengthAndDecodes(t *testing.T) {
	for n := range 400 {
		b := bytes.Repeat([]byte{'s'}, n)
		kubevalue.Fill(b)
		if len(b) != n || n > 2 && !kubevalue.IsFiller(b) {
			t.Errorf("%d bytes: %q", n, b)
		}
	}
}
