package upg

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/analyze/releases"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG203", Name: "crd-stored-versions", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Custom resources are stored in a version their definition no longer has, or needs a conversion for",
		Why: "status.storedVersions only remembers that a version was once the one stored; nothing ever takes it back. What counts is what lies in the database: " +
			"an object in a version the definition has dropped cannot be read any more, and with it every list of its resource, namespace deletion and garbage collection. " +
			"An operator's upgrade that drops a version with objects left in it does exactly that.",
		Fix: "Make the version of storage served and convertible, rewrite all objects of the resource (StorageVersionMigration, or kubectl get and replace), look again that none is left in the old version, " +
			"then take the version out of status.storedVersions and out of the definition.",
		Links: []string{
			"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/",
			"https://github.com/kubernetes-sigs/cluster-api/issues/6691",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   crdVersions,
})

func crdVersions(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	l := set.CRDs()
	if !l.Complete() {
		p.Unknown(bundle.KindStore, nil, bundle.Damaged, "some CustomResourceDefinitions cannot be read")
	}
	for _, o := range l.Items {
		judgeCRD(p, set, o)
	}
	if p.Target() != "" {
		unserved(p, set)
	}
	return nil
}

// A customs is what is really stored of a custom resource.
type customs struct {
	live    int64
	version map[string]etcdstore.FormatStats
}

func storedOf(set *objects.Set, c *objects.CRD) customs {
	out := customs{version: map[string]etcdstore.FormatStats{}}
	for _, t := range set.Store.Types {
		if t.Type != c.Spec.Group+"/"+c.Spec.Names.Plural {
			continue
		}
		out.live = t.Live
		for _, f := range t.Formats {
			if v, ok := strings.CutPrefix(f.APIVersion, c.Spec.Group+"/"); ok && f.Live > 0 {
				out.version[v] = f
			}
		}
	}
	return out
}

func judgeCRD(p *analyze.Pass, set *objects.Set, o objects.Object[objects.CRD]) {
	c := o.Value
	name := c.Spec.Names.Plural + "." + c.Spec.Group
	real := storedOf(set, c)
	has := []string{}
	storage := ""
	for _, v := range c.Spec.Versions {
		has = append(has, v.Name)
		if v.Storage {
			storage = v.Name
		}
	}
	if len(has) == 0 && c.Spec.Version != "" {
		has, storage = []string{c.Spec.Version}, c.Spec.Version
	}
	said := fmt.Sprintf("versions %s, stored %s, storedVersions %s", strings.Join(has, ","), storage, strings.Join(c.Status.StoredVersions, ","))
	var old []string
	var oldLive int64
	for _, v := range sortedKeys(real.version) {
		f := real.version[v]
		if !slices.Contains(has, v) {
			ev := append([]analyze.Evidence{analyze.See(o.Ref, said)}, samples(set, c.Spec.Group+"/"+c.Spec.Names.Plural, f, 3)...)
			p.Report(analyze.Finding{Subject: name + " " + v, Severity: report.High, Evidence: ev,
				Message: fmt.Sprintf("%d objects of %s are stored as %s, a version the CustomResourceDefinition does not have any more (%s): they cannot be read, and lists of the resource fail", f.Live, name, v, strings.Join(has, ", ")),
				Fix: steps(report.Step{Text: "Add version " + v + " to the definition again (served: false is enough to read what is stored).", Command: "kubectl edit crd " + name},
					report.Step{Text: "Rewrite all objects, which stores them as " + storage + ".", Command: fmt.Sprintf("kubectl get %s -A -o json | kubectl replace -f -", name)},
					report.Step{Text: "Look again; when none is left, take the version out of status.storedVersions, then out of the definition.", Command: fmt.Sprintf(`kubectl patch crd %s --subresource=status --type=merge -p '{"status":{"storedVersions":["%s"]}}'`, name, storage)})})
			continue
		}
		if v != storage {
			old = append(old, fmt.Sprintf("%d as %s", f.Live, v))
			oldLive += f.Live
		}
	}
	if svc := conversion(c); svc != nil && len(real.version) > 0 && (oldLive > 0 || servedOthers(c, storage)) {
		if b := set.Backend(svc.Namespace, svc.Name); b.Dead {
			ev := []analyze.Evidence{analyze.See(o.Ref, "conversion webhook "+b.Service)}
			if !b.Ref.IsZero() {
				ev = append(ev, analyze.Context(b.Ref, "service "+b.Service))
			}
			p.Report(analyze.Finding{Subject: name + " conversion", Severity: report.High, Evidence: ev,
				Message: fmt.Sprintf("%s needs its conversion webhook, and %s: objects cannot be read in another version than they are stored in (%d objects)", name, b.Why, real.live)})
			return
		}
	}
	if p.Target() == "" {
		return
	}
	switch {
	case oldLive > 0:
		p.Report(analyze.Finding{Subject: name, Severity: report.Medium, Evidence: []analyze.Evidence{analyze.See(o.Ref, said)},
			Message: fmt.Sprintf("%s: %s, stored version %s; an upgrade of its operator that drops the old version makes them unreadable", name, strings.Join(old, ", "), storage)})
	case len(c.Status.StoredVersions) > 1 && real.live > 0:
		p.Report(analyze.Finding{Subject: name, Severity: report.Info, Evidence: []analyze.Evidence{analyze.See(o.Ref, said)},
			Message: fmt.Sprintf("%s lists storedVersions %s, but every object is stored as %s: the list may be cut to it", name, strings.Join(c.Status.StoredVersions, ", "), storage)})
	}
}

// conversion is the service that converts a custom resource, or nil.
func conversion(c *objects.CRD) *objects.ServiceRef {
	x := c.Spec.Conversion
	switch {
	case x.Strategy != "Webhook":
	case x.Webhook != nil && x.Webhook.ClientConfig != nil:
		return x.Webhook.ClientConfig.Service
	case x.WebhookClientConfig != nil:
		return x.WebhookClientConfig.Service
	}
	return nil
}

// servedOthers reports whether a version besides the stored one is served.
func servedOthers(c *objects.CRD, storage string) bool {
	for _, v := range c.Spec.Versions {
		if v.Served && v.Name != storage {
			return true
		}
	}
	return false
}

// unserved counts built-in objects stored in versions the target can decode
// but no longer serves: nothing to do, yet worth knowing.
func unserved(p *analyze.Pass, set *objects.Set) {
	t, ok := target(p)
	if !ok {
		return
	}
	to := min(t.Minor, releases.NewestMinor())
	var what []string
	var n int64
	for _, typ := range set.Store.Types {
		for _, f := range typ.Formats {
			l, ok := releases.APILife(f.APIVersion, f.Kind)
			if !ok || l.Removed == 0 || l.Removed > to || f.Live == 0 {
				continue
			}
			if pr, builtin := releases.Decodable(f.APIVersion, f.Kind, to); !builtin || pr != releases.Present {
				continue // UPG201
			}
			what = append(what, fmt.Sprintf("%d %s %s", f.Live, f.APIVersion, f.Kind))
			n += f.Live
		}
	}
	if n > 0 {
		p.Report(analyze.Finding{Subject: "built-in objects", Severity: report.Info, Evidence: []analyze.Evidence{analyze.See(set.DB.Ref(), list(what, 5))},
			Message: fmt.Sprintf("%d built-in objects are stored in versions that 1.%d does not serve but still reads: %s", n, to, list(what, 5))})
	}
}
