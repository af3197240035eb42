package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// layers give every package of ours a height; imports go only downwards or
// stay within a package's own tree.
var layers = []struct {
	prefix string
	height int
}{
	{"coldplane/bundle/decode", 0}, {"coldplane/bundle/hostfacts", 0}, {"coldplane/bundle", 1}, {"coldplane/report", 2},
	{"coldplane/collect", 3}, {"coldplane/analyze", 3}, {"coldplane/rules", 4}, {"coldplane/cmd", 5}, {"coldplane/internal", 6},
}

func height(pkg string) (h int, tree string) {
	best := ""
	for _, l := range layers {
		if (pkg == l.prefix || strings.HasPrefix(pkg, l.prefix+"/")) && len(l.prefix) > len(best) {
			best, h = l.prefix, l.height
		}
	}
	return h, best
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T, args ...string) []listed {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps"}, args...)...).Output()
	if err != nil {
		t.Skipf("the go command cannot list packages here: %v", err)
	}
	var ps []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

func TestImportDirection(t *testing.T) {
	for _, p := range list(t, "coldplane/...") {
		h, tree := height(p.ImportPath)
		if tree == "" {
			t.Errorf("%s is in no layer: add it to the design and to this test", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, "coldplane/") {
				continue
			}
			ih, itree := height(imp)
			if ih > h || ih == h && itree != tree {
				t.Errorf("%s imports %s: against the direction", p.ImportPath, imp)
			}
		}
		if tree == "coldplane/bundle/decode" {
			for _, imp := range p.Imports {
				if strings.HasPrefix(imp, "coldplane/") && !strings.HasPrefix(imp, "coldplane/bundle/decode/") {
					t.Errorf("%s imports %s: decoders import nothing of ours", p.ImportPath, imp)
				}
			}
		}
	}
}

// The collector runs as root on a sick node: it must carry neither the etcd
// server nor the rules.
func TestCollectorStaysSmall(t *testing.T) {
	ps := list(t, "coldplane/collect/...")
	if len(ps) == 0 {
		t.Skip("there is no collector yet")
	}
	for _, p := range ps {
		for _, d := range p.Deps {
			if strings.HasPrefix(d, "go.etcd.io/etcd/server/") || strings.HasPrefix(d, "coldplane/rules") || strings.HasPrefix(d, "coldplane/analyze") {
				t.Errorf("%s links %s", p.ImportPath, d)
			}
		}
	}
}
