package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A pkg is the parsed source of one directory without tests.
type pkg struct {
	files  []*ast.File
	consts map[string]string // string constants by name
}

// parseDir parses a directory; a missing one is an empty package.
func parseDir(dir string, only ...string) (*pkg, error) {
	p := &pkg{consts: map[string]string{}}
	des, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	for _, de := range des {
		n := de.Name()
		if de.IsDir() || !strings.HasSuffix(n, ".go") || strings.HasSuffix(n, "_test.go") || strings.HasSuffix(n, "_windows.go") || strings.HasSuffix(n, "_windows_amd64.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, n), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.collectConsts(f)
		if len(only) > 0 {
			keep := false
			for _, o := range only {
				keep = keep || o == n
			}
			if !keep {
				continue
			}
		}
		p.files = append(p.files, f)
	}
	return p, nil
}

// parseTree parses every directory below dir that holds non-test Go files.
func parseTree(dir string) ([]*pkg, error) {
	var out []*pkg
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
		if b := d.Name(); b == "testdata" || b == "test" || b == "vendor" || b == "_examples" || b == "docs" {
			return filepath.SkipDir
		}
		x, err := parseDir(p)
		if err == nil && len(x.files) > 0 {
			out = append(out, x)
		}
		return err
	})
	return out, err
}

func (p *pkg) collectConsts(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST && g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			vs := s.(*ast.ValueSpec)
			for i, n := range vs.Names {
				if i < len(vs.Values) {
					if v, ok := p.str(vs.Values[i]); ok {
						p.consts[n.Name] = v
					}
				}
			}
		}
	}
}

// str evaluates a string expression: a literal, a constant of the package, a
// sum of them.
func (p *pkg) str(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			s, err := strconv.Unquote(x.Value)
			return s, err == nil
		}
	case *ast.Ident:
		s, ok := p.consts[x.Name]
		return s, ok
	case *ast.ParenExpr:
		return p.str(x.X)
	case *ast.CallExpr: // string(x), featuregate.Feature(x)
		if len(x.Args) == 1 {
			return p.str(x.Args[0])
		}
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			a, ok1 := p.str(x.X)
			b, ok2 := p.str(x.Y)
			return a + b, ok1 && ok2
		}
	}
	return "", false
}

func (p *pkg) inspect(f func(ast.Node)) {
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				f(n)
			}
			return true
		})
	}
}

// imports maps the local names of a file's imports to their paths.
func imports(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		name := p[strings.LastIndexByte(p, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		out[name] = p
	}
	return out
}

// dirOf finds the directory of an import path of Kubernetes.
func (r *release) dirOf(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "k8s.io/kubernetes/"); ok {
		return filepath.Join(r.k8s, rest), nil
	}
	rest, ok := strings.CutPrefix(path, "k8s.io/")
	if !ok {
		return "", fmt.Errorf("import %s is not of Kubernetes", path)
	}
	mod, sub, _ := strings.Cut(rest, "/")
	dir := r.dirs[mod]
	if dir == "" {
		return "", fmt.Errorf("module k8s.io/%s is not read", mod)
	}
	return filepath.Join(dir, sub), nil
}
