package main

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"strings"
)

// plugins reads the ordered list of admission plugins.
func (t *tables) plugins(r *release) error {
	p, err := parseDir(filepath.Join(r.k8s, "pkg/kubeapiserver/options"), "plugins.go")
	if err != nil {
		return err
	}
	var fail error
	for _, f := range p.files {
		imp := imports(f)
		ast.Inspect(f, func(n ast.Node) bool {
			vs, ok := n.(*ast.ValueSpec)
			if !ok || len(vs.Names) != 1 || vs.Names[0].Name != "AllOrderedPlugins" || len(vs.Values) != 1 {
				return true
			}
			for _, e := range vs.Values[0].(*ast.CompositeLit).Elts {
				sel, ok := e.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				dir, err := r.dirOf(imp[sel.X.(*ast.Ident).Name])
				if err != nil {
					if !strings.Contains(imp[sel.X.(*ast.Ident).Name], "pod-security-admission") {
						fail = err
					}
					continue
				}
				x, err := parseDir(dir)
				if err != nil {
					fail = err
					continue
				}
				name := x.consts[sel.Sel.Name]
				if name == "" {
					fail = fmt.Errorf("no value of %s in %s", sel.Sel.Name, dir)
					continue
				}
				t.plugin[name] = append(t.plugin[name], r.minor)
			}
			return false
		})
	}
	return fail
}

// kinds reads what the install packages add to the API server's scheme.
func (t *tables) kinds(r *release) error {
	installs, err := filepath.Glob(filepath.Join(r.k8s, "pkg/apis/*/install"))
	if err != nil {
		return err
	}
	for _, dir := range installs {
		p, err := parseDir(dir)
		if err != nil {
			return err
		}
		for _, f := range p.files {
			for _, path := range imports(f) {
				if err := t.installed(r, path); err != nil {
					return err
				}
			}
		}
	}
	for _, x := range []string{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/", "k8s.io/kube-aggregator/pkg/apis/apiregistration/"} {
		for _, v := range []string{"v1beta1", "v1"} {
			if err := t.installed(r, x+v); err != nil {
				return err
			}
		}
	}
	return nil
}

// installed adds the kinds of one group version, whose types lie in the
// package itself or in the one of k8s.io/api it refers to.
func (t *tables) installed(r *release, path string) error {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if !strings.HasPrefix(last, "v") || !strings.Contains(path, "/apis/") || !strings.ContainsAny(last, "0123456789") {
		return nil
	}
	dir, err := r.dirOf(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	dirs := []string{dir}
	p, err := parseDir(dir, "register.go")
	if err != nil {
		return err
	}
	for _, f := range p.files {
		for _, ip := range imports(f) {
			if strings.HasPrefix(ip, "k8s.io/api/") {
				d, err := r.dirOf(ip)
				if err != nil {
					return err
				}
				dirs = append(dirs, d)
			}
		}
	}
	for _, d := range dirs {
		p, err := parseDir(d)
		if err != nil {
			return err
		}
		group, ok := p.consts["GroupName"]
		if !ok {
			continue
		}
		p.inspect(func(n ast.Node) {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return
			}
			sel, ok := c.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "AddKnownTypes" {
				return
			}
			for _, a := range c.Args[1:] {
				u, ok := a.(*ast.UnaryExpr)
				if !ok {
					continue
				}
				l, ok := u.X.(*ast.CompositeLit)
				if !ok {
					continue
				}
				id, ok := l.Type.(*ast.Ident)
				if !ok || strings.HasSuffix(id.Name, "List") && id.Name != "List" || strings.HasSuffix(id.Name, "Options") {
					continue
				}
				gv := last
				if group != "" {
					gv = group + "/" + last
				}
				t.kind[gv+" "+id.Name] = append(t.kind[gv+" "+id.Name], r.minor)
			}
		})
	}
	return nil
}

func (t *tables) lifecycle(r *release) error {
	if err := t.lifecycleDir(r.dirs["api"]); err != nil {
		return err
	}
	for _, m := range []string{"apiextensions-apiserver", "kube-aggregator"} {
		if err := t.lifecycleDir(r.dirs[m]); err != nil {
			return err
		}
	}
	return nil
}

// lifecycleDir reads zz_generated.prerelease-lifecycle.go files: for each type
// the versions that introduced, deprecated and removed it, and its successor.
// Later releases win.
func (t *tables) lifecycleDir(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "zz_generated.prerelease-lifecycle.go" {
			return err
		}
		p, err := parseDir(filepath.Dir(path))
		if err != nil {
			return err
		}
		group, ok := p.consts["GroupName"]
		if !ok {
			return nil
		}
		version := filepath.Base(filepath.Dir(path))
		type life struct{ introduced, deprecated, removed, repl string }
		by := map[string]*life{}
		for _, f := range p.files {
			for _, decl := range f.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Recv == nil || !strings.HasPrefix(fn.Name.Name, "APILifecycle") || fn.Body == nil {
					continue
				}
				star, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
				if !ok {
					continue
				}
				kind := star.X.(*ast.Ident).Name
				ret, ok := fn.Body.List[len(fn.Body.List)-1].(*ast.ReturnStmt)
				if !ok {
					continue
				}
				l := by[kind]
				if l == nil {
					l = &life{"-", "-", "-", "-"}
					by[kind] = l
				}
				var nums []string
				for _, e := range ret.Results {
					if b, ok := e.(*ast.BasicLit); ok {
						nums = append(nums, b.Value)
					}
				}
				v := strings.Join(nums, ".")
				switch fn.Name.Name {
				case "APILifecycleIntroduced":
					l.introduced = v
				case "APILifecycleDeprecated":
					l.deprecated = v
				case "APILifecycleRemoved":
					l.removed = v
				case "APILifecycleReplacement":
					if c, ok := ret.Results[0].(*ast.CompositeLit); ok {
						m := map[string]string{}
						for _, e := range c.Elts {
							kv := e.(*ast.KeyValueExpr)
							m[kv.Key.(*ast.Ident).Name], _ = p.str(kv.Value)
						}
						l.repl = strings.TrimPrefix(m["Group"]+"/"+m["Version"], "/") + ":" + m["Kind"]
					}
				}
			}
		}
		for kind, l := range by {
			if l.removed == "-" || strings.HasSuffix(kind, "List") {
				continue
			}
			gv := version
			if group != "" {
				gv = group + "/" + version
			}
			t.life[gv+" "+kind] = strings.Join([]string{l.introduced, l.deprecated, l.removed, l.repl}, " ")
		}
		return nil
	})
}
