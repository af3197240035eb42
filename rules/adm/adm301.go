package adm

import (
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM301", Name: "encrypted-data-without-key", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "Stored objects are encrypted with a key that an API server does not have",
		Why: "Every encrypted value names the provider and the key it was written with. If an API server's configuration has no such key, it cannot read " +
			"the object: gets and lists of the whole resource fail, pods that mount it do not start, and namespaces that hold it cannot be deleted.",
		Fix: "Put the missing key back as a key that is not the first, on every API server; restart them one by one; rewrite the objects so that they are " +
			"encrypted with the first key; only then take the old key away. If the key is lost, the objects are lost: from 1.37 the API can delete them " +
			"(ignoreStoreReadErrorWithClusterBreakingPotential), before that only etcd itself.",
		Links: []string{
			"https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/#rotating-a-decryption-key",
			"https://github.com/kubernetes/kubernetes/issues/53301",
		},
		Since: "v0.1",
	},
	Wants: []analyze.Need{objects.Cluster, encryption, logs.OnNode},
	Run:   missingKey,
})

// stored is one way in which values of a type are encrypted.
type stored struct {
	typ string
	f   etcdstore.FormatStats
}

// encrypted are the encrypted formats of the store.
func encrypted(s *objects.Set) []stored {
	var out []stored
	for _, t := range s.Store.Types {
		for _, f := range t.Formats {
			if f.Encoding == etcdstore.Encrypted && f.Live > 0 {
				out = append(out, stored{t.Type, f})
			}
		}
	}
	return out
}

// unreadable reports what API servers say of stored values when no database
// was given. looked is whether one said so.
func unreadable(p *analyze.Pass) (looked bool) {
	for _, n := range p.Nodes() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		hits := l.Hits(signature.APIServer, "A06", "A07")
		if len(hits) == 0 {
			continue
		}
		looked = true
		last := hits[len(hits)-1]
		p.Report(analyze.Finding{
			Node: n, Subject: "kube-apiserver", Severity: report.High, Confidence: report.Probable, ObservedAt: hits[0].Time,
			Message:  fmt.Sprintf("this API server cannot decrypt values that are stored: the key they were written with is not in its encryption configuration, or a value is damaged (%d lines)", len(hits)),
			Evidence: []analyze.Evidence{last.See()},
		})
	}
	return looked
}

func missingKey(p *analyze.Pass) error {
	set, err := objects.Cluster.Try(p, nil)
	if err != nil {
		if !unreadable(p) {
			p.UnknownErr(bundle.KindStore, nil, err)
		}
		return nil
	}
	enc := encrypted(set)
	if len(enc) == 0 {
		return nil
	}
	type miss struct {
		count    int64
		types    []string
		evidence []analyze.Evidence
	}
	found := false
	for _, n := range p.Nodes() {
		c, err := encryption.Try(p, n)
		if err != nil {
			if bundle.ReasonOf(err) != bundle.NotCollected {
				p.UnknownErr(bundle.KindFiles, n, err)
			}
			continue
		}
		if c.NoServer {
			continue
		}
		found = true
		lacks := map[string]*miss{}
		for _, e := range enc {
			resource := etcdstore.Resource(e.typ)
			if c.reads(resource, e.f.Provider, e.f.Key) {
				continue
			}
			key := e.f.Provider + " key " + e.f.Key
			m := lacks[key]
			if m == nil {
				m = &miss{}
				lacks[key] = m
			}
			m.count += e.f.Live
			m.types = append(m.types, fmt.Sprintf("%d %s", e.f.Live, resource))
			m.evidence = append(m.evidence, sampleOf(set, e, 3)...)
		}
		for _, key := range keys(lacks) {
			m := lacks[key]
			has := "no encryption configuration"
			if len(c.Names()) > 0 {
				has = "only " + strings.Join(c.Names(), ", ")
			}
			ev := append([]analyze.Evidence{analyze.See(c.Ref, has)}, m.evidence...)
			p.Report(analyze.Finding{
				Node: n, Subject: key, Severity: report.Critical, Evidence: ev,
				Message: fmt.Sprintf("%d stored objects (%s) are encrypted with %s, and the API server of %s has %s: they cannot be read, and lists of the resource fail",
					m.count, strings.Join(m.types, ", "), key, n.Name, has),
			})
		}
	}
	if !found {
		p.Unknown(bundle.KindFiles, nil, bundle.NotCollected, "no API server's encryption configuration; values are encrypted with "+strings.Join(names(enc), ", "))
	}
	return nil
}

func names(enc []stored) []string {
	var out []string
	for _, e := range enc {
		out = append(out, e.f.Provider+" key "+e.f.Key)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func sampleOf(set *objects.Set, e stored, n int) []analyze.Evidence {
	vs, _ := set.Store.TypeKeys(e.typ, "", 20000)
	var out []analyze.Evidence
	for _, v := range vs {
		if len(out) == n {
			break
		}
		r, err := set.Store.Load(v, 4<<20)
		if err != nil {
			continue
		}
		if f := etcdstore.FormatOf(r.Value); f.Encoding == etcdstore.Encrypted && f.Key == e.f.Key && f.Provider == e.f.Provider {
			out = append(out, analyze.Context(set.Ref(v), fmt.Sprintf("encrypted with %s key %s", f.Provider, f.Key)))
		}
	}
	if len(out) == 0 {
		out = append(out, analyze.Context(set.DB.Ref(), fmt.Sprintf("%d values of %s", e.f.Live, e.typ)))
	}
	return out
}
