package drift_test

import (
	"os"
	"path/filepath"
	"testing"

	"coldplane/analyze"
	"coldplane/analyze/drift"
	"coldplane/bundle"
)

// TestUntouched: manifests that kubeadm 1.30, 1.35 and 1.37 wrote show no hand
// edit. The trees lie beside the repository.
func TestUntouched(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "real")
	if _, err := os.Stat(root); err != nil {
		t.Skip("no real trees beside the repository")
	}
	minors := map[int]bool{}
	for _, name := range []string{"tree-v130", "tree-v135", "tree-single", "tree-ha-merged", "tree-ext-cp1", "tree-pki-ecdsa"} {
		set, err := bundle.Open(t.Context(), []string{filepath.Join(root, name+".tar.zst")}, bundle.Options{SpoolDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		e := analyze.New(t.Context(), set, analyze.Options{})
		for _, n := range set.Nodes {
			d, err := drift.OnNode.Get(e.Ctx(n))
			if err != nil {
				t.Errorf("%s %s: %v", name, n.Name, err)
				continue
			}
			if len(d.Components) < 3 || len(d.Unknown) > 0 {
				t.Errorf("%s %s: %d components compared, unknown %v", name, n.Name, len(d.Components), d.Unknown)
			}
			for _, c := range d.Components {
				minors[c.Minor] = true
				for _, ch := range c.Edits {
					t.Errorf("%s %s %s: %s", name, n.Name, c.Name, ch.Text())
				}
			}
		}
		set.Close()
	}
	if len(minors) < 3 {
		t.Errorf("minors %v", minors)
	}
}
