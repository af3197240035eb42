// Package kubeadm holds facts about the ClusterConfiguration kubeadm
// remembers: the kubeadm-config ConfigMap, or the file an init was run with.
package kubeadm

import (
	"errors"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coldplane/analyze"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
)

// Defaults kubeadm fills in: cmd/kubeadm/app/apis/kubeadm/v1beta4/defaults.go.
const (
	DefaultDataDir         = "/var/lib/etcd"
	DefaultCertificatesDir = "/etc/kubernetes/pki"
	DefaultServiceSubnet   = "10.96.0.0/12"
	DefaultDNSDomain       = "cluster.local"
	DefaultImageRepository = "registry.k8s.io"
	DefaultClusterName     = "kubernetes"
)

// A Config is a ClusterConfiguration with kubeadm's defaults filled in.
type Config struct {
	Source     string // "configmap", "file", "store"
	Doc        *yamlfile.Doc
	DataDirSet bool // etcd.local.dataDir is written, not defaulted
	ClusterConfiguration
}

// ClusterConfiguration is kubeadm.k8s.io v1beta3 and v1beta4 in one shape.
type ClusterConfiguration struct {
	APIVersion           string          `json:"apiVersion"`
	Kind                 string          `json:"kind"`
	KubernetesVersion    string          `json:"kubernetesVersion"`
	ControlPlaneEndpoint string          `json:"controlPlaneEndpoint"`
	CertificatesDir      string          `json:"certificatesDir"`
	ImageRepository      string          `json:"imageRepository"`
	ClusterName          string          `json:"clusterName"`
	EncryptionAlgorithm  string          `json:"encryptionAlgorithm"`
	FeatureGates         map[string]bool `json:"featureGates"`
	Networking           struct {
		DNSDomain     string `json:"dnsDomain"`
		ServiceSubnet string `json:"serviceSubnet"`
		PodSubnet     string `json:"podSubnet"`
	} `json:"networking"`
	APIServer struct {
		Component
		CertSANs               []string         `json:"certSANs"`
		TimeoutForControlPlane *metav1.Duration `json:"timeoutForControlPlane"` // v1beta3
	} `json:"apiServer"`
	ControllerManager Component `json:"controllerManager"`
	Scheduler         Component `json:"scheduler"`
	DNS               struct {
		ImageRepository string `json:"imageRepository"`
		ImageTag        string `json:"imageTag"`
	} `json:"dns"`
	Etcd struct {
		Local    *LocalEtcd    `json:"local"`
		External *ExternalEtcd `json:"external"`
	} `json:"etcd"`
	CertificateValidityPeriod   string `json:"certificateValidityPeriod"`
	CACertificateValidityPeriod string `json:"caCertificateValidityPeriod"`
}

// A Component is one control-plane component's part.
type Component struct {
	ExtraArgs    Args            `json:"extraArgs"`
	ExtraEnvs    []corev1.EnvVar `json:"extraEnvs"`
	ExtraVolumes []struct {
		Name      string `json:"name"`
		HostPath  string `json:"hostPath"`
		MountPath string `json:"mountPath"`
		ReadOnly  bool   `json:"readOnly"`
		PathType  string `json:"pathType"`
	} `json:"extraVolumes"`
}

// LocalEtcd is a stacked etcd.
type LocalEtcd struct {
	ImageRepository string          `json:"imageRepository"`
	ImageTag        string          `json:"imageTag"`
	DataDir         string          `json:"dataDir"`
	ExtraArgs       Args            `json:"extraArgs"`
	ExtraEnvs       []corev1.EnvVar `json:"extraEnvs"`
	ServerCertSANs  []string        `json:"serverCertSANs"`
	PeerCertSANs    []string        `json:"peerCertSANs"`
}

// ExternalEtcd is an etcd kubeadm does not run.
type ExternalEtcd struct {
	Endpoints []string `json:"endpoints"`
	CAFile    string   `json:"caFile"`
	CertFile  string   `json:"certFile"`
	KeyFile   string   `json:"keyFile"`
}

// Ref points at a value of the configuration.
func (c *Config) Ref(pointer string) bundle.Ref { return c.Doc.Ref(pointer) }

// DataDir is the etcd data directory kubeadm remembers.
func (c *Config) DataDir() string { return path.Clean(c.Etcd.Local.DataDir) }

// External reports whether kubeadm was told of an external etcd.
func (c *Config) External() bool { return c.Etcd.External != nil }

func (c *Config) defaults() {
	set := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	set(&c.CertificatesDir, DefaultCertificatesDir)
	set(&c.ImageRepository, DefaultImageRepository)
	set(&c.Networking.ServiceSubnet, DefaultServiceSubnet)
	set(&c.Networking.DNSDomain, DefaultDNSDomain)
	set(&c.ClusterName, DefaultClusterName)
	if c.Etcd.External == nil {
		if c.Etcd.Local == nil {
			c.Etcd.Local = &LocalEtcd{}
		}
		c.DataDirSet = c.Etcd.Local.DataDir != ""
		set(&c.Etcd.Local.DataDir, DefaultDataDir)
	}
}

// files are where a ClusterConfiguration may lie on a node, best first.
var files = []string{
	"/kubeadm-config.yaml", "/etc/kubernetes/kubeadm-config.yaml", "/etc/kubernetes/kubeadm.yaml",
	"/etc/kubeadm.yaml", "/root/kubeadm-config.yaml", "/root/kubeadm.yaml",
}

// FromFile is the ClusterConfiguration in a node's own files.
var FromFile = &analyze.Fact[*Config]{
	Name:  "kubeadm.file",
	Kinds: []bundle.Kind{bundle.KindKubeadmConfig},
	Compute: func(c *analyze.Ctx) (*Config, error) {
		var first error
		for _, p := range files {
			f, err := c.Node().Stat(p)
			if err == nil {
				var cfg *Config
				if cfg, err = Read(f); err == nil {
					return cfg, nil
				}
			}
			if first == nil || bundle.ReasonOf(first) == bundle.NotCollected || bundle.ReasonOf(first) == bundle.Absent {
				first = err
			}
		}
		return nil, first
	},
}

// Cluster is the ClusterConfiguration of the cluster: from the shared files,
// else from the first node that has one.
var Cluster = &analyze.Fact[*Config]{
	Name:  "kubeadm.config",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindKubeadmConfig},
	Needs: []analyze.Need{FromFile},
	Compute: func(c *analyze.Ctx) (*Config, error) {
		var first error
		nodes := c.Nodes()
		slices.Reverse(nodes) // the shared pseudo-node comes last in Nodes
		var found *Config
		for _, n := range nodes {
			cfg, err := FromFile.Of(c, n)
			if err == nil {
				if n.Name == "" {
					return cfg, nil
				}
				found = cfg
				continue
			}
			if first == nil || bundle.ReasonOf(first) == bundle.NotCollected || bundle.ReasonOf(first) == bundle.Absent {
				first = err
			}
		}
		if found != nil {
			return found, nil
		}
		if first == nil || bundle.ReasonOf(first) == bundle.NotCollected || bundle.ReasonOf(first) == bundle.Absent {
			return nil, analyze.Missing(bundle.KindKubeadmConfig, "", bundle.NotCollected, "")
		}
		return nil, first
	},
}

// Read finds the ClusterConfiguration in a file: a ConfigMap, or documents
// as given to kubeadm init.
func Read(f *bundle.File) (*Config, error) {
	y, err := yamlfile.Read(f)
	if err != nil {
		return nil, err
	}
	for _, d := range y.Docs {
		cfg, err := FromDoc(d)
		if err != nil {
			return nil, yamlfile.Fault(f, err)
		}
		if cfg != nil {
			return cfg, nil
		}
	}
	return nil, yamlfile.Fault(f, errors.New("no ClusterConfiguration in it"))
}

// FromDoc reads a ClusterConfiguration out of a document, which may be the
// ConfigMap around it; nil when the document is something else.
func FromDoc(d *yamlfile.Doc) (*Config, error) {
	source := "file"
	if d.String("/kind") == "ConfigMap" {
		inner, err := d.Inner("/data/ClusterConfiguration")
		if err != nil {
			return nil, err
		}
		if len(inner) == 0 {
			return nil, errors.New("data.ClusterConfiguration is empty")
		}
		d, source = inner[0], "configmap"
	}
	if d.String("/kind") != "ClusterConfiguration" {
		return nil, nil
	}
	c := &Config{Doc: d, Source: source}
	if err := d.Decode(&c.ClusterConfiguration); err != nil {
		return nil, err
	}
	c.defaults()
	return c, nil
}
