package upg

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG201", Name: "stored-objects-not-decodable", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.Critical},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The database holds objects that the target cannot decode",
		Why: "An API server decodes what it finds in etcd with the types it was built with. A type that is gone makes every list of that resource " +
			"fail, and with it namespace deletion and garbage collection. Objects written in an old API version stay so until somebody rewrites them: " +
			"that the version is no longer served does not matter, that its type is gone does.",
		Fix: "Before the upgrade, while the running release still reads them: rewrite the objects in a version the target knows (kubectl get RESOURCE -A -o json | kubectl replace -f -), " +
			"or delete those that are not needed. Then look again: the count must be zero.",
		Links: []string{
			"https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
			"https://kubernetes.io/docs/tasks/manage-kubernetes-objects/storage-version-migration/",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{running.OnNode, running.Config},
	Run:   notDecodable,
})

func notDecodable(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	set, _ := objects.Cluster.In(p)
	minor := tabled(p, t)
	for _, typ := range set.Store.Types {
		for _, f := range typ.Formats {
			switch f.Encoding {
			case etcdstore.Protobuf, etcdstore.JSON:
			case etcdstore.Encrypted:
				if typ.Type != "secrets" && typ.Type != "configmaps" { // always v1
					p.Unknown(bundle.KindStore, nil, bundle.Redacted, fmt.Sprintf("%d objects of %s are encrypted; as what type they are stored is not known", f.Live, typ.Type))
				}
				continue
			default:
				continue
			}
			pr, builtin := releases.Decodable(f.APIVersion, f.Kind, minor)
			if !builtin || pr != releases.Removed && pr != releases.NotYet || f.Live == 0 {
				continue
			}
			ev := samples(set, typ.Type, f, 5)
			if len(ev) == 0 {
				ev = []analyze.Evidence{analyze.See(set.DB.Ref(), f.APIVersion+" "+f.Kind)}
			}
			why := "types of this version are gone from it"
			if pr == releases.NotYet {
				why = "it does not know this version yet"
			}
			p.Report(analyze.Finding{
				Subject: f.APIVersion + " " + f.Kind, Severity: report.Critical, Evidence: ev,
				Message: fmt.Sprintf("%d objects of %s are stored as %s %s, which Kubernetes 1.%d cannot decode: %s; lists of the resource, namespace deletion and garbage collection fail",
					f.Live, resource(typ.Type, f.APIVersion), f.APIVersion, f.Kind, minor, why),
				Fix: steps(
					report.Step{Text: "With the running release, look which of them are needed.", Command: fmt.Sprintf("kubectl get %s -A", resource(typ.Type, f.APIVersion))},
					report.Step{Text: "Rewrite those, which stores them in the version of today.", Command: fmt.Sprintf("kubectl get %s -A -o json | kubectl replace -f -", resource(typ.Type, f.APIVersion))},
					report.Step{Text: "Delete the others, then take a snapshot and ask again; the count must be zero."},
				),
			})
		}
	}
	return nil
}

// samples are keys stored in a format, as evidence.
func samples(set *objects.Set, typ string, f etcdstore.FormatStats, n int) []analyze.Evidence {
	vs, _ := set.Store.TypeKeys(typ, "", 20000)
	var out []analyze.Evidence
	for _, v := range vs {
		if len(out) == n {
			break
		}
		r, err := set.Store.Load(v, 1<<20)
		if err != nil {
			continue
		}
		if g := etcdstore.FormatOf(r.Value); g.APIVersion == f.APIVersion && g.Kind == f.Kind {
			out = append(out, analyze.See(set.Ref(v), f.APIVersion+" "+f.Kind))
		}
	}
	return out
}

// resource is a type as kubectl names it, with its group.
func resource(typ, apiVersion string) string {
	r := etcdstore.Resource(typ)
	if g, _, ok := strings.Cut(apiVersion, "/"); ok && !strings.Contains(r, ".") {
		r += "." + g
	}
	return r
}
