package host

import (
	"regexp"
	"strings"

	"coldplane/analyze"
	"coldplane/bundle"
)

// ContainerdConfig is the part of containerd's configuration that is asked for.
type ContainerdConfig struct {
	// SystemdCgroup is the value in the options of the runtime runc; nil when
	// the file does not set it.
	SystemdCgroup *bool
	Ref           bundle.Ref // of the line, or the file
	Excerpt       string
	Version       string // of the configuration: "2", "3"
}

var (
	tomlTable = regexp.MustCompile(`^\s*\[([^\[\]]+)\]`)
	tomlValue = regexp.MustCompile(`^\s*"?([A-Za-z_]+)"?\s*=\s*"?([^"#]*)"?`)
)

// Containerd is /etc/containerd/config.toml. The options of runc stand under
// plugins."io.containerd.grpc.v1.cri" (version 2) or
// plugins."io.containerd.cri.v1.runtime" (version 3).
var Containerd = &analyze.Fact[*ContainerdConfig]{
	Name:  "host.containerd",
	Kinds: []bundle.Kind{bundle.KindFiles},
	Compute: func(c *analyze.Ctx) (*ContainerdConfig, error) {
		f, err := c.Node().Stat("/etc/containerd/config.toml")
		if err != nil {
			return nil, err
		}
		lines := linesOf(f)
		if lines == nil {
			return nil, &bundle.MissingError{Evidence: f.Origin, Reason: bundle.Unreadable, Ref: f.Ref()}
		}
		out := &ContainerdConfig{Ref: f.Ref()}
		table := ""
		for _, l := range lines {
			if strings.HasPrefix(strings.TrimSpace(l.text), "#") {
				continue
			}
			if m := tomlTable.FindStringSubmatch(l.text); m != nil {
				table = m[1]
				continue
			}
			m := tomlValue.FindStringSubmatch(l.text)
			if m == nil {
				continue
			}
			switch {
			case table == "" && m[1] == "version":
				out.Version = strings.TrimSpace(m[2])
			case m[1] == "SystemdCgroup" && strings.Contains(table, "runtimes") && strings.HasSuffix(strings.TrimSpace(table), ".options"):
				yes := strings.TrimSpace(m[2]) == "true"
				out.SystemdCgroup, out.Ref, out.Excerpt = &yes, l.ref, strings.TrimSpace(l.text)
			}
		}
		return out, nil
	},
}
