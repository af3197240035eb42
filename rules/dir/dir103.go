package dir

import (
	"fmt"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/host"
	"coldplane/analyze/provenance"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "DIR103", Name: "etcd-data-dir-empty", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "etcd's data directory is empty although the cluster has data",
		Why: "The etcd volume is made when it is missing, and etcd started on an empty directory founds a brand-new, empty cluster unless its flags say that it " +
			"joins one: the API server then answers with no objects at all, and controllers act on that. The cause is often a file system that was not mounted " +
			"or a path that changed.",
		Fix: "Stop: take etcd.yaml out of the manifest directory before anything starts. Find the real directory (an unmounted disk, another path) and point the " +
			"hostPath back at it. Only when there is none: restore a snapshot, or remove the member and join the node again.",
		Links: []string{"https://etcd.io/docs/latest/op-guide/recovery/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "join", Default: 2, Unit: "minutes", Source: "kubeadm waits this long for a learner to be promoted"},
		{Name: "older", Default: 60, Unit: "minutes", Source: "how much older than the directory the certificates must be to prove an older cluster"},
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{etcddir.OnNode, etcdwal.OnNode, etcddb.OnNode, provenance.OfNode, host.Listings},
	Run:   emptyDataDir,
})

func emptyDataDir(p *analyze.Pass) error {
	m, _ := staticpod.Manifests.In(p)
	pod := m.Component(staticpod.Etcd)
	if pod == nil {
		return p.NotApplicable("no etcd manifest on this node")
	}
	var d *etcddir.Dir
	ds, err := etcddir.OnNode.Try(p, p.Node())
	if err == nil {
		if d = ds.InUse(); d == nil {
			return p.NotApplicable("the data directory is not on a hostPath (DIR101)")
		}
	}
	what, at := "", bundle.Ref{}
	if d != nil {
		what, at, err = lacks(p.Node(), d)
	}
	if err != nil {
		l := listed(p, pod)
		if l == nil {
			p.UnknownErr(bundle.KindDataDir, p.Node(), err)
			return nil
		}
		d, what, at = l.dir, l.what, l.at
	}
	if what == "" {
		return nil
	}
	flag, _ := pod.Setting("data-dir")
	mount := pod.Resolve(pod.Main(), flag.Value)
	if r := remains(p, d); r != nil {
		r.Subject = "etcd data directory"
		r.Message = fmt.Sprintf("%s, which etcd uses, %s, but %s", d.Path, what, r.Message)
		r.Evidence = append([]analyze.Evidence{analyze.See(at, d.Path+" "+what), analyze.Context(mount.VolumeRef, "hostPath: "+mount.HostPath)}, r.Evidence...)
		p.Report(*r)
		return nil
	}
	state, _ := pod.Setting("initial-cluster-state")
	made := madeAt(p, d)
	if asOf, ok := p.AsOf(p.Node()); ok && state.Value == "existing" && !made.IsZero() && !made.After(asOf) && asOf.Sub(made) < time.Duration(p.Param("join")*float64(time.Minute)) {
		p.Unknown(bundle.KindDataDir, p.Node(), bundle.Undecided, d.Path+" is as new as a join that is going on")
		return nil
	}
	proof, evidence := olderCluster(p, ds, d, made, state)
	if proof == "" {
		p.Unknown(bundle.KindDataDir, p.Node(), bundle.Undecided, d.Path+" "+what+"; nothing shows that the cluster is older than it")
		return nil
	}
	next := "the next start of etcd founds a new, empty cluster"
	if state.Value == "existing" {
		next = "etcd cannot start as the member it was"
	}
	evidence = append([]analyze.Evidence{analyze.See(at, d.Path+" "+what), analyze.Context(mount.VolumeRef, "hostPath: "+mount.HostPath)}, evidence...)
	if initial, ok := pod.Setting("initial-cluster"); ok {
		evidence = append(evidence, analyze.Context(initial.Ref, initial.Text()))
	}
	if !state.Ref.IsZero() {
		evidence = append(evidence, analyze.Context(state.Ref, state.Text()))
	}
	manifest := recipe.Quote(pod.File().Origin)
	p.Report(analyze.Finding{
		Subject: "etcd data directory", Severity: report.Critical,
		Message:  fmt.Sprintf("%s, which etcd uses, %s, but %s; %s", d.Path, what, proof, next),
		Evidence: evidence,
		Fix: []report.Step{
			{Text: "Take etcd's manifest out before anything starts etcd on this directory.", Command: fmt.Sprintf("mv -n %s /root/", manifest)},
			{Text: "Look for the real directory: a disk that is not mounted, or the data under another path.",
				Command: "lsblk -f; findmnt " + recipe.Quote(d.Path) + "; find / -xdev -path '*/member/snap/db' -ls 2>/dev/null"},
			{Text: "Found: point the hostPath at it (or mount the disk), see that etcd.local.dataDir of kubeadm-config says the same, and put the manifest back.", Command: fmt.Sprintf("mv -n /root/%s %s", recipe.Quote(pod.File().Name()), manifest)},
			{Text: "Not found, other members healthy: remove this member on one of them (member list, member remove ID), then kubeadm reset and join this node again.", Command: recipe.Etcdctl("member list -w table")},
			{Text: "Not found, no other member: restore the newest snapshot with etcdutl snapshot restore; the API servers stay stopped until it is done."},
		},
	})
	return nil
}

// lacks says what of the member is not in the directory, and where that is
// seen; "" when it is all there. err is set when it cannot be told.
func lacks(n *bundle.Node, d *etcddir.Dir) (what string, at bundle.Ref, err error) {
	at = n.Ref(d.Path)
	switch {
	case bundle.IsAbsent(d.Err):
		return "does not exist", at, nil
	case d.Err != nil:
		return "", at, d.Err
	case d.DB != nil && d.WALErr == nil && d.Segments() == 0:
		return "has a database and no write-ahead log in " + d.WALDir, at, nil
	case d.DB != nil && bundle.IsAbsent(d.WALErr):
		return "has a database and no " + d.WALDir, at, nil
	case d.DB != nil && d.WALErr != nil:
		return "", at, d.WALErr
	case d.DB != nil:
		return "", at, nil
	case len(d.Top) == 0:
		return "is empty", at, nil
	case d.SnapErr == nil:
		return "has no member/snap/db", at, nil
	}
	var names []string
	for _, f := range d.Top {
		if f.Name() == "member" {
			// member/ is there, but not what belongs in it: left out of the input, or gone.
			if bundle.IsAbsent(d.SnapErr) {
				return "has no member/snap", at, nil
			}
			return "", at, d.SnapErr
		}
		names = append(names, f.Name())
	}
	if len(names) > 3 {
		names = append(names[:3], "…")
	}
	return "holds no member/ (only " + strings.Join(names, ", ") + ")", at, nil
}

// madeAt is when the directory last changed, zero when that is not known.
func madeAt(p *analyze.Pass, d *etcddir.Dir) time.Time {
	attrs, err := provenance.OfNode.Try(p, p.Node())
	f, serr := p.Node().Stat(d.Path)
	if err != nil || attrs.Times != "" || serr != nil {
		return time.Time{}
	}
	return f.ModTime
}

// olderCluster looks for a proof that the cluster had data before.
func olderCluster(p *analyze.Pass, ds etcddir.Dirs, d *etcddir.Dir, made time.Time, state staticpod.Flag) (string, []analyze.Evidence) {
	for _, o := range ds {
		if o != d && o.DB != nil {
			return fmt.Sprintf("%s on this node holds a member (%s)", o.Path, bundle.FormatBytes(o.Bytes())), []analyze.Evidence{analyze.Context(o.DB.Ref(), bundle.FormatBytes(o.DB.Size))}
		}
	}
	if made.IsZero() && state.Value == "existing" {
		return "", nil // it may be joining right now
	}
	for _, n := range p.Nodes() {
		if n == p.Node() {
			continue
		}
		others, err := etcddir.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		if o := others.InUse(); o != nil && o.Member() {
			return fmt.Sprintf("the member on %s holds data (%s)", n.Name, bundle.FormatBytes(o.Bytes())), []analyze.Evidence{analyze.Context(o.DB.Ref(), bundle.FormatBytes(o.DB.Size))}
		}
	}
	if made.IsZero() {
		return "", nil
	}
	limit := time.Duration(p.Param("older") * float64(time.Minute))
	for _, c := range []string{"/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/server.crt", "/etc/kubernetes/pki/sa.pub"} {
		f, err := p.Node().Stat(c)
		if err != nil || f.ModTime.IsZero() || made.Sub(f.ModTime) < limit {
			continue
		}
		return fmt.Sprintf("%s is from %s and the directory last changed %s", c, f.ModTime.UTC().Format(time.DateTime), made.UTC().Format(time.DateTime)),
			[]analyze.Evidence{analyze.Context(f.Ref(), "modified "+f.ModTime.UTC().Format(time.RFC3339))}
	}
	if asOf, ok := p.AsOf(p.Node()); ok && state.Value == "existing" && asOf.Sub(made) >= time.Duration(p.Param("join")*float64(time.Minute)) {
		return "etcd joined an existing cluster (--initial-cluster-state=existing)", []analyze.Evidence{analyze.Context(state.Ref, state.Text())}
	}
	return "", nil
}
