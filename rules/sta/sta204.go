package sta

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/etcdservice"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA204", Name: "unsafe-etcd-flags", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "etcd runs with an unsafe or leftover flag",
		Why: "--force-new-cluster makes the member throw all others out at every start: left in the manifest it splits the cluster at the next restart. " +
			"--unsafe-no-fsync loses acknowledged writes with the power. Without client certificates whoever reaches the port reads and writes everything, " +
			"Secrets included.",
		Fix: "Remove the flag. For --force-new-cluster: see that the member list is what it should be, delete the flag, and only then restart etcd or add members.",
		Links: []string{
			"https://etcd.io/docs/latest/op-guide/configuration/",
			"https://etcd.io/docs/latest/op-guide/recovery/",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{},
	Wants: []analyze.Need{staticpod.Manifests, etcdservice.OnNode},
	Run:   unsafeEtcd,
})

// A configured is whatever gives etcd its settings.
type configured interface {
	Setting(name string) (staticpod.Flag, bool)
}

func unsafeEtcd(p *analyze.Pass) error {
	d, err := staticpod.Manifests.Try(p, p.Node())
	if err == nil {
		if pod := d.Component(staticpod.Etcd); pod != nil {
			judgeEtcd(p, pod, pod.File().Ref(), func(change string) []report.Step {
				return recipe.Edit(pod.File().Origin, staticpod.Etcd, change, "etcd.local.extraArgs, if it is written there")
			})
			return nil
		}
		if e := d.Broken(staticpod.Etcd); e != nil {
			p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
			return nil
		}
	}
	s, serr := etcdservice.OnNode.Try(p, p.Node())
	if serr == nil && s != nil {
		ref := p.Node().Ref("/etc/systemd/system/etcd.service")
		if s.Unit != nil {
			ref = s.Unit.Ref()
		}
		judgeEtcd(p, s, ref, func(change string) []report.Step {
			return []report.Step{{Text: change + " (in the unit, its drop-ins or its environment file)."},
				{Text: "Restart etcd, one member at a time.", Command: "systemctl daemon-reload && systemctl restart etcd && systemctl --no-pager status etcd"}}
		})
		return nil
	}
	if err != nil {
		p.UnknownErr(bundle.KindManifests, p.Node(), err)
		return nil
	}
	if serr != nil {
		p.UnknownErr(bundle.KindHost, p.Node(), serr)
		return nil
	}
	return p.NotApplicable("no etcd on this node")
}

func judgeEtcd(p *analyze.Pass, c configured, file bundle.Ref, edit func(string) []report.Step) {
	say := func(subject string, sev report.Severity, f staticpod.Flag, message, change string) {
		ref, text := f.Ref, f.Text()
		if ref.IsZero() {
			ref, text = file, "no --"+f.Name
		}
		p.Report(analyze.Finding{Subject: "etcd " + subject, Severity: sev, Message: message,
			Evidence: []analyze.Evidence{analyze.See(ref, text)}, Fix: edit(change)})
	}
	dynamic := false
	get := func(name string) staticpod.Flag {
		f, ok := c.Setting(name)
		if !ok {
			return staticpod.Flag{Name: name, Value: "\x00"}
		}
		dynamic = dynamic || f.Dynamic
		return f
	}
	if f := get("config-file"); f.Value != "\x00" {
		p.Unknown(bundle.KindFiles, p.Node(), bundle.Unsupported, "etcd takes its settings from "+f.Value)
	}
	if f := get("force-new-cluster"); f.True() {
		p.Report(analyze.Finding{Subject: "etcd --force-new-cluster", Severity: report.Critical,
			Message:  fmt.Sprintf("%s is set: at every start this member makes itself the only one of a new cluster", f.Text()),
			Evidence: []analyze.Evidence{analyze.See(f.Ref, f.Text())},
			Fix: append([]report.Step{
				{Text: "Do not restart etcd or the node while the flag is there."},
				{Text: "Look whether the member list is the one you want; if other members still run by themselves, stop them and wipe their data before they come back.",
					Command: recipe.Etcdctl("member list -w table")}},
				edit("Delete the flag; this restarts etcd once without it. Then add the other members again, one at a time.")...),
		})
	}
	if f := get("unsafe-no-fsync"); f.True() {
		say("--unsafe-no-fsync", report.High, f, f.Text()+" is set: writes that etcd acknowledged are lost when the machine stops", "Delete the flag.")
	}
	access(say, get, "client", "listen-client-urls", "client-cert-auth", "trusted-ca-file", "auto-tls")
	access(say, get, "peer", "listen-peer-urls", "peer-client-cert-auth", "peer-trusted-ca-file", "peer-auto-tls")
	if f := get("strict-reconfig-check"); isFalse(f) {
		say("--strict-reconfig-check", report.Medium, f, f.Text()+": member changes that lose the quorum are accepted", "Delete the flag; true is the default.")
	}
	if f := get("pre-vote"); isFalse(f) {
		say("--pre-vote", report.Medium, f, f.Text()+": a member that comes back forces an election", "Delete the flag; true is the default since 3.5.")
	}
	if dynamic {
		p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, "a flag of etcd holds a variable")
	}
}

func isFalse(f staticpod.Flag) bool {
	switch f.Value {
	case "\x00":
		return false
	case "0", "f", "F", "false", "False", "FALSE":
		return true
	}
	return false
}

// access judges who may talk to one of etcd's two ports.
func access(say func(string, report.Severity, staticpod.Flag, string, string), get func(string) staticpod.Flag, who, listen, auth, ca, auto string) {
	urls := get(listen)
	if urls.Value == "\x00" || urls.Dynamic {
		return // the default is http on localhost
	}
	list, _ := endpoint.List(urls.Value)
	var plain []string
	secure := false
	for _, u := range list {
		switch {
		case u.Unix() || u.Loopback() && u.Scheme == "http":
		case u.Scheme == "http":
			plain = append(plain, u.String())
		case !u.Loopback():
			secure = true
		}
	}
	if len(plain) > 0 {
		say("--"+listen, report.High, urls, fmt.Sprintf("etcd serves %ss without TLS on %s: whoever reaches the port reads and writes everything", who, strings.Join(plain, ", ")),
			fmt.Sprintf("Change the URLs to https and give etcd its %s certificate, key and CA; change them for every client and member in the same session.", who))
	}
	if f := get(auto); f.True() {
		say("--"+auto, report.High, f, fmt.Sprintf("%s is set: etcd makes up its own certificate and verifies no %s", f.Text(), who),
			fmt.Sprintf("Delete the flag and give etcd its %s certificate, key and CA.", who))
		return
	}
	if !secure {
		return
	}
	authFlag, caFlag := get(auth), get(ca)
	if authFlag.True() || authFlag.Dynamic {
		return
	}
	if authFlag.Value == "\x00" {
		authFlag.Value = ""
	}
	if caFlag.Value != "\x00" && caFlag.Value != "" {
		say("--"+auth, report.Medium, authFlag, fmt.Sprintf("--%s is not true; etcd asks %ss for a certificate only because --%s is set", auth, who, ca), fmt.Sprintf("Set --%s=true.", auth))
		return
	}
	say("--"+auth, report.High, authFlag, fmt.Sprintf("--%s is not true and there is no --%s: etcd lets every %s in without a certificate", auth, ca, who),
		fmt.Sprintf("Set --%s=true and --%s; see first that every %s has a certificate of that CA.", auth, ca, who))
}
