package adm

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM401", Name: "unsafe-admission-or-authorization-flags", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Low},
	Doc: analyze.Doc{
		Title: "Admission or authorization of the API server is switched to an unsafe value",
		Why: "With AlwaysAllow everybody who is authenticated may do everything; without Node or RBAC kubelets and controllers are refused, or not held back. " +
			"Without NamespaceLifecycle objects are made in namespaces that are being deleted. A plugin the version does not know is STA203.",
		Fix: "Set --authorization-mode=Node,RBAC (or a configuration file that does the same), keep the default admission plugins on, and enable NodeRestriction.",
		Links: []string{
			"https://kubernetes.io/docs/reference/access-authn-authz/authorization/",
			"https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Run:   admission,
})

func admission(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	pod := d.Component(staticpod.APIServer)
	if pod == nil {
		if e := d.Broken(staticpod.APIServer); e != nil {
			p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
			return nil
		}
		return p.NotApplicable("no API server on this node")
	}
	say := func(subject string, sev report.Severity, f staticpod.Flag, message, change string) {
		ref, text := f.Ref, f.Text()
		if ref.IsZero() {
			ref, text = pod.Ref(fmt.Sprintf("/spec/containers/%d/command", pod.Main())), "no --"+f.Name
		}
		p.Report(analyze.Finding{Subject: "kube-apiserver " + subject, Severity: sev, Message: message,
			Evidence: []analyze.Evidence{analyze.See(ref, text)},
			Fix:      recipe.Edit(pod.File().Origin, staticpod.APIServer, change, "apiServer.extraArgs")})
	}
	get := func(name string) (staticpod.Flag, []string, bool) {
		var all []string
		f := staticpod.Flag{Name: name}
		for _, x := range pod.FlagAll(name) {
			f = x
			all = append(all, x.List()...)
		}
		return f, all, !f.Ref.IsZero()
	}
	authorization(p, say, get)
	plugins(p, say, get)
	return nil
}

type sayFunc func(subject string, sev report.Severity, f staticpod.Flag, message, change string)

type getFunc func(name string) (staticpod.Flag, []string, bool)

func authorization(p *analyze.Pass, say sayFunc, get getFunc) {
	if f, _, ok := get("authorization-config"); ok && f.Value != "" {
		return // the file decides instead of the flag
	}
	f, modes, ok := get("authorization-mode")
	switch {
	case f.Dynamic:
		p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, "--authorization-mode holds a variable")
	case !ok:
		say("--authorization-mode", report.High, f, "--authorization-mode is not given, and its default is AlwaysAllow: everybody who is authenticated may do everything", "Set --authorization-mode=Node,RBAC.")
	case slices.Contains(modes, "AlwaysAllow"):
		say("--authorization-mode", report.High, f, f.Text()+": everybody who is authenticated may do everything", "Set --authorization-mode=Node,RBAC.")
	default:
		var lacks []string
		for _, m := range []string{"Node", "RBAC"} {
			if !slices.Contains(modes, m) {
				lacks = append(lacks, m)
			}
		}
		if len(lacks) > 0 {
			say("--authorization-mode", report.High, f, f.Text()+" lacks "+strings.Join(lacks, " and "), "Set --authorization-mode=Node,RBAC, and keep what else is there.")
		}
	}
}

func plugins(p *analyze.Pass, say sayFunc, get getFunc) {
	on, enabled, given := get("enable-admission-plugins")
	if f, list, ok := get("admission-control"); ok {
		on, enabled, given = f, list, true // the flag of versions before 1.10
	}
	off, disabled, _ := get("disable-admission-plugins")
	if on.Dynamic || off.Dynamic {
		p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, "the lists of admission plugins hold a variable")
		return
	}
	for _, name := range []string{"NamespaceLifecycle", "ServiceAccount"} {
		if slices.Contains(disabled, name) && !slices.Contains(enabled, name) {
			say("admission plugin "+name, report.High, off, "the admission plugin "+name+" is switched off", "Remove "+name+" from --disable-admission-plugins.")
		}
	}
	switch {
	case slices.Contains(disabled, "NodeRestriction"):
		say("admission plugin NodeRestriction", report.Low, off, "the admission plugin NodeRestriction is switched off: a kubelet may change other nodes' objects", "Remove NodeRestriction from --disable-admission-plugins.")
	case !slices.Contains(enabled, "NodeRestriction"):
		if !given {
			on.Name = "enable-admission-plugins"
		}
		say("admission plugin NodeRestriction", report.Low, on, "the admission plugin NodeRestriction is not enabled: a kubelet may change other nodes' objects", "Add NodeRestriction to --enable-admission-plugins.")
	}
}
