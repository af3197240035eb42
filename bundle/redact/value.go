package redact

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"

	"coldplane/bundle/decode/kubevalue"
)

// Values scrubs values of a store by kind. It is safe for concurrent use when
// Secret is.
type Values struct {
	level    Level
	kinds    map[string]compiled
	any      compiled // kinds without a list
	bare     compiled // LevelStructure
	system   compiled // pods of kube-system
	sysEvent compiled
	token    compiled // bootstrap tokens
	cm       compiled // ConfigMaps that are kept
	rootCA   compiled // kube-root-ca.crt of every namespace
	cr       *kubevalue.JSONPolicy
	app      *kubevalue.JSONPolicy // Argo CD's Applications
	flags    *flagSet
	secret   func([]byte)
}

// NewValues prepares the policies of a level. secret, if not nil, sees every
// content of a Secret before it is overwritten.
func NewValues(l Level, secret func([]byte)) *Values {
	v := &Values{level: l, kinds: map[string]compiled{}, flags: newFlagSet(), secret: secret}
	e := edits{
		"flags": func(b []byte) { v.flags.argument(b) },
		"text":  func(b []byte) { Text(b) },
		"url":   maskURL,
	}
	for name, k := range kinds() {
		v.kinds[name] = compile(k, e).withMeta(l)
	}
	v.any = compile(kindPolicy{}, nil).withMeta(l)
	v.bare = compile(kindPolicy{}, nil).withMeta(LevelStructure)
	v.system = compile(kindPolicy{kinds()["v1/Pod"].typ, systemPodPaths}, e).withMeta(l)
	v.sysEvent = compile(kindPolicy{kinds()["v1/Event"].typ, append([]string{"message|text"}, eventPaths...)}, e).withMeta(l)
	v.kinds["v1/Secret"] = v.mapValues("v1/Secret", "data", e, v.publicPart)
	v.token = v.mapValues("v1/Secret", "data", e, func(k []byte) (bool, func([]byte)) { return bootstrapKeys[string(k)], nil })
	v.cm = v.mapValues("v1/ConfigMap", "data", e, configMapEdit)
	v.rootCA = v.mapValues("v1/ConfigMap", "data", e, func(k []byte) (bool, func([]byte)) {
		_, edit := configMapEdit(k)
		return string(k) == "ca.crt", edit
	})
	v.cr = crPolicy(l)
	v.app = crPolicy(l, "status.sync.status", "status.health.status", "status.reconciledAt")
	return v
}

// mapValues is a kind's policy with some values of one map kept, after an edit.
func (v *Values) mapValues(kind, field string, e edits, keep func(key []byte) (bool, func([]byte))) compiled {
	k := kinds()[kind]
	c := compile(k, e).withMeta(v.level)
	c.proto.Fields[number(k.typ, field)] = &kubevalue.Policy{Action: kubevalue.MapKeys, MapValue: func(key []byte) *kubevalue.Policy {
		if ok, edit := keep(key); ok {
			return &kubevalue.Policy{Action: kubevalue.Keep, Edit: edit}
		}
		return nil
	}}
	return c
}

// crPolicy keeps the conditions of a custom resource, and some more of it.
func crPolicy(l Level, more ...string) *kubevalue.JSONPolicy {
	c := compile(kindPolicy{}, nil).withMeta(l)
	if l != LevelStructure {
		for _, p := range append(conditions("status.conditions"), more...) {
			setJSON(c.json, strings.Split(p, "."), &kubevalue.JSONPolicy{Keep: true})
		}
	}
	return c.json
}

// configMapEdit says what becomes of a value of a ConfigMap that is kept: CA
// certificates and CoreDNS's Corefile stay, configurations lose the fields that
// are not on their list.
func configMapEdit(key []byte) (bool, func([]byte)) {
	switch k := string(key); {
	case strings.HasPrefix(k, "jws-"):
		return false, nil
	case k == "Corefile":
		return true, func(b []byte) { Text(b) }
	case k == "ca.crt", strings.HasSuffix(k, "ca-file"):
		return true, func(b []byte) {
			if !onlyCertificates(b) {
				mask(b)
			}
		}
	case strings.HasPrefix(k, "requestheader-"):
		return true, func(b []byte) { Check(b) }
	}
	return true, KubeadmText
}

// publicPart keeps the certificates of a Secret, where they are nothing else: the
// key beside them is overwritten like any other value.
func (v *Values) publicPart(key []byte) (bool, func([]byte)) {
	if k := string(key); k != "tls.crt" && k != "ca.crt" {
		return false, nil
	}
	return true, func(b []byte) {
		if onlyCertificates(b) {
			return
		}
		if v.secret != nil {
			v.secret(b)
		}
		kubevalue.FillText(b)
	}
}

// onlyCertificates reports whether a text is X.509 certificates in PEM and
// nothing else.
func onlyCertificates(b []byte) bool {
	any := false
	for b = bytes.TrimSpace(b); len(b) > 0; b = bytes.TrimSpace(b) {
		if !bytes.HasPrefix(b, []byte("-----BEGIN CERTIFICATE-----")) {
			return false
		}
		block, rest := pem.Decode(b)
		if block == nil || block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			return false
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
		// Decode skips what it cannot read: the block must be the first one.
		if bytes.Count(b[:len(b)-len(rest)], []byte("-----BEGIN")) != 1 {
			return false
		}
		any, b = true, rest
	}
	return any
}

// KubeadmText overwrites in place what must not stay in a kept configuration
// text: values of flags that are not on the list, and secret shapes.
func KubeadmText(b []byte) {
	yamlInPlace(b, configScalar)
	Check(b)
}

// Scrub overwrites one value in place. What cannot be parsed is overwritten
// whole.
func (v *Values) Scrub(key, value []byte) {
	secretKey := bytes.Contains(key, []byte("/secrets/"))
	switch kubevalue.FormOf(value) {
	case kubevalue.Empty:
	case kubevalue.Encrypted:
		p := kubevalue.EncryptionPrefix(value)
		kubevalue.FillText(value[len(p):])
	case kubevalue.Protobuf:
		v.protobuf(key, value, secretKey)
	case kubevalue.JSON:
		v.json(key, value, secretKey)
	default:
		if v.level == LevelSecrets && !secretKey || harmlessValue(key, value) {
			return
		}
		v.fill(value, secretKey)
	}
}

// harmlessValue are the few values of a Kubernetes store that are plain text.
func harmlessValue(key, value []byte) bool {
	return string(key) == "compact_rev_key" && len(value) <= 20 && digits(value) == len(value)
}

func (v *Values) fill(b []byte, secret bool) {
	if secret && v.secret != nil {
		v.secret(b)
	}
	kubevalue.FillText(b)
}

func (v *Values) protobuf(key, value []byte, secretKey bool) {
	e, ok := kubevalue.Unwrap(value)
	if !ok || !e.Bare && v.level != LevelSecrets || len(value) > kubevalue.MaxValue {
		v.broken(value, secretKey)
		return
	}
	isSecret := secretKey || e.Kind == "Secret"
	if v.level == LevelSecrets && !isSecret {
		return
	}
	p := v.policy(e.APIVersion, e.Kind, key)
	o := kubevalue.Options{Check: Check}
	if isSecret {
		o.Overwritten = v.secret
	}
	if err := kubevalue.ScrubMessage(e.Object, p.proto, o); err != nil {
		v.broken(value, isSecret)
	}
}

// broken overwrites a value that cannot be taken apart; its form stays visible.
func (v *Values) broken(value []byte, secret bool) {
	if v.level == LevelSecrets && !secret {
		return
	}
	v.fill(value[min(4, len(value)):], secret)
}

func (v *Values) policy(apiVersion, kind string, key []byte) compiled {
	if v.level == LevelStructure {
		return v.bare
	}
	id := apiVersion + "/" + kind
	ns, name := nsName(key)
	switch {
	case id == "v1/Pod" && ns == "kube-system":
		return v.system
	case id == "v1/Event" && (ns == "kube-system" || ns == "kube-node-lease"):
		return v.sysEvent
	case id == "v1/Secret" && ns == "kube-system" && strings.HasPrefix(name, "bootstrap-token-"):
		return v.token
	case id == "v1/ConfigMap" && (systemConfigMaps[ns+"/"+name] || ns == "kube-system" && strings.HasPrefix(name, "kubelet-config")):
		return v.cm
	case id == "v1/ConfigMap" && name == "kube-root-ca.crt":
		return v.rootCA
	}
	if p, ok := v.kinds[id]; ok {
		return p
	}
	return v.any
}

// nsName takes the last two parts of a key. A tenant can choose the name of an
// object and with a namespace of his own the part before, not the part before
// that: kinds are told by the value, and these two only within their kind.
func nsName(key []byte) (ns, name string) {
	i := bytes.LastIndexByte(key, '/')
	if i < 0 {
		return "", string(key)
	}
	j := bytes.LastIndexByte(key[:i], '/')
	return string(key[j+1 : i]), string(key[i+1:])
}

func (v *Values) json(key, value []byte, secretKey bool) {
	if v.level == LevelSecrets && !secretKey && !bytes.Contains(value, []byte("Secret")) {
		return
	}
	var t struct{ APIVersion, Kind string }
	if len(value) > kubevalue.MaxValue || json.Unmarshal(value, &t) != nil {
		v.broken(value, secretKey)
		return
	}
	isSecret := secretKey || t.Kind == "Secret"
	if v.level == LevelSecrets && !isSecret {
		return
	}
	p := v.cr
	if t.Kind == "" || t.APIVersion == "" {
		p = nil // not Kubernetes
	} else if t.Kind == "Application" && strings.HasPrefix(t.APIVersion, "argoproj.io/") {
		p = v.app
	} else if k, ok := v.kinds[t.APIVersion+"/"+t.Kind]; ok && v.level != LevelStructure {
		p = k.json
	}
	o := kubevalue.Options{Check: Check}
	if isSecret {
		o.Overwritten = v.secret
	}
	if err := kubevalue.ScrubJSON(value, p, o); err != nil {
		v.broken(value, isSecret)
	}
}

// maskURL keeps scheme, host and port of a URL.
func maskURL(b []byte) {
	i := bytes.Index(b, []byte("://"))
	if i < 0 {
		mask(b)
		return
	}
	rest := b[i+3:]
	if j := bytes.IndexAny(rest, "/?#"); j >= 0 {
		mask(rest[j:])
		rest = rest[:j]
	}
	if j := bytes.LastIndexByte(rest, '@'); j >= 0 {
		mask(rest[:j])
	}
}
