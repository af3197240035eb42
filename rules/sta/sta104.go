package sta

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/pki"
	"coldplane/analyze/provenance"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA104", Name: "control-plane-files-too-open", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Medium, report.Low},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "Control-plane files can be read or written by others than root",
		Why: "Whoever reads a private key, admin.conf or the etcd database owns the cluster: the database holds every Secret. kubeadm writes keys, kubeconfigs " +
			"and manifests with mode 0600 and owner root; looser modes come from hand edits and copies.",
		Fix: "Set mode 0600 and owner root:root on the files named (0700 on the etcd data directory). The components go on running.",
		Links: []string{
			"https://www.cisecurity.org/benchmark/kubernetes",
			"https://kubernetes.io/docs/setup/best-practices/certificates/",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{provenance.OfNode},
	Wants: []analyze.Need{staticpod.Manifests, pki.KeyIndex, etcddir.OnNode, running.Config},
	Run:   openFiles,
})

// A guarded file is one whose mode matters.
type guarded struct {
	path     string
	mode     fs.FileMode
	uid, gid int
	ref      bundle.Ref
	secret   bool // holds a private key or cluster data
	dir      bool
	trusted  bool // recorded by the collection itself
}

func (g guarded) text() string {
	s := fmt.Sprintf("%s mode %04o", g.path, g.mode.Perm())
	if g.uid >= 0 {
		s += fmt.Sprintf(" owner %d:%d", g.uid, g.gid)
	}
	return s
}

func openFiles(p *analyze.Pass) error {
	real, _ := provenance.OfNode.In(p)
	rootless := false
	if cfg, err := running.Config.Try(p, nil); err == nil {
		rootless = cfg.FeatureGates["RootlessControlPlane"]
	}
	files := guardedFiles(p)
	if len(files) == 0 {
		p.Unknown(bundle.KindFiles, p.Node(), bundle.NotCollected, "no manifest, kubeconfig, key or data directory in the input")
		return nil
	}
	var secrets, others []guarded
	for _, g := range files {
		mode := g.mode
		if real.Modes != "" && !g.trusted {
			mode = 0
		}
		foreign := g.uid > 0 && real.Owners == "" && !g.dir
		if rootless {
			// The components run as users of their own, which own or share their files.
			mode, foreign = mode&^0o070, false
		}
		open := mode & 0o077
		switch {
		case open == 0 && !foreign:
		case g.secret && (open&0o004 != 0 || open&0o040 != 0 && g.gid > 0):
			secrets = append(secrets, g)
		default:
			others = append(others, g)
		}
	}
	tell(p, "files with secrets", report.Medium, secrets, "readable by other users of the node")
	tell(p, "file permissions", report.Low, others, "looser than mode 0600 (directories 0700) and owner root")
	if real.Modes != "" {
		p.Unknown(bundle.KindFiles, p.Node(), bundle.Undecided, real.Modes)
	}
	return nil
}

func guardedFiles(p *analyze.Pass) []guarded {
	n := p.Node()
	var out []guarded
	seen := map[string]bool{}
	add := func(f *bundle.File, secret bool) {
		if f.Mode&fs.ModeSymlink != 0 {
			t, err := n.Stat(f.Origin)
			if err != nil {
				return
			}
			f = t
		}
		if !seen[f.Resolved] && (f.Mode.IsRegular() || f.Mode.IsDir()) && f.Refused == "" {
			seen[f.Resolved] = true
			out = append(out, guarded{f.Origin, f.Mode, f.UID, f.GID, f.Ref(), secret, f.Mode.IsDir(), false})
		}
	}
	if d, err := staticpod.Manifests.Try(p, n); err == nil {
		for _, e := range d.Entries {
			if e.File.Mode.IsRegular() {
				add(e.File, false)
			}
		}
	}
	for _, f := range n.Glob("/etc/kubernetes/*.conf") {
		// kubelet.conf names its key's file, except on old nodes.
		add(f, f.Name() != "kubelet.conf" && f.Name() != "bootstrap-kubelet.conf")
	}
	for _, pattern := range []string{"/etc/kubernetes/pki/*.key", "/etc/kubernetes/pki/etcd/*.key", "/var/lib/kubelet/pki/*.key", "/var/lib/kubelet/pki/*.pem", "/etc/ssl/etcd/ssl/*-key.pem"} {
		for _, f := range n.Glob(pattern) {
			add(f, true)
		}
	}
	if k, err := pki.KeyIndex.Try(p, n); err == nil {
		for _, r := range k.Records {
			m, err := strconv.ParseUint(r.Mode, 8, 32)
			if err != nil || seen[r.Path] || !strings.HasSuffix(r.Path, ".key") && !strings.HasSuffix(r.Path, ".pem") {
				continue
			}
			seen[r.Path] = true
			out = append(out, guarded{r.Path, fs.FileMode(m), -1, -1, k.File.Ref(), true, false, true})
		}
	}
	if ds, err := etcddir.OnNode.Try(p, n); err == nil {
		for _, d := range ds {
			if f, err := n.Stat(d.Path); err == nil && !n.StoreOnly && f.UID >= 0 {
				// Others cannot reach what lies in a closed directory.
				open := f.Mode&0o005 == 0o005
				add(f, open && d.DB != nil && d.DB.Mode&0o004 != 0)
			}
		}
	}
	slices.SortFunc(out, func(a, b guarded) int { return cmp.Compare(a.path, b.path) })
	return out
}

func tell(p *analyze.Pass, subject string, sev report.Severity, gs []guarded, what string) {
	if len(gs) == 0 {
		return
	}
	const listed = 20
	var evidence []analyze.Evidence
	var names, files, dirs []string
	for i, g := range gs {
		if i < listed {
			evidence = append(evidence, analyze.See(g.ref, g.text()))
		}
		names = append(names, fmt.Sprintf("%s (%04o)", path.Base(g.path), g.mode.Perm()))
		if g.dir {
			dirs = append(dirs, recipe.Quote(g.path))
		} else {
			files = append(files, recipe.Quote(g.path))
		}
	}
	if n := len(names); n > shown {
		names = append(names[:shown], fmt.Sprintf("and %d more", n-shown))
	}
	var fix []report.Step
	if len(files) > 0 {
		fix = append(fix, report.Step{Text: "Close the files.", Command: fmt.Sprintf("chown root:root %[1]s && chmod 600 %[1]s", strings.Join(files, " "))})
	}
	if len(dirs) > 0 {
		fix = append(fix, report.Step{Text: "Close the data directory.", Command: "chmod 700 " + strings.Join(dirs, " ")})
	}
	if sev == report.Medium {
		fix = append(fix, report.Step{Text: "Ask who could log in to this node meanwhile: a key or database that was read cannot be unread; new keys are the only cure."})
	}
	p.Report(analyze.Finding{
		Subject: subject, Severity: sev,
		Message:  fmt.Sprintf("%s: %s", what, strings.Join(names, ", ")),
		Evidence: evidence, Fix: fix,
	})
}
