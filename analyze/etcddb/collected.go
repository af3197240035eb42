package etcddb

import (
	"encoding/json"

	"coldplane/analyze"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
)

const maxFactsBytes = 16 << 20

// Collected is what a collector saw of a node's databases before it overwrote
// their values.
type Collected struct {
	Ref   bundle.Ref
	Files []hostfacts.EtcdFacts
}

// Of returns the digest of a database, nil without one.
func (c *Collected) Of(d *DB) *hostfacts.StoreDigest {
	for i := range c.Files {
		f := &c.Files[i]
		if d.Dir != nil && f.Origin == d.Dir.Path || d.File.Path == hostfacts.SnapshotPath && f.Consistency == "rpc-snapshot" {
			if f.Digest != nil {
				return f.Digest
			}
		}
	}
	return nil
}

// CollectedOn reads a node's etcd/facts.json.
var CollectedOn = &analyze.Fact[*Collected]{
	Name:  "etcddb.collected",
	Kinds: []bundle.Kind{bundle.KindStore},
	Compute: func(c *analyze.Ctx) (*Collected, error) {
		f, err := c.Node().Stat(hostfacts.EtcdFactsPath)
		if err != nil {
			return nil, analyze.Missing(bundle.KindStore, c.Node().Name, bundle.NotCollected, "no facts of a collector about the database")
		}
		b, err := f.Bytes(maxFactsBytes)
		if err != nil {
			return nil, err
		}
		out := &Collected{Ref: f.Ref()}
		if err := json.Unmarshal(b, &out.Files); err != nil {
			return nil, &bundle.MissingError{Evidence: f.Origin, Node: c.Node().Name, Reason: bundle.Damaged, Detail: err.Error(), Ref: f.Ref()}
		}
		return out, nil
	},
}
