package main

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// serving are the files of apiserver's options that every component with a
// secure port and delegated authentication uses.
var serving = []string{"authentication.go", "authorization.go", "serving.go", "serving_with_loopback.go", "serving_unix.go"}

// A source is a package, or some files of it, that registers flags of a component.
type source struct {
	module string // "" is k8s.io/kubernetes
	dir    string
	files  []string
}

var common = []source{
	{"component-base", "cli/globalflag", nil}, {"component-base", "cli/flag", nil}, {"component-base", "logs", nil}, {"component-base", "logs/api/v1", nil},
	{"component-base", "metrics", nil}, {"component-base", "version/verflag", nil}, {"component-base", "featuregate", nil}, {"component-base", "compatibility", nil},
	{"component-base", "version", nil}, {"apiserver", "pkg/util/compatibility", nil}, {"component-base", "logs/klogflags", nil}, {"component-base", "zpages/flagz", nil},
}

var components = map[string][]source{
	"kube-apiserver": {
		{"", "cmd/kube-apiserver/app/options", nil}, {"", "pkg/controlplane/apiserver/options", nil}, {"", "pkg/kubeapiserver/options", nil},
		{"", "pkg/serviceaccount", nil}, {"apiserver", "pkg/server/options", nil}, {"apiserver", "pkg/features", nil}, {"cloud-provider", "", nil},
		{"apiserver", "pkg/util/feature", nil}, {"apiserver", "pkg/server/flagz", nil}, {"apiserver", "pkg/admission", nil}, {"", "plugin/pkg/admission/serviceaccount", nil},
		{"apiserver", "plugin/pkg/authenticator/token/oidc", nil}, {"", "pkg/cloudprovider/providers", nil}, {"kube-aggregator", "pkg/cmd/server", nil},
		{"", "pkg/kubelet/client", nil}, {"apiserver", "pkg/storage/storagebackend", nil}, {"", "pkg/master/ports", nil},
	},
	"kube-controller-manager": {
		{"", "cmd/kube-controller-manager/app/options", nil}, {"", "cmd/controller-manager/app/options", nil}, {"controller-manager", "options", nil},
		{"controller-manager", "pkg/leadermigration/options", nil}, {"controller-manager", "app", nil}, {"cloud-provider", "options", nil}, {"cloud-provider", "controllers/service/config", nil},
		{"component-base", "config/options", nil}, {"apiserver", "pkg/server/options", serving}, {"component-base", "config", nil},
	},
	"kube-scheduler": {
		{"", "cmd/kube-scheduler/app/options", nil}, {"component-base", "config/options", nil}, {"apiserver", "pkg/server/options", serving},
	},
	"kubelet": {
		{"", "cmd/kubelet/app/options", nil}, {"", "pkg/kubelet/config", []string{"flags.go"}}, {"", "pkg/credentialprovider/azure", nil}, {"", "pkg/credentialprovider/plugin", nil},
		{"", "pkg/kubelet/cadvisor", nil}, {"component-base", "codec", nil},
	},
}

// klog are the flags klog registered with every component until 1.25; from
// 1.26 only v and vmodule are left (release notes of 1.26).
var klog = []string{"add-dir-header", "alsologtostderr", "log-backtrace-at", "log-dir", "log-file", "log-file-max-size", "logtostderr", "one-output", "skip-headers", "skip-log-headers", "stderrthreshold"}

// insecure are kube-apiserver's inert flags of the plain port, registered in a
// loop until 1.23 (release notes of 1.24).
var insecure = []string{"insecure-port", "port", "insecure-bind-address", "address"}

// unregistered are flags whose definition is still in a package that the
// component no longer adds: component, flag, first minor without it.
var unregistered = []struct {
	component, flag string
	minor           int
}{
	{"kube-apiserver", "insecure-port", 24}, {"kube-apiserver", "port", 24}, {"kube-apiserver", "insecure-bind-address", 24}, {"kube-apiserver", "address", 24},
	{"kube-controller-manager", "concurrent-service-syncs", 37}, // release notes of 1.37
}

// always are flags of every component that are registered through variables.
var always = []string{"v", "vmodule", "version", "help", "feature-gates", "log-flush-frequency"}

func (t *tables) flags(r *release) error {
	for name, srcs := range components {
		found := map[string]bool{}
		for _, s := range slices.Concat(srcs, common) {
			base := r.k8s
			if s.module != "" {
				base = r.dirs[s.module]
			}
			p, err := parseDir(filepath.Join(base, s.dir), s.files...)
			if err != nil {
				return err
			}
			p.flags(found)
		}
		for _, f := range always {
			found[f] = true
		}
		if r.minor < 26 {
			for _, f := range klog {
				found[f] = true
			}
		}
		if name == "kube-apiserver" && r.minor < 24 {
			for _, f := range insecure {
				found[f] = true
			}
		}
		for _, u := range unregistered {
			if u.component == name && r.minor >= u.minor {
				delete(found, u.flag)
			}
		}
		if name == "kubelet" {
			// Pinned in github.com/google/cadvisor/lib/cadvisorflags since 1.37, registered by the kubelet before.
			found["housekeeping-interval"] = true
		}
		for f := range found {
			if len(f) == 1 && f != "v" {
				continue // shorthands
			}
			k := [2]string{name, f}
			t.flag[k] = append(t.flag[k], r.minor)
		}
	}
	return nil
}

func (t *tables) etcdFlags(dir string, minor int) error {
	found := map[string]bool{}
	for _, d := range []string{"etcdmain", "embed", "features"} {
		p, err := parseDir(filepath.Join(dir, d), map[string][]string{"etcdmain": {"config.go"}}[d]...)
		if err != nil {
			return err
		}
		p.flags(found)
	}
	found["feature-gates"] = minor >= 6
	found["version"] = true
	for f, ok := range found {
		if ok {
			t.flag[[2]string{"etcd", f}] = append(t.flag[[2]string{"etcd", f}], minor)
		}
	}
	return nil
}

var (
	define   = regexp.MustCompile(`^(Bool|Bytes|Count|Duration|Float|Func|IP|Int|String|Text|Uint|Var)[A-Za-z0-9]*$`)
	flagName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9._-]*$`)
)

// flags finds calls that define a flag: fs.StringVar(&x, "name", ...),
// fs.Var(x, "name", ...), fs.Int("name", ...), register(global, local, "name").
func (p *pkg) flags(found map[string]bool) {
	p.inspect(func(n ast.Node) {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		name, sel := "", false
		switch f := c.Fun.(type) {
		case *ast.SelectorExpr:
			name, sel = f.Sel.Name, true
		case *ast.Ident:
			name = f.Name
		}
		switch {
		case sel && define.MatchString(name):
			i := 0
			if strings.Contains(name, "Var") || name == "Func" && len(c.Args) == 3 {
				i = 1
			}
			if name == "VarPF" || name == "VarP" {
				i = 1
			}
			if len(c.Args) < i+2 {
				return
			}
			if s, ok := p.str(c.Args[i]); ok && flagName.MatchString(s) {
				found[norm(s)] = true
			}
		case name == "register" || name == "Register" || name == "registerDeprecated" || name == "pflagRegister":
			for _, a := range c.Args {
				if s, ok := p.str(a); ok && flagName.MatchString(s) {
					found[norm(s)] = true
				}
			}
		}
	})
}

// norm is what component-base's WordSepNormalizeFunc does.
func norm(s string) string { return strings.ReplaceAll(s, "_", "-") }
