package upg

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG202", Name: "clients-of-retired-apis", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.High, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Clients write through API versions that the target no longer serves",
		Why: "Every object records who wrote which fields through which API version. A client that still uses one which is gone after the upgrade gets 404 from then on: " +
			"a chart does not deploy, a controller stops. What is stored is not in danger, the API server converts it.",
		Fix: "Upgrade the client, chart or manifest first, and see that it writes through the newer version. The record is history: a client that was upgraded since and did not write yet still shows.",
		Links: []string{
			"https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
		},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "recent", Default: 30, Unit: "days", Source: "a client that wrote within a month is likely still there"},
		{Name: "objects", Default: 50000, Unit: "objects", Source: "bounds how many objects of one type are looked at"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{running.OnNode, running.Config},
	Run:   retiredClients,
})

// ownManagers write through whatever their own release uses: they are upgraded
// with the cluster.
var ownManagers = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubeadm"}

// A usage is one client's use of one API version of a kind.
type usage struct {
	who, kind, apiVersion string
	life                  releases.Lifecycle
	newest                time.Time // zero for last-applied
	count                 int
	example               objects.Object[objects.Head]
}

func retiredClients(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	set, _ := objects.Cluster.In(p)
	cfg, err := running.Config.Try(p, nil)
	if err != nil {
		cfg = nil
	}
	from, _, _ := current(p, cfg)
	to := tabled(p, t)
	for _, typ := range set.Store.Types {
		if typ.Type == etcdstore.Foreign || len(typ.Formats) == 0 || typ.Type == "events" || typ.Type == "leases" {
			continue
		}
		kind := typ.Formats[0].Kind
		gone := releases.Retired(kind, from.Minor, to)
		if len(gone) == 0 {
			continue
		}
		if float64(typ.Live) > p.Param("objects") {
			p.Unknown(bundle.KindStore, nil, bundle.TooLarge, fmt.Sprintf("%d %s are too many to look at", typ.Live, etcdstore.Resource(typ.Type)))
			continue
		}
		for _, u := range usages(set, typ.Type, kind, gone) {
			reportUsage(p, u, to)
		}
	}
	return nil
}

// usages finds who writes objects of a type through the given versions. A
// client that wrote through another version later was upgraded.
func usages(set *objects.Set, typ, kind string, gone []releases.Lifecycle) []*usage {
	type client struct{ who, apiVersion string }
	by := map[client]*usage{}
	last := map[string]time.Time{} // newest write of a client through a version that stays
	note := func(o objects.Object[objects.Head], who, apiVersion string, at time.Time) {
		i := slices.IndexFunc(gone, func(l releases.Lifecycle) bool { return l.APIVersion == apiVersion })
		if i < 0 {
			if at.After(last[who]) {
				last[who] = at
			}
			return
		}
		u := by[client{who, apiVersion}]
		if u == nil {
			u = &usage{who: who, kind: kind, apiVersion: apiVersion, life: gone[i]}
			by[client{who, apiVersion}] = u
		}
		if u.count++; u.count == 1 || at.After(u.newest) {
			u.newest, u.example = at, o
		}
	}
	for _, o := range set.Heads(typ, "").Items {
		for _, m := range o.Value.Managers {
			if !slices.Contains(ownManagers, m.Name) {
				note(o, m.Name, m.APIVersion, m.Time)
			}
		}
		if v := o.Value.AppliedVersion; v != "" {
			note(o, "", v, time.Time{})
		}
	}
	var out []*usage
	for c, u := range by {
		if c.who == "" || !last[c.who].After(u.newest) {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b *usage) int {
		return cmp.Or(cmp.Compare(a.who, b.who), cmp.Compare(a.apiVersion, b.apiVersion))
	})
	return out
}

func reportUsage(p *analyze.Pass, u *usage, to int) {
	sev, who := report.Medium, u.who
	text := fmt.Sprintf("%s writes %s through %s", u.who, u.kind, u.apiVersion)
	if u.who == "" {
		who, text = "last-applied", fmt.Sprintf("manifests that kubectl applied hold %s of %s", u.kind, u.apiVersion)
	}
	msg := fmt.Sprintf("%s, which Kubernetes 1.%d no longer serves (removed in 1.%d)", text, to, u.life.Removed)
	if u.life.Replacement != "" {
		msg += "; use " + u.life.Replacement
	}
	if now, ok := p.AsOf(nil); ok && !u.newest.IsZero() {
		days := now.Sub(u.newest).Hours() / 24
		if days < p.Param("recent") {
			sev = report.High
		}
		msg += fmt.Sprintf("; last on %s", u.newest.UTC().Format(time.DateOnly))
	}
	if u.count > 1 {
		msg += fmt.Sprintf(", %d objects", u.count)
	}
	p.Report(analyze.Finding{Subject: who + " " + u.apiVersion + " " + u.kind, Severity: sev, Confidence: report.Probable, Message: msg, ObservedAt: u.newest,
		Evidence: []analyze.Evidence{analyze.See(u.example.Ref, fmt.Sprintf("managed by %s through %s", who, u.apiVersion))}})
}
