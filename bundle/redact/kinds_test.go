package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	certv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certv1beta1 "k8s.io/api/certificates/v1beta1"
	coordv1 "k8s.io/api/coordination/v1"
	coordv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	eventsv1 "k8s.io/api/events/v1"
	eventsv1beta1 "k8s.io/api/events/v1beta1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	flowv1 "k8s.io/api/flowcontrol/v1"
	flowv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	nodev1 "k8s.io/api/node/v1"
	nodev1beta1 "k8s.io/api/node/v1beta1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagev1alpha1 "k8s.io/api/storage/v1alpha1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"

	"coldplane/bundle/decode/kubevalue"
)

func allKinds(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, admissionv1alpha1.AddToScheme, admissionv1beta1.AddToScheme, apiserverinternalv1alpha1.AddToScheme, appsv1.AddToScheme, appsv1beta1.AddToScheme,
		appsv1beta2.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		batchv1beta1.AddToScheme, certv1.AddToScheme, certv1alpha1.AddToScheme, certv1beta1.AddToScheme, coordv1.AddToScheme, coordv1beta1.AddToScheme, corev1.AddToScheme,
		discoveryv1.AddToScheme, discoveryv1beta1.AddToScheme, eventsv1.AddToScheme, eventsv1beta1.AddToScheme, extensionsv1beta1.AddToScheme, flowv1.AddToScheme,
		flowv1beta3.AddToScheme, networkingv1.AddToScheme, networkingv1beta1.AddToScheme, nodev1.AddToScheme, nodev1beta1.AddToScheme, policyv1.AddToScheme, policyv1beta1.AddToScheme,
		rbacv1.AddToScheme, rbacv1beta1.AddToScheme, resourcev1.AddToScheme, resourcev1beta1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
		storagev1alpha1.AddToScheme, storagev1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// filler puts a canary into every string and every byte slice of an object.
type filler struct {
	r *rand.Rand
	n int
}

func (f *filler) canary() string { f.n++; return canary(f.r) }

func (f *filler) fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime:
		v.Field(0).Set(reflect.ValueOf(time.Unix(1_700_000_000+f.r.Int64N(1e6), 0).UTC()))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(*resource.NewQuantity(f.r.Int64N(1e9), resource.DecimalSI)))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromString(f.canary())))
		return
	case metav1.FieldsV1:
		v.Set(reflect.ValueOf(metav1.FieldsV1{Raw: []byte(`{"f:` + f.canary() + `":{}}`)}))
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"a":"` + f.canary() + `"}`)}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.canary())
	case reflect.Bool:
		v.SetBool(f.r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(f.r.Int64N(1 << 30))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.r.Uint64N(200))
	case reflect.Float64:
		v.SetFloat(f.r.Float64())
	case reflect.Pointer:
		if depth < 9 && f.r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(f.canary()))
			return
		}
		if depth > 9 {
			return
		}
		n := f.r.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if depth > 9 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range f.r.IntN(3) {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			if k.Kind() == reflect.String {
				k.SetString(fmt.Sprintf("key-%d", f.r.IntN(1000)))
			} else {
				f.fill(k, depth+1)
			}
			f.fill(e, depth+1)
			v.SetMapIndex(k, e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "TypeMeta" {
				f.fill(v.Field(i), depth+1)
			}
		}
	}
}

// left lists the JSON paths at which canaries are found.
func left(v any, path string, out map[string]bool) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			p := k
			if strings.HasPrefix(k, "key-") { // of a map: stands for all keys
				p = "{}"
			}
			left(e, path+"."+p, out)
		}
	case []any:
		for _, e := range x {
			left(e, path, out)
		}
	case string:
		if strings.Contains(x, "CANARY") {
			out[strings.TrimPrefix(path, ".")] = true
		}
	}
}

func allowed(path string, k kindPolicy) bool {
	for _, m := range metaPaths {
		if p := "metadata." + m; path == p || strings.HasPrefix(path, p+".") {
			return true
		}
	}
	if strings.HasPrefix(path, "metadata.labels.") {
		return true
	}
	for _, p := range k.paths {
		p, edit, _ := strings.Cut(p, "|")
		if (edit == "" || edit == "text") && !strings.HasSuffix(p, "{}") && (path == p || strings.HasPrefix(path, p+".")) {
			return true
		}
	}
	return false
}

// Every built-in kind that is stored as protobuf, with secrets everywhere: only
// what is on its list stays, and the object still decodes.
func TestEveryKind(t *testing.T) {
	s := allKinds(t)
	ser := protobuf.NewSerializer(s, s)
	values := NewValues(LevelValues, nil)
	lists := kinds()
	var gvks []schema.GroupVersionKind
	for gvk, typ := range s.AllKnownTypes() {
		if strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || gvk.Version == runtime.APIVersionInternal || gvk.Kind == "WatchEvent" {
			continue
		}
		if f, ok := typ.FieldByName("ObjectMeta"); ok && f.Anonymous {
			gvks = append(gvks, gvk)
		}
	}
	sort.Slice(gvks, func(i, j int) bool { return gvks[i].String() < gvks[j].String() })
	r := rand.New(rand.NewPCG(11, 12))
	kept := map[string]bool{}
	objects, planted := 0, 0
	rounds := 40
	if testing.Short() {
		rounds = 3
	}
	for _, gvk := range gvks {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		for range rounds {
			o, err := s.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			f := &filler{r: r}
			f.fill(reflect.ValueOf(o).Elem(), 0)
			o.GetObjectKind().SetGroupVersionKind(gvk)
			var b bytes.Buffer
			if err := ser.Encode(o, &b); err != nil {
				t.Fatalf("%s: %v", gvk, err)
			}
			v, orig := b.Bytes(), bytes.Clone(b.Bytes())
			want := o.(metav1.Object).GetName()
			values.Scrub([]byte("/registry/x/ns/"+want), v)
			objects, planted = objects+1, planted+f.n
			got, _, err := ser.Decode(v, nil, nil)
			if err != nil {
				t.Fatalf("%s does not decode any more: %v\n%q\n%q", gvk, err, orig, v)
			}
			if got.(metav1.Object).GetName() != want || got.(metav1.Object).GetUID() != o.(metav1.Object).GetUID() {
				t.Fatalf("%s: metadata changed", gvk)
			}
			j, err := json.Marshal(got)
			if err != nil {
				t.Fatalf("%s: %v", gvk, err)
			}
			var tree any
			if err := json.Unmarshal(j, &tree); err != nil {
				t.Fatal(err)
			}
			paths := map[string]bool{}
			left(tree, "", paths)
			for p := range paths {
				if !allowed(p, lists[apiVersion+"/"+kind]) {
					t.Fatalf("%s: a secret is left at %s", gvk, p)
				}
				kept[apiVersion+"/"+kind+" "+p] = true
			}
		}
	}
	t.Logf("%d kinds, %d objects, %d canaries; %d kept paths", len(gvks), objects, planted, len(kept))
	if len(gvks) < 90 || planted < 2_000*rounds {
		t.Errorf("only %d kinds, %d canaries", len(gvks), planted)
	}
	// Every name on a list must be one the kind has: a typing mistake would drop
	// evidence in silence.
	for name, k := range lists {
		if k.typ == nil {
			continue
		}
		for _, p := range k.paths {
			p, _, _ := strings.Cut(p, "|")
			if !hasPath(k.typ, strings.Split(strings.TrimSuffix(p, "{}"), ".")) && !optional(p) {
				t.Errorf("%s has no field %s", name, p)
			}
		}
	}
}

// optional are names from lists that several kinds share.
func optional(p string) bool {
	return strings.HasPrefix(p, "involvedObject.") || strings.Contains(p, "status.conditions.") || strings.Contains(p, "template") || strings.HasPrefix(p, "spec.") && strings.Count(p, ".") == 1 ||
		strings.HasPrefix(p, "webhooks.reinvocation") || !strings.Contains(p, ".")
}

func hasPath(t reflect.Type, names []string) bool {
	_, sub, ok := fieldOf(t, names[0])
	return ok && (len(names) == 1 || hasPath(sub, names[1:]))
}

// Contract: whatever the value, it keeps its length, nothing panics, and a
// canary planted in what is no name is gone.
func FuzzScrubValue(f *testing.F) {
	f.Add([]byte("/registry/secrets/a/b"), []byte("k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x04\x12\x02\x0a\x00"))
	f.Add([]byte("/x"), []byte(`{"apiVersion":"v1","kind":"Secret","data":{"a":"Q0FOQVJZ"}}`))
	f.Add([]byte("/x"), []byte("k8s:enc:aescbc:v1:key:abc"))
	f.Fuzz(func(t *testing.T, key, v []byte) {
		for _, l := range []Level{LevelSecrets, LevelValues, LevelStructure} {
			b := bytes.Clone(v)
			NewValues(l, nil).Scrub(key, b)
			if len(b) != len(v) {
				t.Fatal("length changed")
			}
			// A broken encryption prefix is no prefix: the value is filled whole.
			if kubevalue.FormOf(v) == kubevalue.Encrypted && kubevalue.EncryptionPrefix(v) == nil {
				continue
			}
			if kubevalue.FormOf(b) != kubevalue.FormOf(v) && kubevalue.FormOf(v) != kubevalue.Other && kubevalue.FormOf(v) != kubevalue.JSON && kubevalue.FormOf(v) != kubevalue.CBOR {
				t.Fatalf("form %v became %v", kubevalue.FormOf(v), kubevalue.FormOf(b))
			}
		}
	})
}
