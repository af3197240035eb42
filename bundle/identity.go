package bundle

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"time"
)

// identity is what a node root says about itself.
type identity struct {
	name        string
	collectedAt time.Time
}

const identityBytes = 256 << 10 // of each file looked at for a name

var (
	etcdName     = regexp.MustCompile(`(?m)^\s*- --name=["']?([A-Za-z0-9._-]+)`)
	nodeUser     = regexp.MustCompile(`system:node:([a-z0-9.-]+)`)
	hostOverride = regexp.MustCompile(`--hostname-override=([A-Za-z0-9.-]+)`)
)

// identify reads a node's name and collection time: the bundle's header
// first, then what kubeadm writes with the node's name in it, then the host
// name.
func identify(l *layer) identity {
	var id identity
	if b := l.peek("coldplane/HEADER.json"); b != nil {
		var h struct {
			Node        string    `json:"node"`
			CollectedAt time.Time `json:"collectedAt"`
		}
		if json.Unmarshal(b, &h) == nil {
			id.name, id.collectedAt = cleanNodeName(h.Node), h.CollectedAt.UTC()
		}
	}
	sources := []struct {
		path string
		re   *regexp.Regexp
	}{
		{"var/lib/kubelet/kubeadm-flags.env", hostOverride},
		{"etc/kubernetes/kubelet.conf", nodeUser},
		{"etc/kubernetes/manifests/etcd.yaml", etcdName},
	}
	for _, s := range sources {
		if id.name != "" {
			return id
		}
		if m := s.re.FindSubmatch(l.peek(s.path)); m != nil {
			id.name = cleanNodeName(string(m[1]))
		}
	}
	if id.name == "" {
		id.name = cleanNodeName(strings.TrimSpace(string(l.peek("etc/hostname"))))
	}
	return id
}

var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// cleanNodeName accepts only what can be a host name.
func cleanNodeName(s string) string {
	s = strings.TrimRight(s, ".-")
	if len(s) > 253 || !nodeName.MatchString(s) {
		return ""
	}
	return s
}

// peek reads the beginning of a small file, or nil.
func (l *layer) peek(p string) []byte {
	name, e, err := l.resolve(p, true)
	if err != nil || !e.mode.IsRegular() {
		return nil
	}
	c, err := l.tree.open(name)
	if err != nil {
		return nil
	}
	defer c.Close()
	b := make([]byte, min(c.Size(), identityBytes))
	n, err := c.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil
	}
	return b[:n]
}
