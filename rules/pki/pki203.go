package pki

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	creds "coldplane/analyze/pki"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI203", Name: "ca-differs-between-nodes", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "CA files differ between control-plane nodes",
		Why: "Each node then believes other clients: what one API server accepts the next one refuses, so that through the load balancer requests " +
			"fail by turns, and etcd members do not talk to each other. It comes from kubeadm init on a second node, from a CA renewed on one node, " +
			"or from files restored out of different backups.",
		Fix: "Take the CA that most nodes, kubeconfigs and running clients have. Copy its certificate and key to the odd node, issue that node's " +
			"leaves again, restart its static pods one by one. If bundles of two clusters were given together, analyze each alone.",
		Links: []string{"https://github.com/kubernetes/kubernetes/issues/110035", "https://github.com/kubernetes/kubernetes/issues/25063"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Joined},
	Wants: []analyze.Need{creds.Store},
	Run:   caDiffers,
})

// caPlaces are the trust files that must agree on all nodes.
var caPlaces = []struct {
	roles []creds.CARole
	what  string
	sev   report.Severity
}{
	{[]creds.CARole{creds.ClusterCA}, "cluster CA", report.Critical},
	{[]creds.CARole{creds.EtcdCA, creds.EtcdServerCA}, "etcd CA", report.Critical},
	{[]creds.CARole{creds.EtcdPeerCA}, "etcd peer CA", report.Critical},
	{[]creds.CARole{creds.FrontProxyCA}, "front-proxy CA", report.High},
}

func caDiffers(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	stored := storedDiffers(p, cl)
	if len(cl.Nodes) < 2 {
		if len(p.Nodes()) < 2 && !stored {
			return p.NotApplicable("one node, and no database to compare it with")
		}
		if len(p.Nodes()) >= 2 {
			p.Unknown(bundle.KindPKI, nil, bundle.NotCollected, "the CA files of a second node")
		}
		return nil
	}
	apart, compared := 0, 0
	type verdict struct {
		place int
		as    []*creds.CA
	}
	var odd []verdict
	told := map[string]bool{} // kubeadm uses one file for etcd's clients and peers
	for i, pl := range caPlaces {
		var as []*creds.CA
		for _, n := range cl.Nodes {
			for _, r := range pl.roles {
				if a := n.CA(r); a != nil && a.Source.Err == nil && len(a.Certs()) > 0 {
					as = append(as, a)
					break
				}
			}
		}
		if len(as) < 2 {
			continue
		}
		compared++
		if slices.ContainsFunc(as, func(a *creds.CA) bool { return identity(a) != identity(as[0]) }) {
			key := ""
			for _, a := range as {
				key += a.Node.Name + a.Source.Path + "\x00"
			}
			if !as[0].Shares(as[len(as)-1]) {
				apart++
			}
			if !told[key] {
				odd = append(odd, verdict{i, as})
			}
			told[key] = true
		}
	}
	if compared == 0 {
		p.Unknown(bundle.KindPKI, nil, bundle.NotCollected, "no CA file is known of two nodes")
	}
	for _, v := range odd {
		pl := caPlaces[v.place]
		conf := report.Certain
		note := ""
		if apart == compared && compared > 2 && saApart(cl) {
			conf, note = report.Possible, "; nothing at all is shared, so these may be bundles of two clusters"
		}
		p.Report(differs(pl.what, pl.sev, v.as, conf, note))
	}
	return nil
}

// storedDiffers compares the CAs that objects of the cluster hand out with
// those on disk. It reports whether there was anything to compare.
func storedDiffers(p *analyze.Pass, cl *creds.Cluster) bool {
	st, err := creds.Store.Try(p, nil)
	if err != nil {
		return false
	}
	compared := false
	for _, name := range st.Opaque {
		if strings.HasPrefix(name, "kube-") { // not the bundles of webhooks
			p.Unknown(bundle.KindStore, nil, bundle.Redacted, "the certificate in "+name)
			compared = true
		}
	}
	for _, s := range st.CAs {
		var odd *creds.CA
		agree := false
		for _, n := range cl.Nodes {
			a := n.CA(s.Role)
			if a == nil && s.Role == creds.RootCA {
				a = n.CA(creds.ClusterCA)
			}
			if a == nil || len(a.Certs()) == 0 {
				continue
			}
			compared = true
			if s.Trusts(a) {
				agree = true
			} else if odd == nil {
				odd = a
			}
		}
		if odd == nil || agree {
			continue // a difference between nodes is reported as such
		}
		text := describe(&creds.CA{Source: s.Source})
		p.Report(analyze.Finding{
			Node: odd.Node, Subject: s.Name, Severity: report.Critical,
			Message:  fmt.Sprintf("%s gives %s the CA %s, but %s on disk is %s", s.Name, s.What, text, odd.Name(), describe(odd)),
			Evidence: []analyze.Evidence{analyze.See(s.Source.Ref, text), analyze.Expect(odd.Source.Ref, describe(odd))},
		})
	}
	return compared
}

// identity is the set of a file's certificates, whatever their order.
func identity(a *creds.CA) string {
	var out []string
	for _, b := range a.Source.Certificates() {
		if b.Cert != nil {
			out = append(out, fmt.Sprintf("%s/%x", b.SPKI, b.Cert.SerialNumber))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func differs(what string, sev report.Severity, as []*creds.CA, conf report.Confidence, note string) analyze.Finding {
	groups := map[string][]*creds.CA{}
	var order []string
	for _, a := range as {
		id := identity(a)
		if groups[id] == nil {
			order = append(order, id)
		}
		groups[id] = append(groups[id], a)
	}
	// The smallest group is odd; of equals the later one.
	odd := 0
	for i, id := range order {
		if len(groups[id]) <= len(groups[order[odd]]) {
			odd = i
		}
	}
	first := groups[order[odd]][0]
	common := true // every file still shares a CA with every other: a rotation under way
	for i := range as {
		for j := range as[:i] {
			common = common && as[i].Shares(as[j])
		}
	}
	if common {
		sev, note = report.Medium, "; they have a CA in common, as during a rotation"
	}
	var parts []string
	var ev []analyze.Evidence
	for i, id := range order {
		var names []string
		for _, a := range groups[id] {
			names = append(names, a.Node.Name)
		}
		parts = append(parts, fmt.Sprintf("%s: %s", strings.Join(names, ", "), describe(groups[id][0])))
		e := analyze.Expect(groups[id][0].Source.Ref, describe(groups[id][0]))
		if i == odd {
			ev = append([]analyze.Evidence{analyze.See(first.Source.Ref, describe(first))}, ev...)
			continue
		}
		ev = append(ev, e)
	}
	return analyze.Finding{
		Node: first.Node, Subject: what, Severity: sev, Confidence: conf,
		Message:  fmt.Sprintf("the %s is not the same on all nodes (%s)%s", what, strings.Join(parts, "; "), note),
		Evidence: ev,
	}
}

func describe(a *creds.CA) string {
	var out []string
	for _, b := range a.Source.Certificates() {
		if b.Cert != nil && len(out) < 3 {
			out = append(out, fmt.Sprintf("%s, key %s, serial %x", b.Cert.Subject.CommonName, b.SPKI.Short(), b.Cert.SerialNumber))
		}
	}
	return strings.Join(out, " and ")
}

// saApart reports whether the nodes' service-account keys differ too.
func saApart(cl *creds.Cluster) bool {
	first := ""
	for _, n := range cl.Nodes {
		for _, k := range n.SA {
			if k.Signing || len(k.Fingerprints()) == 0 {
				continue
			}
			id := k.Fingerprints()[0].String()
			if first != "" && id != first {
				return true
			}
			first = id
		}
	}
	return false
}
