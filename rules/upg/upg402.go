package upg

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG402", Name: "etcd-v2store-v3store-members-differ", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "etcd's two member lists differ (v2 store and database)",
		Why: "Up to 3.5 etcd takes its members from the v2 store, kept in the .snap files and the log; from 3.6 on from the database. Promotions done by 3.5.1 to 3.5.19 and removals of " +
			"older versions never reached the database: after the upgrade to 3.6 a voter turns into a learner, or members removed long ago come back as voters, and the next member refuses to start or the quorum is lost. " +
			"A snapshot of such a database hands the fault on to newer members.",
		Fix: "Do not go to etcd 3.6 yet, and do not promote or remove anything by hand. Update every member to 3.5.26 or later (3.5.32 is what the upgrade guide asks for), which writes the v2 store's members into the database at start; " +
			"restart all members one by one, and compare again.",
		Links: []string{"https://etcd.io/blog/2025/zombie_members_upgrade/", "https://etcd.io/blog/2025/upgrade_from_3.5_to_3.6_issue/",
			"https://github.com/etcd-io/etcd/issues/19557", "https://github.com/etcd-io/etcd/issues/20967"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{quorum.Joined, etcdwal.OnNode, etcddb.OnNode, logs.OnNode},
	Run:   twoLists,
})

// difference is one member on which the two lists do not agree.
type difference struct {
	id       uint64
	name     string
	what     string
	critical bool
	evidence []analyze.Evidence
	nodes    []string
}

func twoLists(p *analyze.Pass) error {
	byID := map[uint64]*difference{}
	compared, na := 0, 0
	for _, n := range p.All() {
		switch state, err := compareNode(p, n, byID); {
		case err != nil:
			p.UnknownErr(bundle.KindWAL, n, err)
		case state == authoritative:
			na++
		case state == done:
			compared++
		}
	}
	v, err := quorum.Joined.Try(p, nil)
	if err == nil {
		for _, c := range v.Clusters {
			disagreement(p, c, byID)
		}
	}
	logged(p, byID)
	var all []*difference
	for _, d := range byID {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *difference) int { return cmp.Compare(a.id, b.id) })
	for _, d := range all {
		reportDifference(p, d)
	}
	switch {
	case len(all) > 0 || compared > 0:
	case na > 0:
		return p.NotApplicable("etcd 3.6 and later take their members from the database alone")
	default:
		p.Unknown(bundle.KindWAL, nil, bundle.NotCollected, "no data directory with a readable .snap file or log beside a readable database")
	}
	return nil
}

type state int

const (
	nothing state = iota
	authoritative
	done
)

// compareNode lays the v2 store of a node's data directory beside its database.
func compareNode(p *analyze.Pass, n *bundle.Node, byID map[uint64]*difference) (state, error) {
	ds, err := etcdwal.OnNode.Try(p, n)
	if err != nil {
		return nothing, nil
	}
	d := ds.Live()
	if d == nil || len(d.Snaps) == 0 && d.Log == nil {
		return nothing, nil
	}
	dbs, err := etcddb.OnNode.Try(p, n)
	if err != nil {
		return nothing, nil
	}
	db := dbs.Of(d.Dir)
	if db == nil || db.Store == nil || db.Store.Lossy {
		return nothing, nil
	}
	if decidesAlone(p, n, db) {
		return authoritative, nil
	}
	if quorum.Restored(db.Store) {
		return nothing, nil
	}
	m, ok := d.Membership()
	if !ok {
		return nothing, &bundle.MissingError{Evidence: d.WALDir, Node: n.Name, Reason: bundle.Undecided, Detail: "the .snap files and the log do not reach back far enough to list the members"}
	}
	index := db.Store.Meta.ConsistentIndex
	for _, c := range d.Log.ConfChanges.Items {
		if c.Index > index && c.Index <= m.Index || c.Index > m.Index && c.Index <= index {
			return nothing, &bundle.MissingError{Evidence: db.File.Origin, Node: n.Name, Reason: bundle.Undecided,
				Detail: "a membership change lies between the database and the log: they were not copied at one time"}
		}
	}
	lay(n, d, db, &m, byID)
	return done, nil
}

// decidesAlone reports whether the node's etcd is 3.6 or newer.
func decidesAlone(p *analyze.Pass, n *bundle.Node, db *etcddb.DB) bool {
	v, err := quorum.Joined.Try(p, nil)
	if err == nil {
		for _, c := range v.Clusters {
			for _, x := range c.Versions {
				if x.Node == n.Name && x.Server {
					return !quorum.Before(x.Text, 3, 6, 0) && db.Store.Meta.StorageVersion != ""
				}
			}
		}
	}
	return db.Store.Meta.StorageVersion != ""
}

func lay(n *bundle.Node, d *etcdwal.Dir, db *etcddb.DB, m *etcdwal.Membership, byID map[uint64]*difference) {
	note := func(id uint64, name, what string, sev bool, e ...analyze.Evidence) {
		x := byID[id]
		if x == nil {
			x = &difference{id: id, name: name, what: what, critical: sev}
			byID[id] = x
		}
		if x.name == "" {
			x.name = name
		}
		x.evidence = append(x.evidence, e...)
		x.nodes = append(x.nodes, nodeLabel(n))
	}
	v2Ref := m.Base
	for _, s := range db.Store.Members {
		at := db.AtKey("members/"+quorum.ID(s.ID), 0)
		x := m.Member(s.ID)
		switch {
		case x == nil:
			why := ""
			for _, o := range m.Members {
				if slices.ContainsFunc(o.PeerURLs, func(u string) bool { return slices.Contains(s.PeerURLs, u) }) {
					why = fmt.Sprintf(" (the v2 store has %s at %s)", quorum.ID(o.ID), strings.Join(o.PeerURLs, ","))
				}
			}
			if slices.Contains(m.Removed, s.ID) {
				why = " (the v2 store says it was removed)"
			}
			note(s.ID, s.Name, "only the database lists it, the v2 store does not"+why+": etcd 3.6 would bring it back as a member", true,
				analyze.See(at, fmt.Sprintf("database: %s name %q peerURLs %v", quorum.ID(s.ID), s.Name, s.PeerURLs)),
				analyze.Expect(v2Ref, "v2 store: "+memberIDs(m)))
		case s.Learner != x.IsLearner:
			note(s.ID, cmp.Or(s.Name, x.Name), fmt.Sprintf("the database says %s, the v2 store %s: etcd 3.6 would take it for a %s", role(s.Learner), role(x.IsLearner), role(s.Learner)), true,
				analyze.See(at, fmt.Sprintf("database: %s name %q isLearner %v", quorum.ID(s.ID), s.Name, s.Learner)),
				analyze.Expect(v2Ref, fmt.Sprintf("v2 store: %s name %q isLearner %v", quorum.ID(s.ID), x.Name, x.IsLearner)))
		}
	}
	for _, x := range m.Members {
		if !slices.ContainsFunc(db.Store.Members, func(s etcdstore.Member) bool { return s.ID == x.ID }) {
			note(x.ID, x.Name, "only the v2 store lists it, the database does not: etcd 3.6 would not know it", true,
				analyze.See(v2Ref, fmt.Sprintf("v2 store: %s name %q", quorum.ID(x.ID), x.Name)), analyze.Expect(db.Ref(), "database: bucket members"))
		}
	}
	for _, id := range db.Store.Removed {
		if slices.ContainsFunc(db.Store.Members, func(s etcdstore.Member) bool { return s.ID == id }) {
			note(id, "", "the database lists it both as a member and as removed", true, analyze.See(db.AtKey("members_removed/"+quorum.ID(id), 0), "removed"),
				analyze.Context(db.AtKey("members/"+quorum.ID(id), 0), "member"))
		}
	}
}

func role(learner bool) string {
	if learner {
		return "learner"
	}
	return "voter"
}

func memberIDs(m *etcdwal.Membership) string {
	var out []string
	for _, x := range m.Members {
		out = append(out, quorum.ID(x.ID))
	}
	return strings.Join(out, ", ")
}

func nodeLabel(n *bundle.Node) string {
	if n.Name == "" {
		return "the cluster's files"
	}
	return n.Name
}

// disagreement adds members whose vote differs from answer to answer, where no
// v2 store was there to tell.
func disagreement(p *analyze.Pass, c *quorum.Cluster, byID map[uint64]*difference) {
	if !c.V2Decides {
		return
	}
	for _, m := range c.Members {
		if byID[m.ID] != nil || m.Ghost || !quorum.Disagree(m) {
			continue
		}
		d := &difference{id: m.ID, name: m.Name, what: "some members list it as a voter, others as a learner"}
		for _, x := range m.Claims {
			if x.Source.Kind == quorum.List && len(d.evidence) < 8 {
				d.evidence = append(d.evidence, analyze.Context(x.Ref, x.Text))
			}
		}
		if len(d.evidence) > 1 {
			byID[m.ID] = d
		}
	}
}

// logged adds members that etcd itself found in the database only.
func logged(p *analyze.Pass, byID map[uint64]*difference) {
	for _, n := range p.All() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, h := range l.Hits(signature.Etcd, "E34") {
			var id uint64
			if _, err := fmt.Sscanf(h.Value("member-id"), "%x", &id); err != nil {
				continue
			}
			if byID[id] == nil {
				byID[id] = &difference{id: id, what: "etcd found it in the database and not in the v2 store", critical: true}
			}
			if len(byID[id].evidence) < 8 {
				byID[id].evidence = append(byID[id].evidence, analyze.Context(h.Ref(), h.Excerpt()))
			}
		}
	}
}

func reportDifference(p *analyze.Pass, d *difference) {
	sev := report.High
	if d.critical {
		sev = report.Critical
	}
	who := "member " + quorum.ID(d.id)
	if d.name != "" {
		who = d.name + " (" + quorum.ID(d.id) + ")"
	}
	where := ""
	if len(d.nodes) > 0 {
		where = " on " + strings.Join(d.nodes, ", ")
	}
	d.evidence[0].Role = report.RoleSubject
	p.Report(analyze.Finding{
		Subject: "etcd member " + quorum.ID(d.id), Severity: sev,
		Message: who + ": " + d.what + where, Evidence: d.evidence,
		Fix: []report.Step{
			{Text: "Do not update any member to etcd 3.6, and do not use member promote or member remove for this: neither repairs the database of 3.5."},
			{Text: "Set etcd.local.imageTag in kubeadm-config to 3.5.26 or later (3.5.32 or later is what the upgrade guide asks for) and apply it with the present Kubernetes version, one node after the other."},
			{Text: "When all members run it, collect again and see that this finding is gone; only then go on to 3.6."},
		},
	})
}
