// Package flagfiles holds what control-plane flags' files contain, reduced to
// what can be compared between nodes without keeping a secret: public keys of
// PEM files, and a digest of everything else.
package flagfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
)

const maxBytes = 1 << 20 // of one file

// A Content is what a file holds.
type Content struct {
	File *bundle.File
	Keys []string // fingerprints of the public keys and certificates of a PEM file, sorted, each once
	Sum  string   // digest of anything else, YAML and JSON by meaning; "" for PEM
	// Redacted says that secrets were taken out of the file before it was
	// collected, so that equal sums prove only equal structure.
	Redacted bool
	Err      error // a *bundle.MissingError; the rest is then empty
}

// A Key is a file in the sight of one component.
type Key struct{ Component, Path string }

// Flags whose files must be alike on every control-plane node.
var flags = map[string]bool{
	"service-account-key-file": true, "client-ca-file": true, "encryption-provider-config": true, "audit-policy-file": true,
	"admission-control-config-file": true, "authentication-config": true, "authorization-config": true, "egress-selector-config-file": true,
}

// OnNode is the contents of the files that the API server's flags name, by the
// path in the flag.
var OnNode = &analyze.Fact[map[Key]*Content]{
	Name:  "flagfiles.contents",
	Kinds: []bundle.Kind{bundle.KindFiles},
	Needs: []analyze.Need{staticpod.Manifests},
	Compute: func(c *analyze.Ctx) (map[Key]*Content, error) {
		d, err := staticpod.Manifests.Get(c)
		if err != nil {
			return nil, err
		}
		out := map[Key]*Content{}
		pod := d.Component(staticpod.APIServer)
		if pod == nil {
			return out, nil
		}
		for _, u := range pod.Files() {
			if !flags[u.Flag.Name] || u.Mount.Kind != staticpod.Host {
				continue
			}
			out[Key{staticpod.APIServer, u.Path}] = read(c.Node(), u.Mount.HostPath)
		}
		return out, nil
	},
}

func read(n *bundle.Node, p string) *Content {
	f, err := n.Stat(p)
	if err != nil {
		return &Content{Err: err}
	}
	b, err := f.Bytes(maxBytes)
	if err != nil {
		return &Content{File: f, Err: err}
	}
	c := &Content{File: f}
	pem := spki.Parse(b)
	if pem.Marker != "" && len(pem.Blocks) == 0 {
		c.Redacted = true
		return c
	}
	if len(pem.Blocks) > 0 {
		for _, blk := range pem.Blocks {
			if !blk.SPKI.IsZero() {
				c.Keys = append(c.Keys, blk.SPKI.String())
			}
		}
		slices.Sort(c.Keys)
		c.Keys = slices.Compact(c.Keys)
		return c
	}
	c.Sum, c.Redacted = sum(b)
	return c
}

// placeholder matches what stands in place of a secret.
var placeholder = regexp.MustCompile(`(?i)^\W*(redacted|removed|masked|x{3,}|\*+)\W*$`)

// sum digests a document by its meaning.
func sum(b []byte) (string, bool) {
	redacted := false
	var v any
	if err := sigsyaml.Unmarshal(b, &v); err == nil {
		switch v.(type) {
		case map[string]any, []any:
			walk(v, func(s string) { redacted = redacted || placeholder.MatchString(s) })
			if canon, err := json.Marshal(v); err == nil {
				b = canon
			}
		}
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:]), redacted
}

func walk(v any, each func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			walk(x, each)
		}
	case []any:
		for _, x := range v {
			walk(x, each)
		}
	case string:
		each(strings.TrimSpace(v))
	}
}
