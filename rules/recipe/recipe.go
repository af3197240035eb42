// Package recipe holds steps that several rules give, so that one procedure
// has one wording. Every command is safe to paste: names from evidence are
// quoted, nothing is deleted, nothing is edited in place.
package recipe

import (
	"fmt"
	"path"
	"strings"

	"coldplane/report"
)

// Quote makes one shell word of a string from evidence. Control characters
// are written as escapes of bash's $'...'.
func Quote(s string) string {
	safe, plain := s != "", true
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("/._-:=@%+,", r):
		case r < ' ' || r == 0x7f || r > '~':
			safe, plain = false, false
		default:
			safe = false
		}
	}
	switch {
	case safe && s[0] != '-':
		return s
	case plain:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// Edit gives the steps to change a static pod's manifest: work on a copy
// outside the directory, move it into place, watch the container, and make the
// change last. change is a sentence; keep says where kubeadm remembers the
// setting ("" when it has no place there).
func Edit(manifest, component, change, keep string) []report.Step {
	name := path.Base(manifest)
	saved := path.Join("/root", name+".before-edit")
	draft := path.Join("/etc/kubernetes", name+".new")
	if path.Dir(manifest) == "/etc/kubernetes" {
		draft = path.Join("/root", name+".new")
	}
	steps := []report.Step{
		{Text: "Save the manifest outside the directory and make a draft; a copy inside it would run as a second pod.",
			Command: fmt.Sprintf("cp -p %s %s && cp -p %s %s", Quote(manifest), Quote(saved), Quote(manifest), Quote(draft))},
		{Text: change, Command: "vi " + Quote(draft)},
		{Text: "Move the draft into place. One node at a time.", Command: fmt.Sprintf("mv %s %s", Quote(draft), Quote(manifest))},
		Watch(component),
	}
	if keep != "" {
		steps = append(steps, report.Step{Text: "Make the same change in kubeadm-config (" + keep + "), or the next kubeadm upgrade undoes it.",
			Command: "kubectl -n kube-system edit configmap kubeadm-config"})
		steps = append(steps, Check(component))
	}
	return steps
}

// Watch waits for the kubelet to act on a changed manifest.
func Watch(component string) report.Step {
	return report.Step{Text: "Wait for the kubelet (it looks every 20 s): one running container of " + component + ", its log without errors.",
		Command: fmt.Sprintf("sleep 30; crictl ps -a --name '^%s$'; crictl logs --tail 20 \"$(crictl ps -q --name '^%s$' | head -n 1)\"", component, component)}
}

// Check compares a manifest with what kubeadm would write.
func Check(component string) report.Step {
	if component == "etcd" {
		return report.Step{Text: "Check what kubeadm would write for etcd (kubeadm upgrade diff leaves etcd out). full.yaml: the ClusterConfiguration of kubeadm-config and an InitConfiguration with this node's name and advertise address.",
			Command: "kubeadm init phase etcd local --dry-run --config full.yaml"}
	}
	return report.Step{Text: "Check that the next upgrade brings no surprise.", Command: `kubeadm upgrade diff "$(kubeadm version -o short)"`}
}

// Etcdctl is a command line of the etcdctl inside the running stacked etcd,
// with kubeadm's certificates.
func Etcdctl(args string) string {
	return `crictl exec "$(crictl ps -q --name '^etcd$' | head -n 1)" etcdctl --endpoints=https://127.0.0.1:2379` +
		` --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key ` + args
}
