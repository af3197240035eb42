// Command mksbom writes the bill of materials of a built binary as CycloneDX
// 1.5 JSON. It reads what the linker put into the binary, so it lists what is
// in it and nothing else, and writes the same bytes for the same binary.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: mksbom BINARY > SBOM.json")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "mksbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	sum, err := digest(path)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Components: []component{}}
	b.Metadata.Component = component{
		Type: "application", Ref: name, Name: info.Main.Path, Version: info.Main.Version,
		Hashes: []hash{{"SHA-256", sum}}, Properties: []property{{"file", name}},
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "-trimpath", "-ldflags":
			b.Metadata.Component.Properties = append(b.Metadata.Component.Properties, property{s.Key, s.Value})
		}
	}
	b.Components = append(b.Components, component{
		Type: "library", Ref: "std@" + info.GoVersion, Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	})
	for _, m := range info.Deps {
		b.Components = append(b.Components, module(m))
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(b)
}

func module(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	id := m.Path + "@" + m.Version
	return component{Type: "library", Ref: id, Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + id, Properties: []property{{"go.sum", m.Sum}}}
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
