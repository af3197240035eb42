package render

import (
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"coldplane/analyze/kubeadm"
	"coldplane/analyze/releases"
)

func mustQuantity(s string) resource.Quantity {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return resource.Quantity{} // constants of this package; a test compares them
	}
	return q
}

func (k *kubeadmRun) apiServer() *corev1.Pod {
	c := k.cfg
	args := map[string]string{
		"advertise-address":                  k.host.AdvertiseAddress,
		"enable-admission-plugins":           "NodeRestriction",
		"service-cluster-ip-range":           c.Networking.ServiceSubnet,
		"service-account-key-file":           k.cert("sa.pub"),
		"service-account-signing-key-file":   k.cert("sa.key"),
		"service-account-issuer":             issuer(c.Networking.DNSDomain),
		"client-ca-file":                     k.cert("ca.crt"),
		"tls-cert-file":                      k.cert("apiserver.crt"),
		"tls-private-key-file":               k.cert("apiserver.key"),
		"kubelet-client-certificate":         k.cert("apiserver-kubelet-client.crt"),
		"kubelet-client-key":                 k.cert("apiserver-kubelet-client.key"),
		"enable-bootstrap-token-auth":        "true",
		"secure-port":                        strconv.Itoa(int(k.host.BindPort)),
		"allow-privileged":                   "true",
		"kubelet-preferred-address-types":    "InternalIP,ExternalIP,Hostname",
		"requestheader-username-headers":     "X-Remote-User",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"requestheader-client-ca-file":       k.cert("front-proxy-ca.crt"),
		"requestheader-allowed-names":        "front-proxy-client",
		"proxy-client-cert-file":             k.cert("front-proxy-client.crt"),
		"proxy-client-key-file":              k.cert("front-proxy-client.key"),
	}
	if e := c.Etcd.External; e != nil {
		args["etcd-servers"] = strings.Join(e.Endpoints, ",")
		if e.CAFile != "" {
			args["etcd-cafile"] = e.CAFile
		}
		if e.CertFile != "" && e.KeyFile != "" {
			args["etcd-certfile"], args["etcd-keyfile"] = e.CertFile, e.KeyFile
		}
	} else {
		args["etcd-servers"] = url("https", k.loopback(), 2379)
		args["etcd-cafile"] = k.cert("etcd/ca.crt")
		args["etcd-certfile"] = k.cert("apiserver-etcd-client.crt")
		args["etcd-keyfile"] = k.cert("apiserver-etcd-client.key")
		if c.Etcd.Local != nil {
			if a, ok := c.Etcd.Local.ExtraArgs.Get("advertise-client-urls"); ok {
				args["etcd-servers"] = merged(args["etcd-servers"], a)
			}
		}
	}
	extra := slices.Clone(c.APIServer.ExtraArgs)
	_, structured := extra.Get("authorization-config")
	mode := "Node,RBAC"
	if a, ok := extra.Get("authorization-mode"); ok && a.Merge == "" {
		mode = authorizationModes(a.Value)
	}
	switch {
	case k.minor <= 28: // 1.28 and older put the checked list into the extra arguments
		extra = slices.DeleteFunc(extra, func(a kubeadm.Arg) bool { return a.Name == "authorization-mode" })
		args["authorization-mode"] = mode
	case !structured:
		args["authorization-mode"] = mode
	}
	v := k.hostMounts(apiServer)
	host := probeAddress(k.host.AdvertiseAddress)
	ct := corev1.Container{
		Name: apiServer, Image: k.image(apiServer),
		Command:      append([]string{apiServer}, k.args(args, extra)...),
		VolumeMounts: v.mounts(), Resources: quantityList("250m", ""), Env: k.env(c.APIServer.ExtraEnvs),
		LivenessProbe: k.probe(liveness, host, "/livez", k.host.BindPort, corev1.URISchemeHTTPS), ReadinessProbe: k.probe(readiness, host, "/readyz", k.host.BindPort, corev1.URISchemeHTTPS),
		StartupProbe: k.probe(startup, host, "/livez", k.host.BindPort, corev1.URISchemeHTTPS), Ports: k.ports(k.host.BindPort),
	}
	return k.pod(ct, v.volumes(), k.annotation("kube-apiserver.advertise-address.endpoint", net.JoinHostPort(k.host.AdvertiseAddress, strconv.Itoa(int(k.host.BindPort)))))
}

func merged(base string, a kubeadm.Arg) string {
	switch a.Merge {
	case "append":
		return base + a.Value
	case "prepend":
		return a.Value + base
	}
	return a.Value
}

// authorizationModes drops modes kubeadm does not know.
func authorizationModes(s string) string {
	var out []string
	for m := range strings.SplitSeq(s, ",") {
		switch m {
		case "Node", "RBAC", "Webhook", "ABAC", "AlwaysAllow", "AlwaysDeny":
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return "Node,RBAC"
	}
	return strings.Join(out, ",")
}

func (k *kubeadmRun) controllerManager() *corev1.Pod {
	c := k.cfg
	conf := kubernetesDir + "/controller-manager.conf"
	args := map[string]string{
		"bind-address": "127.0.0.1", "leader-elect": "true",
		"kubeconfig": conf, "authentication-kubeconfig": conf, "authorization-kubeconfig": conf,
		"client-ca-file":                   k.cert("ca.crt"),
		"requestheader-client-ca-file":     k.cert("front-proxy-ca.crt"),
		"root-ca-file":                     k.cert("ca.crt"),
		"service-account-private-key-file": k.cert("sa.key"),
		"cluster-signing-cert-file":        k.cert("ca.crt"),
		"cluster-signing-key-file":         k.cert("ca.key"),
		"use-service-account-credentials":  "true",
		"controllers":                      "*,bootstrapsigner,tokencleaner",
	}
	if k.host.ExternalCA {
		args["cluster-signing-cert-file"], args["cluster-signing-key-file"] = "", ""
	}
	if c.Networking.PodSubnet != "" {
		args["allocate-node-cidrs"], args["cluster-cidr"] = "true", c.Networking.PodSubnet
		if c.Networking.ServiceSubnet != "" {
			args["service-cluster-ip-range"] = c.Networking.ServiceSubnet
		}
	}
	if c.ClusterName != "" {
		args["cluster-name"] = c.ClusterName
	}
	v := k.hostMounts(controllerManager)
	host := bindAddress(c.ControllerManager.ExtraArgs)
	return k.pod(corev1.Container{
		Name: controllerManager, Image: k.image(controllerManager),
		Command:      append([]string{controllerManager}, k.args(args, c.ControllerManager.ExtraArgs)...),
		VolumeMounts: v.mounts(), Resources: quantityList("200m", ""), Env: k.env(c.ControllerManager.ExtraEnvs),
		LivenessProbe: k.probe(liveness, host, "/healthz", 10257, corev1.URISchemeHTTPS), StartupProbe: k.probe(startup, host, "/healthz", 10257, corev1.URISchemeHTTPS), Ports: k.ports(10257),
	}, v.volumes(), nil)
}

func (k *kubeadmRun) scheduler() *corev1.Pod {
	c := k.cfg
	conf := kubernetesDir + "/scheduler.conf"
	args := map[string]string{
		"bind-address": "127.0.0.1", "leader-elect": "true",
		"kubeconfig": conf, "authentication-kubeconfig": conf, "authorization-kubeconfig": conf,
	}
	v := k.hostMounts(scheduler)
	host := bindAddress(c.Scheduler.ExtraArgs)
	ct := corev1.Container{
		Name: scheduler, Image: k.image(scheduler),
		Command:      append([]string{scheduler}, k.args(args, c.Scheduler.ExtraArgs)...),
		VolumeMounts: v.mounts(), Resources: quantityList("100m", ""), Env: k.env(c.Scheduler.ExtraEnvs), Ports: k.ports(10259),
	}
	if k.minor >= 32 {
		ct.LivenessProbe = k.probe(liveness, host, "/livez", 10259, corev1.URISchemeHTTPS)
		ct.ReadinessProbe = k.probe(readiness, host, "/readyz", 10259, corev1.URISchemeHTTPS)
		ct.StartupProbe = k.probe(startup, host, "/livez", 10259, corev1.URISchemeHTTPS)
	} else {
		ct.LivenessProbe = k.probe(liveness, host, "/healthz", 10259, corev1.URISchemeHTTPS)
		ct.StartupProbe = k.probe(startup, host, "/healthz", 10259, corev1.URISchemeHTTPS)
	}
	return k.pod(ct, v.volumes(), nil)
}

func (k *kubeadmRun) etcd() *corev1.Pod {
	c, l := k.cfg, k.cfg.Etcd.Local
	addr := k.host.AdvertiseAddress
	args := map[string]string{
		"name":                        k.host.Name,
		"listen-client-urls":          url("https", k.loopback(), 2379) + "," + url("https", addr, 2379),
		"advertise-client-urls":       url("https", addr, 2379),
		"listen-peer-urls":            url("https", addr, 2380),
		"initial-advertise-peer-urls": url("https", addr, 2380),
		"data-dir":                    l.DataDir,
		"cert-file":                   k.cert("etcd/server.crt"),
		"key-file":                    k.cert("etcd/server.key"),
		"trusted-ca-file":             k.cert("etcd/ca.crt"),
		"client-cert-auth":            "true",
		"peer-cert-file":              k.cert("etcd/peer.crt"),
		"peer-key-file":               k.cert("etcd/peer.key"),
		"peer-trusted-ca-file":        k.cert("etcd/ca.crt"),
		"peer-client-cert-auth":       "true",
		"snapshot-count":              "10000",
		"listen-metrics-urls":         url("http", k.loopback(), 2381),
		"initial-cluster":             k.host.Name + "=" + url("https", addr, 2380),
	}
	tag := EtcdTag(k.minor, k.version, c)
	v, _ := releases.Parse(tag)
	if k.minor >= 36 || k.minor >= 34 && v.AtLeast(3, 6, 0) {
		args["feature-gates"], args["watch-progress-notify-interval"] = "InitialCorruptCheck=true", "5s"
	} else {
		args["experimental-initial-corrupt-check"], args["experimental-watch-progress-notify-interval"] = "true", "5s"
	}
	repo := c.ImageRepository
	if l.ImageRepository != "" {
		repo = l.ImageRepository
	}
	host, port, scheme := metricsEndpoint(l.ExtraArgs, k.loopback())
	ct := corev1.Container{
		Name: etcd, Image: repo + "/etcd:" + tag,
		Command:      append([]string{etcd}, k.args(args, l.ExtraArgs)...),
		VolumeMounts: []corev1.VolumeMount{{Name: "etcd-data", MountPath: l.DataDir}, {Name: "etcd-certs", MountPath: c.CertificatesDir + "/etcd"}},
		Resources:    quantityList("100m", "100Mi"), Env: sortedEnv(l.ExtraEnvs), Ports: k.ports(port),
	}
	if k.minor >= 31 {
		ct.LivenessProbe = k.probe(liveness, host, "/livez", port, scheme)
		ct.ReadinessProbe = k.probe(readiness, host, "/readyz", port, scheme)
		ct.StartupProbe = k.probe(startup, host, "/readyz", port, scheme)
	} else {
		ct.LivenessProbe = k.probe(liveness, host, "/health?exclude=NOSPACE&serializable=true", port, scheme)
		ct.StartupProbe = k.probe(startup, host, "/health?serializable=false", port, scheme)
	}
	vols := hostMounts{
		{"etcd-certs", c.CertificatesDir + "/etcd", "", corev1.HostPathDirectoryOrCreate, false},
		{"etcd-data", l.DataDir, "", corev1.HostPathDirectoryOrCreate, false},
	}
	return k.pod(ct, vols.volumes(), k.annotation("etcd.advertise-client-urls", url("https", addr, 2379)))
}
