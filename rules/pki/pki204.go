package pki

import (
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI204", Name: "service-account-keys-disagree", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.Medium},
	Doc: analyze.Doc{
		Title: "Service-account signing and verification keys disagree",
		Why: "Tokens of pods are signed by an API server or by the controller-manager that leads, and every API server must accept them. With " +
			"another key on one node its API server answers such requests with Unauthorized: controllers, CNI and webhooks fail by turns, " +
			"depending on which backend the load balancer picks.",
		Fix: "Put one sa.key and its sa.pub on all control-plane nodes, restart the API servers and controller-managers one node at a time, then " +
			"restart pods that hold tokens of the dropped key. To change the key on purpose, list old and new in --service-account-key-file first.",
		Links: []string{"https://github.com/kubernetes/kubernetes/issues/110035", "https://github.com/kubernetes/kubernetes/issues/35849"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Joined, staticpod.Manifests},
	Wants: []analyze.Need{logs.OnNode},
	Run:   saKeys,
})

// saNode is the service-account keys of one node.
type saNode struct {
	n      *creds.Node
	verify []*creds.SAKey
	sign   []*creds.SAKey
	accept []spki.Fingerprint
	clear  bool // every verification file could be read
}

func saKeys(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	var nodes []*saNode
	for _, n := range cl.Nodes {
		if len(n.SA) == 0 {
			continue
		}
		s := &saNode{n: n, clear: true}
		for _, k := range n.SA {
			if k.Signing {
				s.sign = append(s.sign, k)
				continue
			}
			s.verify = append(s.verify, k)
			fps := k.Fingerprints()
			if len(fps) == 0 {
				s.clear = false
				if k.Source.Err != nil && !bundle.IsAbsent(k.Source.Err) {
					p.UnknownErr(bundle.KindPKI, n.Node, k.Source.Err)
				} else if k.Source.Err == nil {
					p.Unknown(bundle.KindPKI, n.Node, unreadableReason(k.Source), k.Source.Path+" holds no readable public key")
				}
			}
			s.accept = append(s.accept, fps...)
		}
		nodes = append(nodes, s)
	}
	if len(nodes) == 0 {
		p.Unknown(bundle.KindPKI, nil, bundle.NotCollected, "service-account keys")
		return nil
	}
	told := map[*bundle.Node]bool{}
	for _, s := range nodes {
		signerOnOwnNode(p, s, told)
	}
	majority := commonKeys(nodes)
	for _, s := range nodes {
		if !told[s.n.Node] {
			betweenNodes(p, s, nodes, majority)
		}
	}
	saIssuers(p)
	if len(told) == 0 {
		refusedTokens(p)
	}
	return nil
}

// refusedTokens reports API servers that find tokens signed with a key they do
// not know, when the key files given do not show why.
func refusedTokens(p *analyze.Pass) {
	for _, n := range p.Nodes() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		hits := l.Hits(signature.APIServer, "A51")
		if len(hits) < 3 {
			continue
		}
		p.Report(analyze.Finding{
			Node: n, Subject: "tokens refused", Severity: report.Medium, Confidence: report.Probable, ObservedAt: hits[0].Time,
			Message:  fmt.Sprintf("the API server refuses tokens whose signature it cannot verify, %d times: they were signed with another service-account key than --service-account-key-file holds", len(hits)),
			Evidence: []analyze.Evidence{hits[len(hits)-1].See()},
		})
	}
}

func unreadableReason(s *creds.Source) bundle.Reason {
	if s.PEM.Marker != "" {
		return bundle.Redacted
	}
	return bundle.Damaged
}

// signerOnOwnNode: the keys this node signs with must be among those its own
// API server accepts.
func signerOnOwnNode(p *analyze.Pass, s *saNode, told map[*bundle.Node]bool) {
	for _, k := range s.sign {
		switch k.Key.State {
		case creds.KeyKnown:
		case creds.KeyAbsent:
			continue
		case creds.KeyRedacted:
			p.Unknown(bundle.KindPKI, s.n.Node, bundle.Redacted, k.Key.Path)
			continue
		default:
			p.Unknown(bundle.KindPKI, s.n.Node, bundle.NotCollected, k.Key.Path)
			continue
		}
		if !s.clear || len(s.accept) == 0 || slices.Contains(s.accept, k.Key.SPKI) || told[s.n.Node] {
			continue
		}
		told[s.n.Node] = true
		ev := []analyze.Evidence{
			analyze.See(s.verify[0].Source.Ref, "accepts "+short(s.accept)),
			analyze.Expect(k.Key.Ref, fmt.Sprintf("%s, public key %s", k.Key.Path, k.Key.SPKI.Short())),
		}
		ev = append(ev, uses(k, s.verify[0])...)
		who := k.Use.Process
		if who == "" {
			who = "the node"
		}
		p.Report(analyze.Finding{
			Node: s.n.Node, Subject: "service-account key", Severity: report.Critical,
			Message:  fmt.Sprintf("%s signs service-account tokens with %s (public key %s), which its own API server does not accept: %s holds %s", who, k.Key.Path, k.Key.SPKI.Short(), s.verify[0].Source.Name, short(s.accept)),
			Evidence: ev,
		})
	}
}

func uses(ks ...*creds.SAKey) []analyze.Evidence {
	var out []analyze.Evidence
	for _, k := range ks {
		if !k.Use.Ref.IsZero() {
			out = append(out, analyze.Context(k.Use.Ref, k.Use.Flag))
		}
	}
	return out
}

func short(fs []spki.Fingerprint) string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Short())
	}
	return strings.Join(out, ", ")
}

// commonKeys returns the keys most nodes accept; of equals those of the first node.
func commonKeys(nodes []*saNode) *saNode {
	var best *saNode
	bestN := 0
	for _, s := range nodes {
		if len(s.accept) == 0 {
			continue
		}
		n := 0
		for _, o := range nodes {
			if meets(s.accept, o.accept) {
				n++
			}
		}
		if n > bestN {
			best, bestN = s, n
		}
	}
	return best
}

func meets(a, b []spki.Fingerprint) bool {
	return slices.ContainsFunc(a, func(f spki.Fingerprint) bool { return slices.Contains(b, f) })
}

// betweenNodes: an API server that shares no key with the others refuses
// whatever they sign; a signer none of whose keys another API server accepts
// is refused there.
func betweenNodes(p *analyze.Pass, s *saNode, nodes []*saNode, majority *saNode) {
	if majority == nil || s == majority {
		return
	}
	if s.clear && len(s.accept) > 0 && !meets(s.accept, majority.accept) {
		ev := []analyze.Evidence{
			analyze.See(s.verify[0].Source.Ref, "accepts "+short(s.accept)),
			analyze.Expect(majority.verify[0].Source.Ref, "accepts "+short(majority.accept)),
		}
		ev = append(ev, uses(s.verify[0], majority.verify[0])...)
		p.Report(analyze.Finding{
			Node: s.n.Node, Subject: "service-account key", Severity: report.Critical,
			Message: fmt.Sprintf("the API server of %s accepts service-account tokens of key %s only (%s), the one of %s those of %s: whichever key signs, one of them refuses the token",
				s.n.Node.Name, short(s.accept), s.verify[0].Source.Name, majority.n.Node.Name, short(majority.accept)),
			Evidence: ev,
		})
		return
	}
	for _, k := range s.sign {
		if k.Key.State != creds.KeyKnown {
			continue
		}
		for _, o := range nodes {
			if o == s || !o.clear || !meets(o.accept, majority.accept) || slices.Contains(o.accept, k.Key.SPKI) {
				continue
			}
			ev := []analyze.Evidence{
				analyze.See(k.Key.Ref, fmt.Sprintf("%s, public key %s", k.Key.Path, k.Key.SPKI.Short())),
				analyze.Expect(o.verify[0].Source.Ref, "accepts "+short(o.accept)),
			}
			p.Report(analyze.Finding{
				Node: s.n.Node, Subject: "service-account key", Severity: report.Critical,
				Message: fmt.Sprintf("%s signs service-account tokens with %s (public key %s), which the API server of %s does not accept",
					s.n.Node.Name, k.Key.Path, k.Key.SPKI.Short(), o.n.Node.Name),
				Evidence: append(ev, uses(k, o.verify[0])...),
			})
			return
		}
	}
}

// saIssuers: the issuer one API server writes into tokens must be known to all.
func saIssuers(p *analyze.Pass) {
	type api struct {
		pod   *staticpod.Pod
		node  *bundle.Node
		flags []staticpod.Flag
	}
	var apis []api
	for _, n := range p.Nodes() {
		d, err := staticpod.Manifests.Try(p, n)
		if err != nil {
			continue
		}
		if pod := d.Component(staticpod.APIServer); pod != nil {
			if fs := pod.FlagAll("service-account-issuer"); len(fs) > 0 {
				apis = append(apis, api{pod, n, fs})
			}
		}
	}
	for _, a := range apis {
		for _, b := range apis {
			if a.node == b.node || slices.ContainsFunc(b.flags, func(f staticpod.Flag) bool { return f.Value == a.flags[0].Value }) {
				continue
			}
			p.Report(analyze.Finding{
				Node: b.node, Subject: "service-account issuer", Severity: report.Critical,
				Message: fmt.Sprintf("tokens issued by the API server of %s name the issuer %s, which the one of %s does not know (%s)",
					a.node.Name, a.flags[0].Value, b.node.Name, b.flags[0].Value),
				Evidence: []analyze.Evidence{analyze.See(b.flags[0].Ref, b.flags[0].Text()), analyze.Expect(a.flags[0].Ref, a.flags[0].Text())},
			})
			return
		}
	}
}
