package pki

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
)

// KeysPath is where a bundle says which private keys were on the node.
const KeysPath = "/coldplane/KEYS.json"

const maxKeysBytes = 4 << 20 // of KEYS.json; a record takes about 250 bytes

// A KeyRecord is one private key that was seen on the node when the evidence
// was taken. The key itself is not in the evidence.
type KeyRecord struct {
	Path      string    `json:"path"`
	User      string    `json:"user"` // for a key inside a kubeconfig
	Algorithm string    `json:"algorithm"`
	SPKI      string    `json:"spkiSha256"`
	Mode      string    `json:"mode"`
	ModTime   time.Time `json:"mtime"`

	fp  spki.Fingerprint
	ref bundle.Ref
}

// Keys is a node's KEYS.json.
type Keys struct {
	File    *bundle.File
	Records []KeyRecord
}

// KeyIndex is the private keys a bundle says were on the node.
var KeyIndex = &analyze.Fact[*Keys]{
	Name:  "pki.keys",
	Kinds: []bundle.Kind{bundle.KindPKI},
	Compute: func(c *analyze.Ctx) (*Keys, error) {
		f, err := c.Node().Stat(KeysPath)
		if err != nil {
			return nil, err
		}
		b, err := f.Bytes(maxKeysBytes)
		if err != nil {
			return nil, err
		}
		k := &Keys{File: f}
		if err := json.Unmarshal(b, &k.Records); err != nil {
			return nil, &bundle.MissingError{Evidence: KeysPath, Reason: bundle.Damaged, Detail: err.Error(), Ref: f.Ref()}
		}
		lines := recordLines(b)
		for i := range k.Records {
			r := &k.Records[i]
			r.Path = path.Clean("/" + r.Path)
			r.fp, _ = spki.ParseFingerprint(r.SPKI)
			r.ref = f.Ref().At(0, fmt.Sprintf("/%d", i))
			if i < len(lines) {
				r.ref.Line = lines[i]
			}
		}
		return k, nil
	},
}

// recordLines finds the line each record begins on: those of the "path"
// members, of which every record has one.
func recordLines(b []byte) []int {
	var out []int
	for i, l := range strings.Split(string(b), "\n") {
		for range strings.Count(l, `"path"`) {
			out = append(out, i+1)
		}
	}
	return out
}

// find returns the record of a key by path and, for kubeconfigs, user.
func (k *Keys) find(p, user string) *KeyRecord {
	if k == nil {
		return nil
	}
	var found *KeyRecord
	for i := range k.Records {
		r := &k.Records[i]
		if r.Path == p && (r.User == user || found == nil) {
			found = r
			if r.User == user {
				break
			}
		}
	}
	return found
}

// A KeyState says what is known of a private key.
type KeyState string

// States of a private key.
const (
	KeyKnown     KeyState = "known"      // its public fingerprint is known
	KeyRedacted  KeyState = "redacted"   // it exists; its content was taken out
	KeyEncrypted KeyState = "encrypted"  // it exists under a passphrase
	KeyAbsent    KeyState = "absent"     // the directory was collected and it is not there
	KeyUnknown   KeyState = "not known"  // not collected, or nothing says
	KeyDamaged   KeyState = "unreadable" // there, but not a readable key
)

// A Key is a private key as far as evidence goes.
type Key struct {
	State     KeyState
	SPKI      spki.Fingerprint
	Algorithm string
	Path      string     // on the node; the kubeconfig's for an inline key
	Ref       bundle.Ref // the key file, or the record in KEYS.json
	ModTime   time.Time  // zero when not known
	Detail    string
}

// key decides what is known of the private key at a path: by the bundle's
// list first, since a scrubbed bundle has no key files, else by the file.
func (r *reader) key(p string) Key {
	p = path.Clean("/" + p)
	k := Key{State: KeyUnknown, Path: p, Ref: r.node.Ref(p)}
	rec := r.keys.find(p, "")
	src := r.source(p)
	if rec == nil && src.Resolved != "" && src.Resolved != p {
		rec = r.keys.find(src.Resolved, "")
	}
	if rec != nil {
		return Key{State: KeyKnown, SPKI: rec.fp, Algorithm: rec.Algorithm, Path: p, Ref: rec.ref, ModTime: rec.ModTime}.check()
	}
	if src.Err != nil {
		switch bundle.ReasonOf(src.Err) {
		case bundle.Absent:
			if r.keys == nil {
				k.State = KeyAbsent
			} else {
				k.State, k.Detail = KeyAbsent, "not in "+KeysPath+" either"
			}
		case bundle.Redacted:
			k.State = KeyRedacted
		case bundle.NotCollected:
		default:
			k.State, k.Detail = KeyDamaged, src.Err.Error()
		}
		return k
	}
	k.Ref, k.ModTime = src.Ref, src.ModTime
	return k.from(src.PEM)
}

// from reads the state of a key out of a PEM file.
func (k Key) from(f spki.File) Key {
	if f.Marker != "" {
		k.State = KeyRedacted
		return k
	}
	for _, b := range f.Blocks {
		if b.Kind != spki.PrivateKey {
			continue
		}
		if k.Ref.Line == 0 {
			k.Ref.Line = b.Line
		}
		switch {
		case b.Encrypted:
			k.State = KeyEncrypted
		case b.Err != nil:
			k.State, k.Detail = KeyDamaged, b.Err.Error()
		default:
			k.State, k.SPKI, k.Algorithm = KeyKnown, b.SPKI, b.Algorithm
		}
		return k
	}
	if len(f.Blocks) > 0 {
		// Certificates without the key they stood beside: the key part was left out.
		k.State = KeyUnknown
		return k
	}
	k.State, k.Detail = KeyDamaged, "no PEM block in it"
	if f.Empty {
		k.Detail = "empty"
	}
	return k
}

// check downgrades a record without a usable fingerprint.
func (k Key) check() Key {
	if k.SPKI.IsZero() {
		k.State = KeyRedacted
	}
	return k
}
