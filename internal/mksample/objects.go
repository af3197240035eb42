package main

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
)

// A writer stores objects as an API server would: protobuf, under /registry.
type writer struct {
	ctx context.Context
	c   *clientv3.Client
	err error
	n   int
}

func (w *writer) put(key string, apiVersion, kind string, obj runtime.Object) {
	if w.err != nil {
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk(apiVersion, kind))
	var b bytes.Buffer
	if w.err = protobuf.NewSerializer(nil, nil).Encode(obj, &b); w.err == nil {
		_, w.err = w.c.Put(w.ctx, path.Join("/registry", key), b.String())
	}
}

func (w *writer) meta(ns, name string, at time.Time) metav1.ObjectMeta {
	w.n++
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n)), CreationTimestamp: metav1.NewTime(at)}
}

func (w *writer) cluster(at time.Time) {
	for _, ns := range []string{"default", "kube-system", "kube-public", "kube-node-lease", "shop"} {
		w.put("namespaces/"+ns, "v1", "Namespace", &corev1.Namespace{ObjectMeta: w.meta("", ns, made), Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}})
	}
	for _, m := range machines {
		n := &corev1.Node{ObjectMeta: w.meta("", m.Name, made)}
		n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": m.Name}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: m.IP}, {Type: corev1.NodeHostName, Address: m.Name}}
		n.Status.NodeInfo.KubeletVersion = "v1.37.2"
		n.Status.NodeInfo.ContainerRuntimeVersion = "containerd://2.1.4"
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(made), Reason: "KubeletReady"}}
		w.put("minions/"+m.Name, "v1", "Node", n)
	}
	w.put("configmaps/kube-system/kubeadm-config", "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: w.meta("kube-system", "kubeadm-config", made), Data: map[string]string{"ClusterConfiguration": clusterConfiguration}})
	for i, m := range machines {
		p := &corev1.Pod{ObjectMeta: w.meta("kube-system", fmt.Sprintf("coredns-5d78c9869d-%d", i), made)}
		p.Labels = map[string]string{"k8s-app": "kube-dns"}
		p.Spec.NodeName = m.Name
		p.Spec.Containers = []corev1.Container{{Name: "coredns", Image: "registry.k8s.io/coredns/coredns:v1.12.4"}}
		p.Status.Phase = corev1.PodRunning
		w.put("pods/kube-system/"+p.Name, "v1", "Pod", p)
	}
}

// shop is the tenant whose namespace is deleted by accident.
func (w *writer) shop(at time.Time) {
	for i := range 25 {
		name := fmt.Sprintf("shop-%02d", i)
		d := &appsv1.Deployment{ObjectMeta: w.meta("shop", name, at)}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		d.Spec.Template.Labels = map[string]string{"app": name}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "registry.example/shop:1.4"}}
		w.put("deployments/shop/"+name, "apps/v1", "Deployment", d)
		cm := &corev1.ConfigMap{ObjectMeta: w.meta("shop", name, at), Data: map[string]string{"settings": string(bytes.Repeat([]byte("x"), 400))}}
		w.put("configmaps/shop/"+name, "v1", "ConfigMap", cm)
	}
}

func (w *writer) deleteShop() {
	for _, p := range []string{"deployments/shop/", "configmaps/shop/", "namespaces/shop"} {
		if w.err == nil {
			_, w.err = w.c.Delete(w.ctx, "/registry/"+p, clientv3.WithPrefix())
		}
	}
}

// leases renews every node's and leader's lease n times, two seconds apart,
// ending at a time.
func (w *writer) leases(end time.Time, n int) {
	for i := n - 1; i >= 0; i-- {
		at := metav1.NewMicroTime(end.Add(-time.Duration(i) * 2 * time.Second))
		for _, l := range []struct{ ns, name, holder string }{
			{"kube-node-lease", "cp1", "cp1"}, {"kube-node-lease", "cp2", "cp2"}, {"kube-node-lease", "cp3", "cp3"},
			{"kube-system", "kube-controller-manager", "cp2_11111111-2222-4333-8444-555555555555"},
			{"kube-system", "kube-scheduler", "cp3_11111111-2222-4333-8444-666666666666"},
		} {
			dur := int32(15)
			if l.ns == "kube-node-lease" {
				dur = 40
			}
			o := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: l.name, UID: types.UID("lease-" + l.name), CreationTimestamp: metav1.NewTime(made)}}
			o.Spec.HolderIdentity, o.Spec.LeaseDurationSeconds, o.Spec.RenewTime = &l.holder, &dur, &at
			w.put("leases/"+l.ns+"/"+l.name, "coordination.k8s.io/v1", "Lease", o)
		}
	}
}

// compact does what an API server does every five minutes.
func (w *writer) compact() {
	if w.err != nil {
		return
	}
	r, err := w.c.Put(w.ctx, "compact_rev_key", "1")
	if w.err = err; err == nil {
		_, w.err = w.c.Compact(w.ctx, r.Header.Revision-60)
	}
}
