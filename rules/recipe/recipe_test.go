package recipe

import (
	"os/exec"
	"strings"
	"testing"
)

// Every quoted string must reach a command as it was.
func TestQuoteSurvivesTheShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, s := range []string{
		"/etc/kubernetes/manifests/etcd.yaml", "a b", "it's", "$(rm -rf /)", "`id`", "a;b", "a\nb", "a\x1b[31mb", "-rf", "한글", "", `back\slash`, `\'`, "*", "~root", "a\"b", "!x",
	} {
		out, err := exec.Command(bash, "--norc", "-c", "printf %s "+Quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("Quote(%q) = %s reaches the command as %q, %v", s, Quote(s), out, err)
		}
		if strings.ContainsAny(Quote(s), "\n\x1b") {
			t.Errorf("Quote(%q) holds a control character", s)
		}
	}
}

func TestEditNeverWritesIntoTheDirectory(t *testing.T) {
	for _, s := range Edit("/etc/kubernetes/manifests/etcd.yaml", "etcd", "Change it.", "etcd.local") {
		if strings.Contains(s.Command, "vi /etc/kubernetes/manifests/") || strings.Contains(s.Command, "manifests/etcd.yaml.") {
			t.Errorf("edits in place: %s", s.Command)
		}
	}
}
