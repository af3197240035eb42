// Package kubelet holds facts about the kubelet's configuration: its
// KubeletConfiguration file with drop-ins, and the flags it is started with.
package kubelet

import (
	"errors"
	"path"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
)

// Paths kubeadm uses: cmd/kubeadm/app/constants and the kubelet unit of the
// Kubernetes packages.
const (
	ConfigPath         = "/var/lib/kubelet/config.yaml"
	InstanceConfigPath = "/var/lib/kubelet/instance-config.yaml"
	FlagsEnvPath       = "/var/lib/kubelet/kubeadm-flags.env"
	DefaultStaticPods  = "/etc/kubernetes/manifests"
)

// A Config is the kubelet's configuration as far as it is known.
type Config struct {
	Doc *yamlfile.Doc // the KubeletConfiguration document
	KubeletConfiguration
}

// KubeletConfiguration is the part of kubelet.config.k8s.io/v1beta1 that rules ask for.
type KubeletConfiguration struct {
	APIVersion                string            `json:"apiVersion"`
	Kind                      string            `json:"kind"`
	StaticPodPath             *string           `json:"staticPodPath"`
	CgroupDriver              string            `json:"cgroupDriver"`
	ClusterDNS                []string          `json:"clusterDNS"`
	ClusterDomain             string            `json:"clusterDomain"`
	ContainerRuntimeEndpoint  string            `json:"containerRuntimeEndpoint"`
	FailSwapOn                *bool             `json:"failSwapOn"`
	FailCgroupV1              *bool             `json:"failCgroupV1"`
	EventRecordQPS            *int32            `json:"eventRecordQPS"`
	FeatureGates              map[string]bool   `json:"featureGates"`
	RotateCertificates        *bool             `json:"rotateCertificates"`
	ServerTLSBootstrap        bool              `json:"serverTLSBootstrap"`
	TLSCertFile               string            `json:"tlsCertFile"`
	TLSPrivateKeyFile         string            `json:"tlsPrivateKeyFile"`
	FileCheckFrequency        string            `json:"fileCheckFrequency"`
	EvictionHard              map[string]string `json:"evictionHard"`
	NodeStatusUpdateFrequency string            `json:"nodeStatusUpdateFrequency"`
	NodeLeaseDurationSeconds  *int32            `json:"nodeLeaseDurationSeconds"`
	Authentication            struct {
		X509 struct {
			ClientCAFile string `json:"clientCAFile"`
		} `json:"x509"`
	} `json:"authentication"`
	MemorySwap struct {
		SwapBehavior string `json:"swapBehavior"`
	} `json:"memorySwap"`
}

// File is the KubeletConfiguration of a node. kubeadm's instance configuration
// (a patch of containerRuntimeEndpoint since 1.32) is applied over it.
var File = &analyze.Fact[*Config]{
	Name:  "kubelet.config",
	Kinds: []bundle.Kind{bundle.KindKubelet},
	Compute: func(c *analyze.Ctx) (*Config, error) {
		f, err := c.Node().Stat(ConfigPath)
		if err != nil {
			return nil, err
		}
		cfg, err := read(f)
		if err != nil {
			return nil, err
		}
		if f, err := c.Node().Stat(InstanceConfigPath); err == nil {
			if inst, err := read(f); err == nil && inst.ContainerRuntimeEndpoint != "" {
				cfg.ContainerRuntimeEndpoint = inst.ContainerRuntimeEndpoint
			}
		}
		return cfg, nil
	},
}

func read(f *bundle.File) (*Config, error) {
	y, err := yamlfile.Read(f)
	if err != nil {
		return nil, err
	}
	if len(y.Docs) == 0 || y.Docs[0].Root == nil {
		return nil, yamlfile.Fault(f, errors.New("an empty file"))
	}
	cfg := &Config{Doc: y.Docs[0]}
	if err := y.Docs[0].Decode(&cfg.KubeletConfiguration); err != nil {
		return nil, yamlfile.Fault(f, err)
	}
	return cfg, nil
}

// A Flag is one flag the kubelet is started with.
type Flag struct {
	Name, Value string
	Ref         bundle.Ref
}

// Flags are the kubelet's flags, in the order in which the unit kubeadm ships
// puts them on the command line; the last of a name wins.
type Flags []Flag

// Get returns the value of the last flag of that name.
func (fs Flags) Get(name string) (Flag, bool) {
	for i := len(fs) - 1; i >= 0; i-- {
		if fs[i].Name == name {
			return fs[i], true
		}
	}
	return Flag{}, false
}

// CommandLine is the kubelet's flags from kubeadm-flags.env, the defaults
// files and the unit's drop-ins.
var CommandLine = &analyze.Fact[Flags]{
	Name:  "kubelet.flags",
	Kinds: []bundle.Kind{bundle.KindKubelet},
	Compute: func(c *analyze.Ctx) (Flags, error) {
		n := c.Node()
		var out Flags
		var firstErr error
		found := false
		files := n.Glob("/etc/systemd/system/kubelet.service.d/*.conf")
		files = append(n.Glob("/usr/lib/systemd/system/kubelet.service.d/*.conf"), files...)
		for _, p := range []string{FlagsEnvPath, "/etc/default/kubelet", "/etc/sysconfig/kubelet"} {
			f, err := n.Stat(p)
			if err == nil {
				files = append(files, f)
			} else if firstErr == nil {
				firstErr = err
			}
		}
		for _, f := range files {
			b, err := f.Bytes(1 << 20)
			if err != nil {
				firstErr = err
				continue
			}
			found = true
			for i, line := range strings.Split(string(b), "\n") {
				out = append(out, parseLine(f, i+1, line)...)
			}
		}
		if !found {
			return nil, firstErr
		}
		return out, nil
	},
}

// parseLine finds the flags of a NAME="--a=b --c" line or an Environment= one.
func parseLine(f *bundle.File, line int, s string) Flags {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "#") || strings.HasPrefix(s, ";") {
		return nil
	}
	i := strings.Index(s, "--")
	if i < 0 {
		return nil
	}
	var out Flags
	for _, w := range strings.Fields(strings.Trim(s[i:], `"'`)) {
		w = strings.Trim(w, `"'`)
		name, ok := strings.CutPrefix(w, "--")
		if !ok {
			if len(out) > 0 && out[len(out)-1].Value == "" && !strings.HasPrefix(w, "$") {
				out[len(out)-1].Value = w
			}
			continue
		}
		name, value, _ := strings.Cut(name, "=")
		out = append(out, Flag{name, value, f.Line(line)})
	}
	return out
}

// A StaticPodPath is the directory the kubelet reads static pods from, and
// what says so.
type StaticPodPath struct {
	Path string     // "" when static pods are switched off
	Ref  bundle.Ref // zero when it is kubeadm's default, assumed
}

// StaticPods decides the static-pod directory of a node. Without the kubelet's
// configuration it is kubeadm's default, and Ref is zero.
var StaticPods = &analyze.Fact[StaticPodPath]{
	Name:  "kubelet.static-pod-path",
	Kinds: []bundle.Kind{bundle.KindKubelet},
	Needs: []analyze.Need{File, CommandLine},
	Compute: func(c *analyze.Ctx) (StaticPodPath, error) {
		out := StaticPodPath{Path: DefaultStaticPods}
		if cfg, err := File.Get(c); err == nil {
			out = StaticPodPath{Ref: cfg.Doc.Ref("/staticPodPath")}
			if cfg.StaticPodPath != nil && *cfg.StaticPodPath != "" {
				out.Path = path.Clean(*cfg.StaticPodPath)
			}
		}
		if fs, err := CommandLine.Get(c); err == nil {
			if f, ok := fs.Get("pod-manifest-path"); ok {
				out = StaticPodPath{Path: f.Value, Ref: f.Ref}
			}
		}
		return out, nil
	},
}
