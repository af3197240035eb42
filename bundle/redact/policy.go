package redact

import (
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coldplane/bundle/decode/kubevalue"
)

// A Level says how much of a store's values stays.
type Level string

// Levels, from little to much removed. All of them zero unreachable pages and the
// slack of pages, and overwrite ciphertext and password hashes.
const (
	LevelSecrets   Level = "secrets"   // Secrets lose their data and annotations; all else stays
	LevelValues    Level = "values"    // all kinds keep only what is on their list (default)
	LevelStructure Level = "structure" // only type, name, namespace, uid and times of any object stay
)

// ParseLevel reads a level.
func ParseLevel(s string) (Level, bool) {
	switch l := Level(s); l {
	case LevelSecrets, LevelValues, LevelStructure:
		return l, true
	}
	return "", false
}

// A kindPolicy is what may be kept of one kind, in the names of its JSON form.
//
//	spec.taints      a field, with everything below it
//	data{}           a map: its keys, not its values
//	spec.args|flags  a field, after an edit that overwrites parts of it
type kindPolicy struct {
	typ   reflect.Type // nil when the kind is only ever stored as JSON
	paths []string
}

// edits by name.
type edits map[string]func([]byte)

// compiled is one kindPolicy for both wire formats.
type compiled struct {
	proto *kubevalue.Policy
	json  *kubevalue.JSONPolicy
}

// keepAnnotations are annotations whose values say something about the control
// plane and never carry what an operator typed.
var keepAnnotations = map[string]bool{
	"kubernetes.io/config.hash": true, "kubernetes.io/config.mirror": true, "kubernetes.io/config.seen": true, "kubernetes.io/config.source": true,
	"kubeadm.alpha.kubernetes.io/cri-socket":                          true,
	"kubeadm.kubernetes.io/etcd.advertise-client-urls":                true,
	"kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint": true,
	"kubeadm.kubernetes.io/component-config.hash":                     true,
	"node.alpha.kubernetes.io/ttl":                                    true,
	"volumes.kubernetes.io/controller-managed-attach-detach":          true,
	"rbac.authorization.kubernetes.io/autoupdate":                     true,
	"deployment.kubernetes.io/revision":                               true,
	"deployment.kubernetes.io/desired-replicas":                       true,
	"deployment.kubernetes.io/max-replicas":                           true,
	"deprecated.daemonset.template.generation":                        true,
	"endpoints.kubernetes.io/last-change-trigger-time":                true,
	"kube-aggregator.kubernetes.io/automanaged":                       true,
	"api-approved.kubernetes.io":                                      true,
	"storageclass.kubernetes.io/is-default-class":                     true,
	"apf.kubernetes.io/autoupdate-spec":                               true,
}

var metaPaths = []string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "ownerReferences", "finalizers",
	"managedFields.manager", "managedFields.operation", "managedFields.apiVersion", "managedFields.time", "managedFields.fieldsType", "managedFields.subresource",
	"managedFields.fieldsV1|emptyjson",
}

// barePaths are all that the level structure keeps.
var barePaths = []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}

func keepValue(key []byte) *kubevalue.Policy {
	if keepAnnotations[string(key)] {
		return &kubevalue.Policy{Action: kubevalue.Keep}
	}
	return nil
}

func keepJSON(key []byte) *kubevalue.JSONPolicy {
	if keepAnnotations[string(key)] {
		return &kubevalue.JSONPolicy{Keep: true}
	}
	return nil
}

// metadata returns the policy of ObjectMeta.
func metadata(l Level) compiled {
	paths := metaPaths
	if l == LevelStructure {
		paths = barePaths
	}
	c := compile(kindPolicy{reflect.TypeFor[metav1.ObjectMeta](), paths}, nil)
	if l == LevelStructure {
		return c
	}
	labels := number(reflect.TypeFor[metav1.ObjectMeta](), "labels")
	annotations := number(reflect.TypeFor[metav1.ObjectMeta](), "annotations")
	c.proto.Fields[labels] = &kubevalue.Policy{Action: kubevalue.MapKeys, MapValue: func([]byte) *kubevalue.Policy { return &kubevalue.Policy{Action: kubevalue.Keep} }}
	c.proto.Fields[annotations] = &kubevalue.Policy{Action: kubevalue.MapKeys, MapValue: keepValue}
	c.json.Fields["labels"] = &kubevalue.JSONPolicy{Keep: true}
	c.json.Fields["annotations"] = &kubevalue.JSONPolicy{Any: keepJSON}
	return c
}

// compile turns names into field numbers by the protobuf tags of the Go types.
// Names that a type does not have are ignored in protobuf and kept for JSON; a
// test compares the lists with the types.
func compile(k kindPolicy, e edits) compiled {
	c := compiled{
		proto: &kubevalue.Policy{Action: kubevalue.Descend, Fields: map[protowire.Number]*kubevalue.Policy{}},
		json:  &kubevalue.JSONPolicy{Fields: map[string]*kubevalue.JSONPolicy{}},
	}
	for _, p := range k.paths {
		path, edit, _ := strings.Cut(p, "|")
		keys := strings.HasSuffix(path, "{}")
		names := strings.Split(strings.TrimSuffix(path, "{}"), ".")
		leaf := &kubevalue.Policy{Action: kubevalue.Keep, Edit: e[edit]}
		jleaf := &kubevalue.JSONPolicy{Keep: edit == ""}
		switch {
		case keys:
			leaf = &kubevalue.Policy{Action: kubevalue.MapKeys}
			jleaf = nil
		case edit == "emptyjson":
			// FieldsV1 is a message around its bytes.
			leaf = &kubevalue.Policy{Action: kubevalue.Descend, Fields: map[protowire.Number]*kubevalue.Policy{1: {Action: kubevalue.EmptyJSON}}}
			jleaf = &kubevalue.JSONPolicy{Hide: true}
		}
		setJSON(c.json, names, jleaf)
		if k.typ != nil {
			setProto(c.proto, k.typ, names, leaf)
		}
	}
	return c
}

func (c compiled) withMeta(l Level) compiled {
	m := metadata(l)
	c.proto.Fields[1] = m.proto // ObjectMeta is field 1 of every stored kind
	c.json.Fields["metadata"] = m.json
	c.json.Fields["apiVersion"] = &kubevalue.JSONPolicy{Keep: true}
	c.json.Fields["kind"] = &kubevalue.JSONPolicy{Keep: true}
	return c
}

func setProto(p *kubevalue.Policy, t reflect.Type, names []string, leaf *kubevalue.Policy) {
	f, sub, ok := fieldOf(t, names[0])
	if !ok {
		return
	}
	for _, n := range f[:len(f)-1] {
		p = descend(p, n)
	}
	last := f[len(f)-1]
	if len(names) == 1 {
		p.Fields[last] = leaf
		return
	}
	setProto(descend(p, last), sub, names[1:], leaf)
}

func setJSON(p *kubevalue.JSONPolicy, names []string, leaf *kubevalue.JSONPolicy) {
	for _, n := range names[:len(names)-1] {
		q := p.Fields[n]
		if q == nil || q.Keep {
			q = &kubevalue.JSONPolicy{Fields: map[string]*kubevalue.JSONPolicy{}}
			p.Fields[n] = q
		}
		p = q
	}
	if leaf != nil {
		p.Fields[names[len(names)-1]] = leaf
	}
}

func descend(p *kubevalue.Policy, n protowire.Number) *kubevalue.Policy {
	q := p.Fields[n]
	if q == nil || q.Action != kubevalue.Descend {
		q = &kubevalue.Policy{Action: kubevalue.Descend, Fields: map[protowire.Number]*kubevalue.Policy{}}
		p.Fields[n] = q
	}
	return q
}

// fieldOf finds a field by its JSON name; inlined structs have a number of their
// own, which comes first.
func fieldOf(t reflect.Type, name string) (nums []protowire.Number, sub reflect.Type, ok bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, nil, false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		n := tagNumber(f.Tag.Get("protobuf"))
		jname, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case n != 0 && jname == name:
			return []protowire.Number{n}, f.Type, true
		case n != 0 && jname == "" && (f.Anonymous || strings.Contains(opts, "inline")):
			if below, sub, ok := fieldOf(f.Type, name); ok {
				return append([]protowire.Number{n}, below...), sub, true
			}
		}
	}
	return nil, nil, false
}

func number(t reflect.Type, name string) protowire.Number {
	if f, _, ok := fieldOf(t, name); ok {
		return f[0]
	}
	return 0
}

func tagNumber(tag string) protowire.Number {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0
	}
	n := 0
	for _, c := range parts[1] {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return protowire.Number(n)
}
