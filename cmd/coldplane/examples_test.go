package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const examplesDir = "../../examples"

// TestExamples holds that the examples are what they say: manifests without
// unknown fields, a configuration that loads, flags that exist.
func TestExamples(t *testing.T) {
	kinds := map[string]func() any{
		"Namespace": func() any { return &corev1.Namespace{} }, "Job": func() any { return &batchv1.Job{} }, "DaemonSet": func() any { return &appsv1.DaemonSet{} },
	}
	for _, f := range []string{"collect-job.yaml", "collect-daemonset.yaml"} {
		b, err := os.ReadFile(filepath.Join(examplesDir, f))
		if err != nil {
			t.Fatal(err)
		}
		for doc := range bytes.SplitSeq(b, []byte("\n---\n")) {
			var head struct{ Kind string }
			if err := yaml.Unmarshal(doc, &head); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			if kinds[head.Kind] == nil {
				t.Fatalf("%s: kind %q", f, head.Kind)
			}
			if err := yaml.UnmarshalStrict(doc, kinds[head.Kind]()); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
	path := filepath.Join(examplesDir, "coldplane.yaml")
	c, err := readConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if ws, err := c.waivers(path); err != nil || len(ws) == 0 {
		t.Errorf("waivers: %v, %v", ws, err)
	}
	gate, err := os.ReadFile(filepath.Join(examplesDir, "upgrade-gate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(gate, new(any)); err != nil {
		t.Error(err)
	}
	// The collector is told nothing that it does not know.
	for _, f := range []string{"collect-job.yaml", "collect-daemonset.yaml", "coldplane-collect.service"} {
		b, err := os.ReadFile(filepath.Join(examplesDir, f))
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(b)) {
			_, args, ok := strings.Cut(l, "coldplane collect")
			if !ok {
				continue
			}
			for word := range strings.FieldsSeq(args) {
				if name, ok := strings.CutPrefix(word, "--"); ok && newCollect(&env{}, &globals{}).Flags().Lookup(name) == nil {
					t.Errorf("%s uses --%s, which collect does not have", f, name)
				}
			}
		}
	}
	flags := newAnalyze(&env{}, &globals{}).Flags()
	for word := range strings.FieldsSeq(string(gate)) {
		if name, ok := strings.CutPrefix(word, "--"); ok && flags.Lookup(name) == nil {
			t.Errorf("upgrade-gate.yaml uses --%s, which analyze does not have", name)
		}
	}
}
