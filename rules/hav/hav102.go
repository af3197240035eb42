package hav

import (
	"fmt"
	"regexp"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV102", Name: "endpoint-health-check-blind", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The load balancer or virtual address cannot see whether the API is healthy",
		Why:   "A balancer that only opens a TCP connection, or an address that moves only when its host dies, goes on sending clients to an API server that accepts connections and answers nothing.",
		Fix:   "haproxy: option httpchk GET /readyz, and check check-ssl verify none on every server line. keepalived: a vrrp_script that asks https://localhost:6443/readyz, named in track_script. kube-vip: leader election on.",
		Links: []string{"https://github.com/kubernetes/kubeadm/blob/main/docs/ha-considerations.md"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{staticpod.Manifests},
	Run:   blindCheck,
})

var (
	haSection  = regexp.MustCompile(`^(global|defaults|frontend|backend|listen|userlist|peers|resolvers)\b\s*(\S*)`)
	haServer   = regexp.MustCompile(`^\s+server\s+(\S+)\s+\S+:(\d+)(.*)`)
	healthPath = regexp.MustCompile(`/(healthz|readyz|livez)`)
)

func blindCheck(p *analyze.Pass) error {
	looked := false
	for _, path := range []string{"/etc/haproxy/haproxy.cfg", "/usr/local/etc/haproxy/haproxy.cfg"} {
		if f, err := p.Node().Stat(path); err == nil {
			looked = haproxy(p, f) || looked
		}
	}
	if f, err := p.Node().Stat("/etc/keepalived/keepalived.conf"); err == nil {
		looked = keepalived(p, f) || looked
	}
	if m, err := staticpod.Manifests.Try(p, p.Node()); err == nil {
		for _, pod := range m.Pods() {
			if strings.HasPrefix(pod.Name, "kube-vip") {
				looked = true
				kubeVIP(p, pod)
			}
		}
	}
	if !looked {
		p.Unknown(bundle.KindFiles, p.Node(), bundle.NotCollected, "no haproxy, keepalived or kube-vip on this node; a balancer elsewhere cannot be seen")
	}
	return nil
}

func lines(f *bundle.File) []string {
	b, err := f.Bytes(1 << 20)
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
}

// haproxy reads backends that lead to API servers.
func haproxy(p *analyze.Pass, f *bundle.File) bool {
	ls := lines(f)
	name, httpchk, defaultChk := "", false, false
	type server struct {
		line  int
		text  string
		check bool
	}
	var servers []server
	flush := func() {
		for _, s := range servers {
			if !s.check || !httpchk && !defaultChk {
				how := "its servers are not checked at all"
				if s.check {
					how = "its check only opens a TCP connection"
				}
				p.Report(analyze.Finding{Subject: "haproxy " + name, Severity: report.Medium, Message: fmt.Sprintf("haproxy sends API clients through %s, and %s", name, how),
					Evidence: []analyze.Evidence{analyze.See(f.Line(s.line), strings.TrimSpace(s.text))}})
				break
			}
		}
		servers, httpchk = nil, false
	}
	for i, l := range ls {
		if strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		if m := haSection.FindStringSubmatch(l); m != nil {
			flush()
			name = strings.TrimSpace(m[1] + " " + m[2])
			continue
		}
		switch {
		case strings.Contains(l, "option httpchk") || strings.Contains(l, "http-check"):
			httpchk = true
			if name == "defaults" {
				defaultChk = true
			}
		case haServer.MatchString(l):
			m := haServer.FindStringSubmatch(l)
			if m[2] == "6443" || strings.Contains(name, "kube") || strings.Contains(name, "api") {
				servers = append(servers, server{i + 1, l, regexp.MustCompile(`\bcheck\b`).MatchString(m[3])})
			}
		}
	}
	flush()
	return ls != nil
}

// keepalived reads whether the address follows the API's health.
func keepalived(p *analyze.Pass, f *bundle.File) bool {
	ls := lines(f)
	instance, tracked, asks := 0, false, false
	for i, l := range ls {
		t := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(t, "#") || strings.HasPrefix(t, "!"):
		case strings.HasPrefix(t, "vrrp_instance") && instance == 0:
			instance = i + 1
		case strings.HasPrefix(t, "track_script"):
			tracked = true
		case strings.HasPrefix(t, "script "):
			path := strings.Trim(strings.TrimSpace(strings.TrimPrefix(t, "script ")), `"`)
			if healthPath.MatchString(path) {
				asks = true
				break
			}
			cmd, _, _ := strings.Cut(path, " ")
			if strings.Contains(cmd, "/bin/") || !strings.HasPrefix(cmd, "/") {
				break // a program: what it asks stands in its arguments
			}
			sf, err := p.Node().Stat(cmd)
			if err != nil {
				asks = asks || !bundle.IsAbsent(err) // not collected: give it the benefit
				break
			}
			if b, err := sf.Bytes(1 << 20); err == nil && healthPath.Match(b) {
				asks = true
			}
		}
	}
	if instance == 0 || tracked && asks {
		return ls != nil
	}
	how := "has no track_script"
	if tracked {
		how = "tracks a script that does not ask /readyz, /livez or /healthz"
	}
	p.Report(analyze.Finding{Subject: "keepalived", Severity: report.Medium, Message: "keepalived " + how + ": the address stays on a host whose API server is dead",
		Evidence: []analyze.Evidence{analyze.See(f.Line(instance), strings.TrimSpace(ls[instance-1]))}})
	return true
}

// kubeVIP reads whether only the leader holds the address.
func kubeVIP(p *analyze.Pass, pod *staticpod.Pod) {
	env := map[string]staticpod.Env{}
	for _, e := range pod.Env {
		env[e.Name] = e
	}
	cp, ok := env["cp_enable"]
	if !ok || cp.Value != "true" || env["vip_leaderelection"].Value == "true" || env["bgp_enable"].Value == "true" {
		return
	}
	ref := cp.Ref
	if e, ok := env["vip_leaderelection"]; ok {
		ref = e.Ref
	}
	p.Report(analyze.Finding{Subject: "kube-vip", Severity: report.Medium, Message: "kube-vip holds the control-plane address without leader election",
		Evidence: []analyze.Evidence{analyze.See(ref, "vip_leaderelection is not true")}})
}
