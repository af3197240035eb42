package dir

import (
	"fmt"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/objects"
	"coldplane/analyze/provenance"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "DIR104", Name: "several-etcd-data-dirs", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium, report.Info},
	Doc: analyze.Doc{
		Title: "The node holds several etcd data directories",
		Why: "Only one of them is the cluster. After a restore into a new directory the manifest must mount that one, or the restore has no effect; and a " +
			"directory that is newer than the one in use may be the real cluster. A copy that nobody knows waits for an upgrade or an edit to be started again.",
		Fix: "Decide which directory is authoritative before anything restarts: compare revision and last write. Point the hostPath at it, write it into " +
			"etcd.local.dataDir of kubeadm-config, and archive the others off the node.",
		Links: []string{"https://github.com/kubernetes/website/issues/28989", "https://etcd.io/docs/latest/op-guide/recovery/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{etcddir.OnNode, etcddb.OnNode, objects.LastWrites, provenance.OfNode},
	Run:   severalDirs,
})

func severalDirs(p *analyze.Pass) error {
	m, _ := staticpod.Manifests.In(p)
	pod := m.Component(staticpod.Etcd)
	if pod == nil {
		return p.NotApplicable("no etcd manifest on this node")
	}
	ds, err := etcddir.OnNode.Try(p, p.Node())
	if err != nil {
		p.UnknownErr(bundle.KindDataDir, p.Node(), err)
		return nil
	}
	used := ds.InUse()
	if used == nil {
		return p.NotApplicable("the data directory is not on a hostPath (DIR101)")
	}
	dbs, err := etcddb.OnNode.Try(p, p.Node())
	known := false
	for _, d := range ds {
		known = known || d.Err == nil
		if d == used || d.DB == nil || strings.HasPrefix(d.Path, "/etc/kubernetes/tmp/") {
			continue // kubeadm's own copies lie in /etc/kubernetes/tmp
		}
		other(p, pod, used, d, dbs)
	}
	if !known {
		p.UnknownErr(bundle.KindDataDir, p.Node(), used.Err)
	} else if err != nil && len(ds) > 1 {
		p.UnknownErr(bundle.KindStore, p.Node(), err)
	}
	return nil
}

func other(p *analyze.Pass, pod *staticpod.Pod, used, d *etcddir.Dir, dbs etcddb.DBs) {
	mine, its := storeOf(dbs, used), storeOf(dbs, d)
	sev := report.Info
	msg := fmt.Sprintf("%s holds another etcd member (%s) besides %s, which etcd uses", d.Path, about(p, d, its), used.Path)
	first := fmt.Sprintf("Find out what %s is before anybody starts etcd on it.", d.Path)
	switch {
	case its != nil && its.Store != nil && fresh(its):
		sev = report.Medium
		msg = fmt.Sprintf("a snapshot was restored into %s (%s) and etcd does not use it: the manifest mounts %s (%s)", d.Path, about(p, d, its), used.Path, about(p, used, mine))
		first = fmt.Sprintf("If the restore is wanted: stop the API servers and etcd on every node, point the hostPath of etcd-data at %s, and write the same into etcd.local.dataDir of kubeadm-config.", d.Path)
	case its != nil && its.Store != nil && mine != nil && mine.Store != nil && its.Store.Current() > mine.Store.Current() && !quorum.Restored(mine.Store):
		msg = fmt.Sprintf("%s (%s) is ahead of %s (%s), which etcd uses", d.Path, about(p, d, its), used.Path, about(p, used, mine))
		if wrote, ended, ok := later(p, used, d); ok {
			msg += fmt.Sprintf("; %s was written until %s, %s only until %s, as after a restore: what was written between the snapshot and the restore is only in the latter",
				used.Path, wrote.Format(stamp), d.Path, ended.Format(stamp))
			break
		}
		sev = report.High
		first = "Do not restart etcd and do not delete anything: the directory that is not in use knows more."
	}
	flag, _ := pod.Setting("data-dir")
	mount := pod.Resolve(pod.Main(), flag.Value)
	evidence := []analyze.Evidence{analyze.See(d.DB.Ref(), about(p, d, its)), analyze.Expect(mount.VolumeRef, "hostPath: "+mount.HostPath)}
	if used.DB != nil {
		evidence = append(evidence, analyze.Context(used.DB.Ref(), about(p, used, mine)))
	}
	p.Report(analyze.Finding{
		Subject: "etcd data directory " + d.Path, Severity: sev, Message: msg, Evidence: evidence,
		Fix: []report.Step{
			{Text: first},
			{Text: "Compare the two.", Command: fmt.Sprintf("ls -l --time-style=full-iso %s %s", recipe.Quote(snapDir(d)), recipe.Quote(snapDir(used)))},
			{Text: "Archive what is not the cluster off the node; it holds every Secret.", Command: fmt.Sprintf("tar -C / -czf /root/etcd-unused.tgz %s", recipe.Quote(strings.TrimPrefix(d.Path, "/")))},
		},
	})
}

// later returns the last writes of the directory in use and of another one,
// when the one in use went on longer.
func later(p *analyze.Pass, used, d *etcddir.Dir) (wrote, ended time.Time, ok bool) {
	last, err := objects.LastWrites.Try(p, p.Node())
	if err != nil {
		return wrote, ended, false
	}
	wrote, ok1 := last[used.Path]
	ended, ok2 := last[d.Path]
	return wrote.UTC(), ended.UTC(), ok1 && ok2 && wrote.After(ended)
}

func snapDir(d *etcddir.Dir) string { return d.Path + "/member/snap" }

func storeOf(dbs etcddb.DBs, d *etcddir.Dir) *etcddb.DB {
	if len(dbs) == 0 {
		return nil
	}
	return dbs.Of(d)
}

// fresh reports whether a directory was restored and never run: etcd gives its
// members client URLs when they start.
func fresh(db *etcddb.DB) bool {
	if !quorum.Restored(db.Store) || len(db.Store.Members) == 0 {
		return false
	}
	for _, m := range db.Store.Members {
		if len(m.ClientURLs) > 0 {
			return false
		}
	}
	return true
}

// about describes a directory in a few words.
func about(p *analyze.Pass, d *etcddir.Dir, db *etcddb.DB) string {
	var s []string
	if db != nil && db.Store != nil {
		s = append(s, fmt.Sprintf("revision %d", db.Store.Current()))
		if n := len(db.Store.Members); n == 1 {
			s = append(s, fmt.Sprintf("member %x", db.Store.Members[0].ID))
		} else if n > 0 {
			s = append(s, fmt.Sprintf("%d members", n))
		}
	}
	if d.DB != nil {
		s = append(s, bundle.FormatBytes(d.DB.Size))
	}
	if t := modified(p, d.Newest()); t != "" {
		s = append(s, t)
	}
	if len(s) == 0 {
		return "nothing known of it"
	}
	return strings.Join(s, ", ")
}
