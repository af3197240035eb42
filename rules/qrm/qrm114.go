package qrm

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/quorum"
	"coldplane/analyze/releases"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM114", Name: "etcd-version-known-bad-old-or-mixed", Scope: analyze.PerCluster, Latent: true,
	Severities: []report.Severity{report.Critical, report.High, report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "etcd runs a version with known trouble, out of support, or mixed versions",
		Why: "etcd 3.5.0 to 3.5.2 could lose applied writes in a crash and leave members with different data; later patches fixed defragmentation, leases, membership and reads. " +
			"Members of different minor versions are meant for the hours of a rolling upgrade; two minors apart they are not supported at all.",
		Fix: "Set etcd.local.imageTag in kubeadm-config to the newest patch of the running minor version and apply it with the present Kubernetes version, one member after the other, waiting for health between. " +
			"On 3.5.0 to 3.5.2 compare the members' data first.",
		Links: []string{"https://github.com/etcd-io/etcd/blob/main/CHANGELOG/README.md", "https://etcd.io/docs/v3.6/op-guide/versioning/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{quorum.Servers},
	Run:   etcdVersions,
})

// running is one version with those who run it.
type running struct {
	v    releases.Version
	who  []string
	refs []analyze.Evidence
}

func etcdVersions(p *analyze.Pass) error {
	var all []*running
	for _, n := range p.All() {
		vs, err := quorum.Servers.Try(p, n)
		if err != nil {
			continue
		}
		// On one node the manifest tells what will run; its log may be older.
		own := false
		for _, x := range vs {
			if x.Member == 0 && own {
				continue
			}
			own = own || x.Member == 0
			v, ok := releases.Parse(x.Text)
			if !ok || v.Major != 3 {
				continue
			}
			i := slices.IndexFunc(all, func(r *running) bool { return r.v == v })
			if i < 0 {
				all = append(all, &running{v: v})
				i = len(all) - 1
			}
			who := nodeName(n)
			if x.Member != 0 {
				who = "member " + quorum.ID(x.Member)
			}
			if !slices.Contains(all[i].who, who) {
				all[i].who = append(all[i].who, who)
			}
			if len(all[i].refs) < 6 {
				all[i].refs = append(all[i].refs, analyze.Context(x.Ref, "etcd "+x.Text))
			}
		}
	}
	if len(all) == 0 {
		p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "nothing names the version of etcd")
		return nil
	}
	slices.SortFunc(all, func(a, b *running) int { return a.v.Compare(b.v) })
	for _, r := range all {
		judgeVersion(p, r)
	}
	mixed(p, all)
	return nil
}

// judgeVersion reports one version by the gravest thing known about it.
func judgeVersion(p *analyze.Pass, r *running) {
	f := analyze.Finding{Subject: "etcd " + r.v.String(), Evidence: r.refs}
	bugs := releases.EtcdBugs(r.v)
	var texts []string
	for _, b := range bugs {
		texts = append(texts, fmt.Sprintf("%s (fixed in 3.%d.%d)", b.What, b.Minor, b.Fixed))
	}
	switch {
	case slices.ContainsFunc(bugs, func(b releases.KnownBug) bool { return b.Grave }):
		f.Severity = report.Critical
		f.Message = fmt.Sprintf("etcd %s: %s", r.v, texts[0])
	case r.v.Minor == 5 && r.v.Patch < 6:
		f.Severity = report.High
		f.Message = fmt.Sprintf("etcd %s is below 3.5.6, the oldest version advised for production: %s", r.v, strings.Join(texts[:min(2, len(texts))], "; "))
	case r.v.Minor < 4 || r.v.Minor == 4 && r.v.Patch < 22:
		f.Severity = report.High
		f.Message = fmt.Sprintf("etcd %s is out of support and below 3.4.22, the oldest version of its line advised for production", r.v)
	case r.v.Minor == 4:
		f.Severity = report.Medium
		f.Message = fmt.Sprintf("etcd %s: the 3.4 series is out of support", r.v)
	case len(bugs) > 0:
		f.Severity = report.Low
		f.Message = fmt.Sprintf("etcd %s is not the newest patch: %s", r.v, strings.Join(texts[:min(3, len(texts))], "; "))
	default:
		return
	}
	f.Message += " on " + strings.Join(r.who[:min(len(r.who), 8)], ", ")
	f.Evidence[0].Role = report.RoleSubject
	p.Report(f)
}

// mixed reports members of different versions.
func mixed(p *analyze.Pass, all []*running) {
	lo, hi := all[0], all[len(all)-1]
	if lo.v.Minor == hi.v.Minor {
		return
	}
	f := analyze.Finding{Subject: "etcd versions of the members", Severity: report.Medium,
		Message: fmt.Sprintf("members run etcd %s (%s) and %s (%s): finish the upgrade, the cluster stays at the older version until then", lo.v, list(lo.who), hi.v, list(hi.who))}
	if hi.v.Minor-lo.v.Minor > 1 {
		f.Severity = report.Critical
		f.Message = fmt.Sprintf("members run etcd %s (%s) and %s (%s): more than one minor version apart, which is not supported", lo.v, list(lo.who), hi.v, list(hi.who))
	}
	for _, r := range []*running{lo, hi} {
		f.Evidence = append(f.Evidence, r.refs[0])
	}
	f.Evidence[0].Role = report.RoleSubject
	p.Report(f)
}
