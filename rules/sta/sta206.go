package sta

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/drift"
	"coldplane/analyze/kubeadm/render"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA206", Name: "hand-edit-lost-on-upgrade", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "A manifest was edited by hand and the next kubeadm upgrade undoes it",
		Why: "kubeadm upgrade writes the static pods anew from the ClusterConfiguration and its own defaults. What was changed in the manifest only " +
			"is gone afterwards, without a warning: a raised quota, an audit policy, an encryption configuration, an added volume.",
		Fix: "Write each edit that is to stay into the kubeadm-config ConfigMap (extraArgs, extraVolumes, extraEnvs, dataDir, imageRepository) or into a " +
			"directory given to kubeadm with --patches. Then see what kubeadm would write: kubeadm upgrade diff covers the API server, the controller " +
			"manager and the scheduler; for etcd render the manifest with kubeadm init phase etcd local --dry-run --config full.yaml.",
		Links: []string{"https://github.com/kubernetes/kubeadm/issues/1564", "https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{drift.OnNode},
	Run:   handEdits,
})

// shownEdits bounds the edits a message spells out.
const shownEdits = 6

func handEdits(p *analyze.Pass) error {
	d, _ := drift.OnNode.In(p)
	for _, u := range d.Unknown {
		p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, u)
	}
	if len(d.Components) == 0 && len(d.Unknown) == 0 {
		return p.NotApplicable("no manifest that kubeadm writes")
	}
	for _, c := range d.Components {
		var edits []render.Change
		for _, e := range c.Edits {
			if !drift.Skip(c.Name, e) {
				edits = append(edits, e)
			}
		}
		if len(edits) == 0 {
			continue
		}
		if len(c.Patched) > 0 {
			p.Unknown(bundle.KindFiles, p.Node(), bundle.Undecided, fmt.Sprintf("%s: %s may explain %d differences", c.Name, c.Patched[0].Origin, len(edits)))
			continue
		}
		p.Report(editFinding(c, edits, p.Target() != ""))
	}
	return nil
}

func editFinding(c *drift.Component, edits []render.Change, audit bool) analyze.Finding {
	sev := report.Low
	var parts []string
	var evidence []analyze.Evidence
	var fix []report.Step
	for i, e := range edits {
		what, grave := render.Loss(c.Name, e)
		switch {
		case grave && audit:
			sev = report.High
		case !harmless(e) && sev == report.Low:
			sev = report.Medium
		}
		text := e.Text()
		if what != "" {
			text += ": " + what
		}
		if i < shownEdits {
			parts = append(parts, text)
		}
		evidence = append(evidence, analyze.See(c.Pod.Ref(e.Pointer), excerptOf(e)))
		if s := keepStep(c.Name, e); s != "" && e.Have != "" {
			fix = append(fix, report.Step{Text: s})
		}
	}
	if len(edits) > shownEdits {
		parts = append(parts, fmt.Sprintf("and %d more", len(edits)-shownEdits))
	}
	n := "a hand edit"
	if len(edits) > 1 {
		n = fmt.Sprintf("%d hand edits", len(edits))
	}
	fix = append(fix, report.Step{Text: "Edits that are not wanted any more need nothing: the upgrade removes them."},
		report.Step{Text: "See what kubeadm would write before upgrading.", Command: renderCommand(c.Name)})
	return analyze.Finding{
		Subject: c.Name + " manifest", Severity: sev,
		Message:  fmt.Sprintf("%s of the %s manifest that kubeadm 1.%d would not write and the next kubeadm upgrade undoes: %s", n, c.Name, c.Minor, strings.Join(parts, "; ")),
		Evidence: evidence, Fix: fix,
	}
}

// harmless edits lose nothing that anybody would miss at once: what is left
// out and comes back, and how much is logged.
func harmless(e render.Change) bool {
	switch e.Item {
	case "--v", "--vmodule", "--logging-format", "--log-level", "resources":
		return true
	}
	return e.Have == "" && e.Kind != render.FlagChange
}

func renderCommand(component string) string {
	if component == staticpod.Etcd {
		return "kubeadm init phase etcd local --dry-run --config full.yaml"
	}
	return "kubeadm upgrade diff"
}

func excerptOf(e render.Change) string {
	switch {
	case e.Have == "":
		return fmt.Sprintf("no %s; kubeadm writes %s", e.Item, e.Want)
	case e.Want == "":
		return fmt.Sprintf("%s = %s; kubeadm writes none", e.Item, e.Have)
	}
	return fmt.Sprintf("%s = %s; kubeadm writes %s", e.Item, e.Have, e.Want)
}

// keepStep says where an edit belongs so that kubeadm keeps it.
func keepStep(component string, e render.Change) string {
	section := map[string]string{
		staticpod.APIServer: "apiServer", staticpod.ControllerManager: "controllerManager", staticpod.Scheduler: "scheduler", staticpod.Etcd: "etcd.local",
	}[component]
	switch e.Kind {
	case render.FlagChange:
		return fmt.Sprintf("To keep %s, add it to %s.extraArgs of kubeadm-config.", e.Item, section)
	case render.MountChange:
		if component == staticpod.Etcd {
			return fmt.Sprintf("To keep %s, use a patch file etcd+strategic.yaml in the --patches directory.", e.Item)
		}
		return fmt.Sprintf("To keep %s, add it to %s.extraVolumes of kubeadm-config.", e.Item, section)
	case render.EnvChange:
		return fmt.Sprintf("To keep %s, add it to %s.extraEnvs of kubeadm-config (v1beta4), or use a patch.", e.Item, section)
	case render.ImageChange:
		return "To keep the registry, set imageRepository in kubeadm-config."
	}
	return fmt.Sprintf("To keep %s, use a patch file %s+strategic.yaml in the --patches directory.", e.Item, component)
}
