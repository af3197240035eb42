//go:build linux

package collect

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"coldplane/bundle/decode/kubevalue"
)

// A configMap picks kubeadm's configuration out of a store while it is scrubbed:
// the newest revision, after it was masked.
type configMap struct {
	rev  []byte
	data map[string]string
}

func (c *configMap) see(rev, key, value []byte) {
	if !bytes.HasSuffix(key, []byte("/configmaps/kube-system/kubeadm-config")) || kubevalue.FormOf(value) != kubevalue.Protobuf || bytes.Compare(rev, c.rev) < 0 {
		return
	}
	e, ok := kubevalue.Unwrap(value)
	if !ok || e.Kind != "ConfigMap" {
		return
	}
	data := map[string]string{}
	for b := e.Object; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 {
			return
		}
		if num == 2 && typ == protowire.BytesType {
			entry, _ := protowire.ConsumeBytes(b[n:])
			data[string(kubevalue.Field(entry, 1))] = string(kubevalue.Field(entry, 2))
		}
		b = b[n+m:]
	}
	c.rev, c.data = bytes.Clone(rev), data
}

func (c *configMap) found() bool { return len(c.data) > 0 }

// yaml writes the ConfigMap the way kubectl prints it, as far as its data goes.
func (c *configMap) yaml() []byte {
	var b bytes.Buffer
	b.WriteString("apiVersion: v1\ndata:\n")
	for _, k := range slices.Sorted(maps.Keys(c.data)) {
		fmt.Fprintf(&b, "  %s: |\n", k)
		for line := range strings.Lines(c.data[k]) {
			b.WriteString("    " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	b.WriteString("kind: ConfigMap\nmetadata:\n  name: kubeadm-config\n  namespace: kube-system\n")
	return b.Bytes()
}
