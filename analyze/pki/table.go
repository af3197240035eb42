package pki

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
	"coldplane/report"
)

// Table is the expiry and trust table: every certificate of every node once,
// in use or not, readable or not, and those that are named and not there.
// asOf gives the time that judges a node's dates.
func Table(c *analyze.Ctx, asOf func(*bundle.Node) (time.Time, bool)) []report.Certificate {
	cl, err := Joined.Get(c)
	if err != nil {
		cl = &Cluster{} // a store alone has certificates too
	}
	var out []report.Certificate
	for _, n := range cl.Nodes {
		t := &tableOf{cl: cl, n: n, seen: map[string]bool{}}
		t.now, t.timed = asOf(n.Node)
		for _, cr := range n.Credentials {
			if cr.Role != SigningCA {
				t.credential(cr)
			}
		}
		for _, a := range n.CAs {
			t.ca(a)
		}
		for _, cr := range n.CAPairs() {
			t.source(cr.Source, "ca", nil, cr)
		}
		for _, s := range n.Unused {
			t.source(s, "unused", nil, nil)
		}
		out = append(out, t.rows...)
	}
	t := &tableOf{cl: cl, n: &Node{Node: &bundle.Node{}}, seen: map[string]bool{}}
	t.now, t.timed = asOf(nil)
	t.stored(c)
	return append(out, t.rows...)
}

// stored lists the certificates in the cluster's objects.
func (t *tableOf) stored(c *analyze.Ctx) {
	st, err := Store.Get(c)
	if err != nil {
		return
	}
	add := func(s *Source, b *spki.Block, role string, users ...Use) *report.Certificate {
		r := t.row(s, b, role, users)
		r.Node, r.Origin = s.Ref.Node, s.Ref.Key
		if selfSigned(b) {
			r.Chain = report.Good
		}
		t.rows = append(t.rows, r)
		return &t.rows[len(t.rows)-1]
	}
	for _, a := range st.CAs {
		for _, b := range a.Source.Certificates() {
			add(a.Source, b, "CA in "+a.Name, Use{Process: a.What})
		}
	}
	for _, p := range st.Pairs {
		for i, b := range p.Source.Certificates() {
			r := add(p.Source, b, p.Source.Name)
			if i == 0 && !p.Key.IsZero() && !b.SPKI.IsZero() {
				r.KeyMatch = report.Bad
				if p.Key == b.SPKI {
					r.KeyMatch = report.Good
				}
			}
		}
	}
}

type tableOf struct {
	cl    *Cluster
	n     *Node
	now   time.Time
	timed bool
	seen  map[string]bool // certificates already listed, by place
	rows  []report.Certificate
}

// RoleName is how the table names a credential: as kubeadm does.
func RoleName(c *Credential) string {
	switch {
	case c.Config != nil && c.Config.Role == kubeconfig.Copy:
		return "copy of admin.conf"
	case c.Config != nil && c.Config.Role != kubeconfig.Other && c.Config.Cert.Inline:
		return c.Config.Name
	}
	return string(c.Role)
}

func usedBy(us ...Use) []string {
	var out []string
	for _, u := range us {
		s := strings.TrimSpace(u.Process + " " + u.Flag)
		if u.Ref.Line > 0 {
			s += fmt.Sprintf(" (%s:%d)", u.Ref.Path, u.Ref.Line)
		}
		out = append(out, s)
	}
	return out
}

// row fills what a block says about itself.
func (t *tableOf) row(s *Source, b *spki.Block, role string, users []Use) report.Certificate {
	ref := s.Line(b)
	r := report.Certificate{
		Node: t.n.Node.Name, Path: ref.Path, Origin: s.Path, Pointer: ref.Pointer, Role: role,
		UsedBy: usedBy(users...), Chain: report.NotKnown, KeyMatch: report.NotKnown,
	}
	if b == nil {
		return r
	}
	r.SPKI = b.SPKI.String()
	switch {
	case b.Cert != nil:
		x := b.Cert
		r.CA, r.Subject, r.Issuer, r.Serial = x.IsCA, x.Subject.String(), x.Issuer.String(), fmt.Sprintf("%x", x.SerialNumber)
		r.SANs, r.Usages, r.NotBefore, r.NotAfter = Names(x), usages(x), x.NotBefore.UTC(), x.NotAfter.UTC()
	default:
		r.Chain, r.ChainWhy = report.Bad, "it cannot be read: "+b.Err.Error()
		if p := b.Partial; p != nil {
			r.NotBefore, r.NotAfter, r.Serial = p.NotBefore, p.NotAfter, fmt.Sprintf("%x", p.Serial)
		}
	}
	if t.timed && !r.NotAfter.IsZero() {
		days := int(r.NotAfter.Sub(t.now).Hours() / 24)
		if r.NotAfter.Before(t.now) && days == 0 {
			days = -1
		}
		now := t.now
		r.DaysLeft, r.AsOf = &days, &now
	}
	return r
}

func usages(c *x509.Certificate) []string {
	var out []string
	for _, u := range c.ExtKeyUsage {
		switch u {
		case x509.ExtKeyUsageServerAuth:
			out = append(out, "serverAuth")
		case x509.ExtKeyUsageClientAuth:
			out = append(out, "clientAuth")
		case x509.ExtKeyUsageAny:
			out = append(out, "any")
		default:
			out = append(out, fmt.Sprintf("usage %d", u))
		}
	}
	return out
}

// first reports whether a place is listed for the first time.
func (t *tableOf) first(s *Source, b *spki.Block) bool {
	ref := s.Line(b)
	key := fmt.Sprintf("%s\x00%d\x00%s", s.Path, ref.Line, ref.Pointer)
	if t.seen[key] {
		return false
	}
	t.seen[key] = true
	return true
}

func (t *tableOf) credential(c *Credential) {
	if c.Source.Err != nil || c.Leaf == nil {
		r := t.row(c.Source, nil, RoleName(c), c.Users)
		switch {
		case bundle.IsAbsent(c.Source.Err):
			r.Missing, r.ChainWhy = true, "the file is not there"
		case c.Source.Err != nil:
			r.ChainWhy = c.Source.Err.Error()
		case c.Source.PEM.Marker != "":
			r.ChainWhy = "removed before collection"
		default:
			r.Chain, r.ChainWhy = report.Bad, "no certificate in it"
		}
		if t.first(c.Source, nil) {
			t.rows = append(t.rows, r)
		}
		return
	}
	if !t.first(c.Source, c.Leaf) {
		return
	}
	r := t.row(c.Source, c.Leaf, RoleName(c), c.Users)
	if c.Key.State == KeyKnown && !c.Leaf.SPKI.IsZero() {
		r.KeyMatch = report.Bad
		if c.Key.SPKI == c.Leaf.SPKI {
			r.KeyMatch = report.Good
		}
	}
	t.chain(&r, c)
	t.rows = append(t.rows, r)
	for _, b := range c.Rest {
		if t.first(c.Source, b) {
			x := t.row(c.Source, b, RoleName(c)+" chain", c.Users)
			if r.Chain == report.Good && b.Cert != nil {
				x.Chain = report.Good
			}
			t.rows = append(t.rows, x)
		}
	}
}

// chain sums up what the verifiers say.
func (t *tableOf) chain(r *report.Certificate, c *Credential) {
	if c.Cert() == nil {
		return
	}
	for _, ca := range t.n.CAPairs() {
		if ca.Key.State == KeyAbsent && signs(ca, c.Cert()) {
			r.External = true
		}
	}
	asked := false
	for _, ch := range t.cl.Checks {
		if ch.Cred != c {
			continue
		}
		asked = true
		if !ch.Chain.OK {
			who := ch.CA.Use.Process
			if who == "" {
				who = ch.CA.Name()
			}
			r.Chain, r.ChainWhy = report.Bad, "not accepted by "+who+": "+ch.Chain.Why
			return
		}
	}
	switch {
	case asked:
		r.Chain = report.Good
	case c.Role == KubeletServing && t.n.CA(KubeletCA) == nil:
		r.ChainWhy = "nobody verifies it"
	default:
		r.ChainWhy = "its verifier is not in the evidence"
	}
}

// signs reports whether a CA of the file bears the name of a certificate's issuer.
func signs(ca *Credential, c *x509.Certificate) bool {
	for _, x := range Certs(ca.Source.Certificates()) {
		if bytes.Equal(x.RawSubject, c.RawIssuer) {
			return true
		}
	}
	return false
}

func (t *tableOf) ca(a *CA) {
	role := map[CARole]string{ClusterCA: "ca", EtcdCA: "etcd-ca", EtcdPeerCA: "etcd-ca", EtcdServerCA: "etcd-ca", FrontProxyCA: "front-proxy-ca",
		KubeletCA: "kubelet-ca", KubeletsCA: "ca", RootCA: "ca"}[a.Role]
	var pair *Credential
	for _, p := range t.n.CAPairs() {
		if p.Source == a.Source {
			pair = p
		}
	}
	if a.Role == ConfigCA {
		role = "ca in " + a.Config.Name
	}
	t.source(a.Source, role, t.usesOf(a), pair)
}

// usesOf gathers everybody who trusts the same file.
func (t *tableOf) usesOf(a *CA) []Use {
	var out []Use
	for _, o := range t.n.CAs {
		if o.Source == a.Source && o.Use.Process != "" {
			out = append(out, o.Use)
		}
	}
	return out
}

func (t *tableOf) source(s *Source, role string, users []Use, pair *Credential) {
	bs := s.Certificates()
	if len(bs) == 0 {
		if s.Err == nil && s.PEM.Marker != "" || !t.first(s, nil) {
			return
		}
		r := t.row(s, nil, role, users)
		r.Missing = bundle.IsAbsent(s.Err)
		switch {
		case r.Missing:
			r.ChainWhy = "the file is not there"
		case s.Err != nil:
			r.ChainWhy = s.Err.Error()
		default:
			r.Chain, r.ChainWhy = report.Bad, "no certificate in it"
		}
		t.rows = append(t.rows, r)
		return
	}
	for i, b := range bs {
		if !t.first(s, b) {
			continue
		}
		r := t.row(s, b, role, users)
		if selfSigned(b) {
			r.Chain = report.Good // an anchor is trusted by being named
			if len(users) == 0 {
				r.Chain, r.ChainWhy = report.NotKnown, "nobody was seen to use it"
			}
		}
		if pair != nil && i == 0 && pair.Key.State == KeyKnown {
			r.KeyMatch = report.Bad
			if pair.Key.SPKI == b.SPKI {
				r.KeyMatch = report.Good
			}
		}
		t.rows = append(t.rows, r)
	}
}

// selfSigned reports whether a certificate is a CA that names itself as its issuer.
func selfSigned(b *spki.Block) bool {
	return b.Cert != nil && b.Cert.IsCA && string(b.Cert.RawSubject) == string(b.Cert.RawIssuer)
}
