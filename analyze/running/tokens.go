package running

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coldplane/analyze/kubeadm"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/releases"
	"coldplane/analyze/staticpod"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
)

// Kinds of tokens.
const (
	FlagToken   = "flag"
	GateToken   = "feature gate"
	PluginToken = "admission plugin"
)

// Sources of tokens.
const (
	InManifest      = "manifest"
	InKubeletFlags  = "kubelet flags"
	InKubeletConfig = "kubelet configuration"
	InKubeadm       = "kubeadm-config"
	InKubeletMap    = "kubelet-config ConfigMap"
)

// A Token is a flag, feature gate or admission plugin somebody gives a
// component, and where.
type Token struct {
	Component string
	Kind      string
	Name      string // without dashes
	Value     string // of a flag; "true" or "false" of a gate
	Source    string
	Text      string // as it stands there
	Ref       bundle.Ref
}

// Label is the token as a message names it.
func (t Token) Label() string {
	switch t.Kind {
	case FlagToken:
		return t.Component + " --" + t.Name
	case GateToken:
		return t.Component + " feature gate " + t.Name
	}
	return t.Component + " admission plugin " + t.Name
}

// expand adds the gates and plugins that a flag's value names.
func expand(t Token) []Token {
	out := []Token{t}
	if t.Component == staticpod.Etcd {
		return out
	}
	switch t.Name {
	case "feature-gates":
		for p := range strings.SplitSeq(t.Value, ",") {
			name, val, ok := strings.Cut(strings.TrimSpace(p), "=")
			if !ok || name == "" || strings.Contains(name, "$(") {
				continue
			}
			// Since 1.31 a gate may be given for one component: kube:Name=true.
			if i := strings.LastIndexByte(name, ':'); i >= 0 {
				name = name[i+1:]
			}
			g := t
			g.Kind, g.Name, g.Value = GateToken, name, strings.TrimSpace(val)
			out = append(out, g)
		}
	case "enable-admission-plugins", "disable-admission-plugins", "admission-control":
		for p := range strings.SplitSeq(t.Value, ",") {
			if p = strings.TrimSpace(p); p != "" && !strings.Contains(p, "$(") {
				g := t
				g.Kind, g.Name, g.Value = PluginToken, p, ""
				out = append(out, g)
			}
		}
	}
	return out
}

// PodTokens are the tokens of a component's manifest.
func PodTokens(p *staticpod.Pod) []Token {
	var out []Token
	for _, f := range p.Flags {
		if f.Container != p.Main() {
			continue
		}
		out = append(out, expand(Token{Component: p.Component(), Kind: FlagToken, Name: f.Name, Value: f.Value, Source: InManifest, Text: f.Text(), Ref: f.Ref})...)
	}
	return out
}

// KubeletTokens are the tokens of the kubelet's command line and configuration.
func KubeletTokens(flags kubelet.Flags, cfg *kubelet.Config) []Token {
	var out []Token
	for _, f := range flags {
		text := "--" + f.Name
		if f.Value != "" {
			text += "=" + f.Value
		}
		out = append(out, expand(Token{Component: Kubelet, Kind: FlagToken, Name: f.Name, Value: f.Value, Source: InKubeletFlags, Text: text, Ref: f.Ref})...)
	}
	if cfg != nil {
		out = append(out, gates(Kubelet, InKubeletConfig, cfg.FeatureGates, cfg.Doc)...)
	}
	return out
}

// MapTokens are the feature gates of the kubelet-config ConfigMap.
func MapTokens(d *yamlfile.Doc) []Token {
	var c kubelet.KubeletConfiguration
	if d == nil || d.Decode(&c) != nil {
		return nil
	}
	return gates(Kubelet, InKubeletMap, c.FeatureGates, d)
}

func gates(component, source string, m map[string]bool, d *yamlfile.Doc) []Token {
	var out []Token
	for name, on := range m {
		out = append(out, Token{Component: component, Kind: GateToken, Name: name, Value: strconv.FormatBool(on), Source: source,
			Text: fmt.Sprintf("featureGates: %s: %t", name, on), Ref: d.Ref("/featureGates/" + name)})
	}
	slices.SortFunc(out, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ConfigTokens are the extraArgs of a ClusterConfiguration.
func ConfigTokens(c *kubeadm.Config) []Token {
	var out []Token
	add := func(component, base string, args kubeadm.Args) {
		for _, a := range args {
			out = append(out, expand(Token{Component: component, Kind: FlagToken, Name: a.Name, Value: a.Value, Source: InKubeadm,
				Text: fmt.Sprintf("%s extraArgs %s: %s", component, a.Name, a.Value), Ref: c.Ref(base + "/extraArgs" + a.Pointer)})...)
		}
	}
	add(staticpod.APIServer, "/apiServer", c.APIServer.ExtraArgs)
	add(staticpod.ControllerManager, "/controllerManager", c.ControllerManager.ExtraArgs)
	add(staticpod.Scheduler, "/scheduler", c.Scheduler.ExtraArgs)
	if l := c.Etcd.Local; l != nil {
		add(staticpod.Etcd, "/etcd/local", l.ExtraArgs)
	}
	return out
}

// A Refusal says why a release does not accept a token.
type Refusal struct {
	releases.Presence
	RemovedIn int    // first minor without it, 0 when not removed
	Locked    bool   // the gate is there, its value may not be changed
	Why       string // "was removed in 1.27", "is not known to 1.37", ...
	Hint      string // a flag it may have been meant to be
}

// Refused reports whether a component of a minor (1.N; etcd 3.N) refuses the
// token. known is false when the release is not in the tables.
func Refused(t Token, minor int) (r Refusal, refused, known bool) {
	series := "1."
	if t.Component == staticpod.Etcd {
		series = "3."
	}
	last := -1
	switch t.Kind {
	case FlagToken:
		r.Presence, last = releases.Flag(t.Component, t.Name, minor)
	case GateToken:
		var g releases.Gate
		r.Presence, g, last = releases.FeatureGate(t.Name, minor)
		if r.Presence == releases.Present && g.Locked {
			if on, err := strconv.ParseBool(t.Value); err == nil && on != g.Default {
				r.Locked = true
				r.Why = fmt.Sprintf("is locked to %t in %s%d", g.Default, series, minor)
				return r, true, true
			}
		}
	case PluginToken:
		r.Presence, last = releases.AdmissionPlugin(t.Name, minor)
	}
	switch r.Presence {
	case releases.NoTable:
		return r, false, false
	case releases.Present:
		return r, false, true
	case releases.Removed:
		r.RemovedIn = last + 1
		for r.RemovedIn > minor { // it was gone and came back later
			r.RemovedIn = minor
		}
		r.Why = fmt.Sprintf("was removed in %s%d", series, r.RemovedIn)
	case releases.NotYet:
		r.Why = fmt.Sprintf("is not known to %s%d yet", series, minor)
	default:
		r.Why = fmt.Sprintf("is not known to %s%d", series, minor)
		if t.Kind == FlagToken {
			r.Hint = releases.Nearest(t.Component, t.Name, minor)
		}
	}
	return r, true, true
}
