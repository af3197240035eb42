package pki

import (
	"encoding/base64"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
)

// A StoredCA is a CA bundle inside an object of the cluster.
type StoredCA struct {
	Name   string // "kube-public/cluster-info", "webhook policy.example"
	What   string // who trusts it
	Role   CARole // ClusterCA, FrontProxyCA; "" for webhooks and extension servers
	Source *Source
}

// A StoredPair is the certificate of a TLS Secret.
type StoredPair struct {
	Namespace, Secret string
	Source            *Source
	CA                spki.File        // the Secret's own ca.crt; no blocks where it has none
	Key               spki.Fingerprint // of its key; zero when not known
}

// Stored is the certificates in the cluster's objects.
type Stored struct {
	CAs    []*StoredCA
	Pairs  []*StoredPair
	Opaque []string // objects whose content was taken out or cannot be read
}

// Store are the certificates of the store: what joining nodes, pods and
// extension servers are told to trust, what the API server trusts of webhooks
// and extension servers, and what TLS Secrets serve.
var Store = &analyze.Fact[*Stored]{
	Name:  "pki.store",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{objects.Cluster},
	Compute: func(c *analyze.Ctx) (*Stored, error) {
		s, err := objects.Cluster.Get(c)
		if err != nil {
			return nil, err
		}
		out := &Stored{}
		out.configMap(s, "kube-public", "cluster-info", "kubeconfig", "joining nodes", ClusterCA, clusterInfo)
		for _, ns := range []string{"kube-system", "default"} {
			if s.Has(s.Store.Prefix + "/configmaps/" + ns + "/kube-root-ca.crt") {
				out.configMap(s, ns, "kube-root-ca.crt", "ca.crt", "pods", RootCA, nil)
				break
			}
		}
		out.configMap(s, "kube-system", "extension-apiserver-authentication", "client-ca-file", "extension API servers", ClusterCA, nil)
		out.configMap(s, "kube-system", "extension-apiserver-authentication", "requestheader-client-ca-file", "extension API servers", FrontProxyCA, nil)
		out.bundles(s)
		out.pairs(s)
		return out, nil
	},
}

// configMap reads one CA bundle out of a ConfigMap's key.
func (o *Stored) configMap(s *objects.Set, ns, name, key, who string, role CARole, dig func(string, bundle.Ref) string) {
	cm, err := s.ConfigMap(ns, name)
	if err != nil {
		if !bundle.IsAbsent(err) {
			o.Opaque = append(o.Opaque, ns+"/"+name)
		}
		return
	}
	text, ok := cm.Value.Data[key]
	if !ok {
		return
	}
	if dig != nil {
		text = dig(text, cm.Ref)
	}
	o.add(ns+"/"+name, key, who, role, cm.Ref, []byte(text))
}

func (o *Stored) add(name, key, who string, role CARole, ref bundle.Ref, pem []byte) {
	label := name
	if key != "" {
		label += " (" + key + ")"
	}
	f := spki.Parse(pem)
	readable := false
	for _, b := range f.Blocks {
		readable = readable || b.Cert != nil
	}
	if !readable {
		o.Opaque = append(o.Opaque, label)
		return
	}
	o.CAs = append(o.CAs, &StoredCA{Name: label, What: who, Role: role, Source: &Source{Path: ref.Key, Name: label, Ref: ref, PEM: f, inline: true}})
}

// clusterInfo finds the CA inside the kubeconfig of cluster-info.
func clusterInfo(text string, ref bundle.Ref) string {
	docs, err := yamlfile.FromBytes(ref, []byte(text))
	if err != nil || len(docs) == 0 || docs[0].Root == nil {
		return ""
	}
	b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(docs[0].String("/clusters/0/cluster/certificate-authority-data")), ""))
	if err != nil {
		return ""
	}
	return string(b)
}

// bundles gathers the caBundles of webhooks, extension API servers and
// conversion webhooks.
func (o *Stored) bundles(s *objects.Set) {
	add := func(name string, ref bundle.Ref, pem []byte) {
		if len(pem) > 0 {
			o.add(name, "caBundle", "kube-apiserver", "", ref, pem)
		}
	}
	for _, x := range s.ValidatingWebhooks().Items {
		for _, w := range x.Value.Webhooks {
			add("validating webhook "+w.Name, x.Ref, w.ClientConfig.CABundle)
		}
	}
	for _, x := range s.MutatingWebhooks().Items {
		for _, w := range x.Value.Webhooks {
			add("mutating webhook "+w.Name, x.Ref, w.ClientConfig.CABundle)
		}
	}
	for _, x := range s.APIServices().Items {
		if x.Value.Spec.Service != nil && !x.Value.Spec.InsecureSkipTLSVerify {
			add("APIService "+x.Value.Spec.Version+"."+x.Value.Spec.Group, x.Ref, x.Value.Spec.CABundle)
		}
	}
	for _, x := range s.CRDs().Items {
		conv := x.Value.Spec.Conversion
		name := "conversion webhook of " + x.Value.Spec.Names.Plural + "." + x.Value.Spec.Group
		switch {
		case conv.Webhook != nil && conv.Webhook.ClientConfig != nil:
			add(name, x.Ref, conv.Webhook.ClientConfig.CABundle)
		case conv.WebhookClientConfig != nil:
			add(name, x.Ref, conv.WebhookClientConfig.CABundle)
		}
	}
}

// pairs gathers the certificates of TLS Secrets.
func (o *Stored) pairs(s *objects.Set) {
	for _, x := range s.TLSSecrets().Items {
		t := x.Value
		o.Pairs = append(o.Pairs, &StoredPair{Namespace: t.Namespace, Secret: t.Name, CA: t.CA, Key: t.Key, Source: &Source{
			Path: x.Ref.Key, Name: "Secret " + t.Namespace + "/" + t.Name, Ref: x.Ref, PEM: t.Certificate, inline: true}})
	}
}

// Trusts reports whether a stored bundle and a CA file have a key in common.
func (c *StoredCA) Trusts(a *CA) bool { return a.Shares(&CA{Source: c.Source}) }
