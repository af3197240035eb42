package adm

import (
	"errors"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
)

// A config is one API server's encryption configuration, by names only: the
// keys themselves are never read into it.
type config struct {
	NoServer bool       // no API server on the node
	Ref      bundle.Ref // the file, or the manifest without the flag
	Rules    []encRule
}

type encRule struct {
	Resources []string
	Providers []provider
}

// A provider is one entry of the list; the first encrypts.
type provider struct {
	Kind string // aescbc, aesgcm, secretbox, kms, identity
	Keys []string
	V1   bool // a kms provider of API v1
}

// encryption is the encryption configuration of a node's API server.
var encryption = &analyze.Fact[*config]{
	Name:  "adm.encryption",
	Kinds: []bundle.Kind{bundle.KindFiles},
	Needs: []analyze.Need{staticpod.Manifests},
	Compute: func(c *analyze.Ctx) (*config, error) {
		m, err := staticpod.Manifests.Get(c)
		if err != nil {
			return nil, err
		}
		pod := m.Component(staticpod.APIServer)
		if pod == nil {
			return &config{NoServer: true}, nil
		}
		f, ok := pod.Flag("encryption-provider-config")
		if !ok {
			f, ok = pod.Flag("experimental-encryption-provider-config")
		}
		if !ok {
			return &config{Ref: pod.Ref("/spec/containers/0/command")}, nil
		}
		at := pod.Resolve(pod.Main(), f.Value)
		if at.Kind != staticpod.Host {
			return nil, analyze.Missing(bundle.KindFiles, c.Node().Name, bundle.Absent, f.Value+" is not on a hostPath")
		}
		file, err := c.Node().Stat(at.HostPath)
		if err != nil {
			return nil, err
		}
		return readEncryption(file)
	},
}

// readEncryption reads names out of an EncryptionConfiguration.
func readEncryption(f *bundle.File) (*config, error) {
	y, err := yamlfile.Read(f)
	if err != nil {
		return nil, err
	}
	if len(y.Docs) == 0 {
		return nil, yamlfile.Fault(f, errors.New("an empty file"))
	}
	type named struct {
		Name       string `json:"name"`
		APIVersion string `json:"apiVersion"` // of a kms provider; v1 when empty
	}
	type keyed struct {
		Keys []named `json:"keys"`
	}
	var v struct {
		Resources []struct {
			Resources []string `json:"resources"`
			Providers []struct {
				AESGCM    *keyed    `json:"aesgcm"`
				AESCBC    *keyed    `json:"aescbc"`
				Secretbox *keyed    `json:"secretbox"`
				Identity  *struct{} `json:"identity"`
				KMS       *named    `json:"kms"`
			} `json:"providers"`
		} `json:"resources"`
	}
	if err := y.Docs[0].Decode(&v); err != nil {
		return nil, yamlfile.Fault(f, err)
	}
	out := &config{Ref: y.Docs[0].Ref("/resources")}
	for _, r := range v.Resources {
		rule := encRule{Resources: r.Resources}
		for _, p := range r.Providers {
			add := func(kind string, k *keyed) {
				if k == nil {
					return
				}
				x := provider{Kind: kind}
				for _, n := range k.Keys {
					x.Keys = append(x.Keys, n.Name)
				}
				rule.Providers = append(rule.Providers, x)
			}
			add("aesgcm", p.AESGCM)
			add("aescbc", p.AESCBC)
			add("secretbox", p.Secretbox)
			if p.KMS != nil {
				rule.Providers = append(rule.Providers, provider{"kms", []string{p.KMS.Name}, p.KMS.APIVersion == "" || p.KMS.APIVersion == "v1"})
			}
			if p.Identity != nil {
				rule.Providers = append(rule.Providers, provider{Kind: "identity"})
			}
		}
		out.Rules = append(out.Rules, rule)
	}
	return out, nil
}

// rule returns the first rule for a resource ("secrets", "leases.coordination.k8s.io"), or nil.
func (c *config) rule(resource string) *encRule {
	for i, r := range c.Rules {
		if slices.ContainsFunc(r.Resources, func(x string) bool {
			group, _, _ := strings.Cut(resource, ".")
			return x == resource || x == "*.*" || x == "*." && !strings.Contains(resource, ".") || x == group ||
				strings.HasPrefix(x, "*.") && strings.HasSuffix(resource, x[1:])
		}) {
			return &c.Rules[i]
		}
	}
	return nil
}

// reads reports whether values of a resource written by a provider and key can
// be read.
func (c *config) reads(resource, kind, key string) bool {
	r := c.rule(resource)
	if r == nil {
		return false
	}
	return slices.ContainsFunc(r.Providers, func(p provider) bool {
		return p.Kind == kind && slices.Contains(p.Keys, key)
	})
}

// Names lists the keys by provider and name.
func (c *config) Names() []string {
	var out []string
	for _, r := range c.Rules {
		for _, p := range r.Providers {
			for _, k := range p.Keys {
				out = append(out, p.Kind+" key "+k)
			}
			if p.Kind == "identity" {
				out = append(out, "identity")
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
