package main

import (
	"go/ast"
	"path/filepath"
	"strings"
)

// gateDirs hold the definitions of feature gates that Kubernetes components register.
var gateDirs = []source{
	{"", "pkg/features", nil}, {"apiserver", "pkg/features", nil}, {"client-go", "features", nil}, {"apiextensions-apiserver", "pkg/features", nil},
	{"component-base", "metrics/features", nil}, {"component-base", "logs/api/v1", nil}, {"component-base", "zpages/features", nil},
	{"controller-manager", "pkg/features", nil}, {"cloud-provider", "features", nil}, {"kube-aggregator", "pkg/features", nil},
}

func (t *tables) gates(r *release) error {
	for _, s := range gateDirs {
		base := r.k8s
		if s.module != "" {
			base = r.dirs[s.module]
		}
		pkgs, err := parseTree(filepath.Join(base, s.dir))
		if err != nil {
			return err
		}
		known := map[string]string{} // gates are named by constants of another package, e.g. genericfeatures.X
		for _, p := range pkgs {
			for k, v := range p.consts {
				known[k] = v
			}
		}
		for _, p := range pkgs {
			p.inspect(func(n ast.Node) {
				kv, ok := n.(*ast.KeyValueExpr)
				if !ok {
					return
				}
				spec, ok := specOf(kv.Value, r.minor)
				if !ok {
					return
				}
				name := ""
				switch k := kv.Key.(type) {
				case *ast.Ident:
					name = known[k.Name]
					if name == "" {
						name = k.Name
					}
				case *ast.SelectorExpr:
					name = k.Sel.Name // the constant is spelled as its value
				default:
					if s, ok := p.str(kv.Key); ok {
						name = s
					}
				}
				if name == "" {
					return
				}
				if t.gate[name] == nil {
					t.gate[name] = map[int]gateSpec{}
				}
				t.gate[name][r.minor] = spec
			})
		}
	}
	for _, all := range []string{"AllAlpha", "AllBeta"} {
		if t.gate[all] == nil {
			t.gate[all] = map[int]gateSpec{}
		}
		t.gate[all][r.minor] = gateSpec{stage: strings.ToLower(strings.TrimPrefix(all, "All"))}
	}
	return nil
}

// specOf reads a FeatureSpec or VersionedSpecs; of the latter the newest entry
// at or below the release counts.
func specOf(e ast.Expr, minor int) (gateSpec, bool) {
	l, ok := e.(*ast.CompositeLit)
	if !ok || len(l.Elts) == 0 {
		return gateSpec{}, false
	}
	if s, _, ok := oneSpec(l); ok {
		return s, true
	}
	var best gateSpec
	bestV, any := -1, false
	for _, x := range l.Elts {
		in, ok := x.(*ast.CompositeLit)
		if !ok {
			return gateSpec{}, false
		}
		s, v, ok := oneSpec(in)
		if !ok {
			return gateSpec{}, false
		}
		if v <= minor && v >= bestV {
			best, bestV, any = s, v, true
		}
	}
	return best, any
}

// oneSpec reads {Version: ..., Default: true, PreRelease: featuregate.Beta, LockToDefault: true}.
func oneSpec(l *ast.CompositeLit) (g gateSpec, minor int, ok bool) {
	for _, x := range l.Elts {
		kv, is := x.(*ast.KeyValueExpr)
		if !is {
			return g, 0, false
		}
		key, is := kv.Key.(*ast.Ident)
		if !is {
			return g, 0, false
		}
		switch key.Name {
		case "Version":
			if c, is := kv.Value.(*ast.CallExpr); is && len(c.Args) == 1 {
				if s, is := (&pkg{}).str(c.Args[0]); is {
					minor, _ = minorOf("v" + s + ".0")
				}
			}
		case "Default":
			id, is := kv.Value.(*ast.Ident)
			g.on = is && id.Name == "true"
		case "LockToDefault":
			id, is := kv.Value.(*ast.Ident)
			g.locked = is && id.Name == "true"
		case "PreRelease":
			ok = true
			name := ""
			switch v := kv.Value.(type) {
			case *ast.SelectorExpr:
				name = v.Sel.Name
			case *ast.Ident:
				name = v.Name
			}
			g.stage = map[string]string{"Alpha": "alpha", "Beta": "beta", "GA": "ga", "Deprecated": "deprecated"}[name]
			if g.stage == "" {
				g.stage = "alpha"
			}
		case "MinCompatibilityVersion":
		default:
			return g, 0, false
		}
	}
	return g, minor, ok
}
