package main

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// kubeadm reads kubeadm's constants and feature gates, and the versions of
// its configuration API.
func (t *tables) kubeadm(r *release) error {
	base := filepath.Join(r.k8s, "cmd/kubeadm/app")
	c, err := parseDir(filepath.Join(base, "constants"))
	if err != nil {
		return err
	}
	supported := map[int]string{}
	c.inspect(func(n ast.Node) {
		vs, ok := n.(*ast.ValueSpec)
		if !ok || len(vs.Names) != 1 || vs.Names[0].Name != "SupportedEtcdVersion" || len(vs.Values) != 1 {
			return
		}
		l, ok := vs.Values[0].(*ast.CompositeLit)
		if !ok {
			return
		}
		for _, e := range l.Elts {
			kv := e.(*ast.KeyValueExpr)
			v, ok := c.str(kv.Value)
			if !ok {
				continue
			}
			m := 0
			switch k := kv.Key.(type) {
			case *ast.BasicLit:
				fmt.Sscan(k.Value, &m)
			case *ast.CallExpr: // uint8(getSkewedKubernetesVersion(-1).Minor())
				skew := 0
				ast.Inspect(k, func(n ast.Node) bool {
					if u, ok := n.(*ast.UnaryExpr); ok {
						if b, ok := u.X.(*ast.BasicLit); ok {
							fmt.Sscan(b.Value, &skew)
							skew = -skew
						}
					}
					return true
				})
				m = r.minor + skew
			}
			if m > 0 {
				supported[m] = v
			}
		}
	})
	var sup []string
	for m, v := range supported {
		sup = append(sup, fmt.Sprintf("%d:%s", m, v))
	}
	sort.Strings(sup)
	var apis []string
	des, err := os.ReadDir(filepath.Join(base, "apis/kubeadm"))
	if err != nil {
		return err
	}
	install, err := os.ReadFile(filepath.Join(base, "apis/kubeadm/scheme/scheme.go"))
	if err != nil {
		return err
	}
	for _, d := range des {
		if d.IsDir() && strings.HasPrefix(d.Name(), "v") && strings.Contains(string(install), d.Name()+".AddToScheme") {
			apis = append(apis, d.Name())
		}
	}
	f, err := parseDir(filepath.Join(base, "features"))
	if err != nil {
		return err
	}
	var gates []string
	f.inspect(func(n ast.Node) {
		vs, ok := n.(*ast.ValueSpec)
		if !ok || len(vs.Names) != 1 || vs.Names[0].Name != "InitFeatureGates" || len(vs.Values) != 1 {
			return
		}
		if l, ok := vs.Values[0].(*ast.CompositeLit); ok {
			for _, e := range l.Elts {
				if s, ok := f.str(e.(*ast.KeyValueExpr).Key); ok {
					gates = append(gates, s)
				}
			}
		}
	})
	slices.Sort(gates)
	t.kubeadms = append(t.kubeadms, fmt.Sprintf("%s etcd=%s external=%s coredns=%s pause=%s config=%s gates=%s supported=%s",
		r.version, c.consts["DefaultEtcdVersion"], c.consts["MinExternalEtcdVersion"], c.consts["CoreDNSVersion"], c.consts["PauseVersion"],
		strings.Join(apis, ","), strings.Join(gates, ","), strings.Join(sup, ",")))
	return nil
}
