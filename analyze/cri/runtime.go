package cri

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// pods reads crictl pods.
func (r *reader) pods() {
	var in struct {
		Items []struct {
			ID          string            `json:"id"`
			Metadata    metadata          `json:"metadata"`
			State       string            `json:"state"`
			CreatedAt   instant           `json:"createdAt"`
			Annotations map[string]string `json:"annotations"`
		} `json:"items"`
	}
	f, ok := r.load("/crictl/pods.json", &in)
	if !ok {
		return
	}
	r.view.Sandboxes = []*Sandbox{}
	for i, s := range in.Items {
		seen, _ := time.Parse(time.RFC3339Nano, s.Annotations["kubernetes.io/config.seen"])
		r.view.Sandboxes = append(r.view.Sandboxes, &Sandbox{
			ID: s.ID, Ready: s.State == "SANDBOX_READY", Pod: s.Metadata.Name, Namespace: s.Metadata.Namespace, PodUID: s.Metadata.UID,
			Attempt: s.Metadata.attempt(), CreatedAt: s.CreatedAt.Time, ConfigHash: s.Annotations["kubernetes.io/config.hash"],
			ConfigSource: s.Annotations["kubernetes.io/config.source"], ConfigSeen: seen.UTC(), Ref: f.Ref().At(0, fmt.Sprintf("/items/%d", i)),
		})
	}
}

// info reads crictl info. Its config part is a runtime's own; containerd has
// the control-group driver in the options of its default runtime.
func (r *reader) info() {
	var in struct {
		Status struct {
			Conditions []struct {
				Type    string `json:"type"`
				Status  bool   `json:"status"`
				Reason  string `json:"reason"`
				Message string `json:"message"`
			} `json:"conditions"`
		} `json:"status"`
		Config struct {
			SystemdCgroup *bool `json:"systemdCgroup"`
			Containerd    struct {
				DefaultRuntimeName string `json:"defaultRuntimeName"`
				Runtimes           map[string]struct {
					Options json.RawMessage `json:"options"`
				} `json:"runtimes"`
			} `json:"containerd"`
		} `json:"config"`
	}
	f, ok := r.load("/crictl/info.json", &in)
	if !ok {
		return
	}
	r.view.InfoRef = f.Ref()
	for i, c := range in.Status.Conditions {
		r.view.Conditions[c.Type] = Condition{c.Status, c.Reason, c.Message, f.Ref().At(0, fmt.Sprintf("/status/conditions/%d", i))}
	}
	rt := in.Config.Containerd
	if o := rt.Runtimes[rt.DefaultRuntimeName].Options; len(o) > 0 {
		var opts struct {
			SystemdCgroup *bool `json:"SystemdCgroup"`
		}
		if json.Unmarshal(o, &opts) == nil && opts.SystemdCgroup != nil {
			r.view.SystemdCgroup = opts.SystemdCgroup
			r.view.InfoRef = f.Ref().At(0, "/config/containerd/runtimes/"+rt.DefaultRuntimeName+"/options/SystemdCgroup")
		}
	}
}

// images reads crictl images.
func (r *reader) images() {
	var in struct {
		Images []struct {
			ID       string   `json:"id"`
			RepoTags []string `json:"repoTags"`
			Size     number   `json:"size"`
		} `json:"images"`
	}
	f, ok := r.load("/crictl/images.json", &in)
	if !ok {
		return
	}
	r.view.Images = []*Image{}
	for i, m := range in.Images {
		r.view.Images = append(r.view.Images, &Image{m.ID, m.RepoTags, int64(m.Size), f.Ref().At(0, fmt.Sprintf("/images/%d", i))})
	}
}

// version reads crictl version, JSON or text.
func (r *reader) version() {
	var in struct {
		RuntimeName    string `json:"runtimeName"`
		RuntimeVersion string `json:"runtimeVersion"`
	}
	if _, ok := r.load("/crictl/version.json", &in); ok {
		r.view.Runtime, r.view.Version = in.RuntimeName, in.RuntimeVersion
		return
	}
	f, err := r.node.Stat("/crictl/version.txt")
	if err != nil {
		return
	}
	b, err := f.Bytes(1 << 16)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		key, val, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "RuntimeName":
			r.view.Runtime = strings.TrimSpace(val)
		case "RuntimeVersion":
			r.view.Version = strings.TrimSpace(val)
		}
	}
}
