// Oracle runs the real kubeadm of several minors and keeps what it writes.
//
// It builds kubeadm from the source module of each version, runs its init
// phases for a few configurations in an empty root, and stores the static-pod
// manifests as text. The tests of coldplane compare their own rendering with
// them. It needs a module proxy, root (for --rootfs) and several minutes per
// version; coldplane itself and its tests never run it.
//
//	go run . -out ../analyze/kubeadm/render/testdata/oracle v1.28.15 v1.34.4
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	out := flag.String("out", "", "directory for VERSION/SCENARIO/*.yaml")
	work := flag.String("work", "", "directory kept for the built programs")
	only := flag.Bool("build-only", false, "build kubeadm, run nothing")
	flag.Parse()
	if *out == "" && !*only || *work == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: oracle -out DIR -work DIR VERSION...")
		os.Exit(2)
	}
	for _, v := range flag.Args() {
		bin, err := build(*work, v)
		if err == nil && !*only {
			err = generate(bin, *out, *work, v)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "oracle: %s: %v\n", v, err)
			os.Exit(1)
		}
	}
}

var stagingRequire = regexp.MustCompile(`(?m)^\s*(k8s\.io/[a-z-]+) v0\.0\.0(\s|$)`)

// build makes kubeadm of a version and returns its path. The staging modules
// of a Kubernetes release carry the same number with a leading 0.
func build(work, version string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(work, version))
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "kubeadm")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	src, err := command(dir, "go", "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`"GoMod": "([^"]+)"`).FindStringSubmatch(src)
	if m == nil {
		return "", fmt.Errorf("no go.mod in %q", src)
	}
	mod, err := os.ReadFile(m[1])
	if err != nil {
		return "", err
	}
	staging := "v0" + strings.TrimPrefix(version, "v1")
	text := "module kubeadm\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes " + version + "\n"
	seen := map[string]bool{}
	for _, r := range stagingRequire.FindAllStringSubmatch(string(mod), -1) {
		if !seen[r[1]] {
			seen[r[1]] = true
			text += "replace " + r[1] + " => " + r[1] + " " + staging + "\n"
		}
	}
	const prog = `package main

import (
	"os"

	"k8s.io/kubernetes/cmd/kubeadm/app"
)

func main() {
	if err := app.Run(); err != nil {
		os.Exit(1)
	}
}
`
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(prog), 0o644); err != nil {
		return "", err
	}
	if _, err := command(dir, "go", "mod", "tidy"); err != nil {
		return "", err
	}
	minor := strings.SplitN(version, ".", 3)[1]
	x := "k8s.io/component-base/version"
	ld := fmt.Sprintf("-X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s", x, version, x, x, minor)
	if _, err := command(dir, "go", "build", "-p", "1", "-ldflags", ld, "-o", bin, "."); err != nil {
		return "", err
	}
	return bin, nil
}

func command(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	c.Stderr = os.Stderr
	b, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(b), nil
}
