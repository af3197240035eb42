package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// TestWrite reads the test's own binary.
func TestWrite(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := write(&a, exe); err != nil {
		t.Fatal(err)
	}
	if err := write(&b, exe); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("a second run differs (%v)", err)
	}
	var got bom
	if err := json.Unmarshal(a.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Format != "CycloneDX" || got.Metadata.Component.Name != "coldplane" || len(got.Metadata.Component.Hashes[0].Content) != 64 || got.Components[0].Name != "std" {
		t.Errorf("%+v", got)
	}
	if err := write(&a, "main.go"); err == nil {
		t.Error("a file that is no binary gave no error")
	}
}
