package etcdwal

import (
	"encoding/json"

	"coldplane/bundle"
	"coldplane/bundle/decode/walframe"
)

const maxIndexBytes = 64 << 20 // of one index of a log

// readIndex takes the log from the index that a bundle carries in its place: the
// segments hold every value that was written and never leave a node.
func (d *Dir) readIndex(n *bundle.Node) bool {
	for _, f := range n.Glob("/etcd/wal-index*.jsonl") {
		b, err := f.Bytes(maxIndexBytes)
		if err != nil {
			continue
		}
		var in struct {
			DataDir string        `json:"dataDir"`
			Log     *walframe.Log `json:"log"`
		}
		if json.Unmarshal(b, &in) != nil || in.Log == nil || in.DataDir != d.Path {
			continue
		}
		for _, w := range d.WAL {
			d.segments[w.Name()] = w
		}
		d.Log = in.Log
		return true
	}
	return false
}
