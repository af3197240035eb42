//go:build linux

package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"coldplane/bundle/archive"
	"coldplane/bundle/redact"
)

// cri asks the runtime over its socket and writes the answers in crictl's shapes,
// with the fields that are known to be harmless.
func (r *run) cri(ctx context.Context, s *sink) error {
	var last error
	for _, sock := range r.paths.sockets {
		fi, err := r.root.stat(sock)
		if err != nil || fi.Mode()&fs.ModeSocket == 0 {
			continue
		}
		conn, err := grpc.NewClient("unix://"+sock, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(32<<20)))
		if err != nil {
			last = err
			continue
		}
		err = r.criFrom(ctx, s, runtimev1.NewRuntimeServiceClient(conn), runtimev1.NewImageServiceClient(conn))
		conn.Close()
		if err == nil {
			return nil
		}
		last = fmt.Errorf("%s: %w", sock, err)
	}
	if last == nil {
		return errNothing
	}
	return last
}

func call[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	c, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return f(c)
}

func (r *run) criFrom(ctx context.Context, s *sink, rs runtimev1.RuntimeServiceClient, is runtimev1.ImageServiceClient) error {
	v, err := call(ctx, func(c context.Context) (*runtimev1.VersionResponse, error) {
		return rs.Version(c, &runtimev1.VersionRequest{})
	})
	if err != nil {
		return err
	}
	s.protoJSON("crictl/version.json", v)
	if st, err := call(ctx, func(c context.Context) (*runtimev1.StatusResponse, error) {
		return rs.Status(c, &runtimev1.StatusRequest{Verbose: true})
	}); err != nil {
		s.fail("status", err)
	} else {
		s.json("crictl/info.json", runtimeInfo(st))
	}
	ps, err := call(ctx, func(c context.Context) (*runtimev1.ListContainersResponse, error) {
		return rs.ListContainers(c, &runtimev1.ListContainersRequest{})
	})
	if err != nil {
		s.fail("containers", err)
	} else {
		for _, c := range ps.GetContainers() {
			c.Annotations = keptAnnotations(c.Annotations)
		}
		s.protoJSON("crictl/ps.json", ps)
	}
	if pods, err := call(ctx, func(c context.Context) (*runtimev1.ListPodSandboxResponse, error) {
		return rs.ListPodSandbox(c, &runtimev1.ListPodSandboxRequest{})
	}); err != nil {
		s.fail("sandboxes", err)
	} else {
		for _, p := range pods.GetItems() {
			p.Annotations = keptAnnotations(p.Annotations)
		}
		s.protoJSON("crictl/pods.json", pods)
	}
	if imgs, err := call(ctx, func(c context.Context) (*runtimev1.ListImagesResponse, error) {
		return is.ListImages(c, &runtimev1.ListImagesRequest{})
	}); err != nil {
		s.fail("images", err)
	} else {
		s.protoJSON("crictl/images.json", imgs)
	}
	n := 0
	for _, c := range ps.GetContainers() {
		if c.Labels["io.kubernetes.pod.namespace"] != "kube-system" {
			continue
		}
		if n++; n > 200 || ctx.Err() != nil {
			s.cap("containers")
			break
		}
		st, err := call(ctx, func(x context.Context) (*runtimev1.ContainerStatusResponse, error) {
			return rs.ContainerStatus(x, &runtimev1.ContainerStatusRequest{ContainerId: c.Id, Verbose: true})
		})
		if err != nil {
			s.fail("container "+c.Id, err)
			continue
		}
		s.json("crictl/inspect/"+archive.SafePath(c.Id)+".json", inspection(st))
	}
	return ctx.Err()
}

func keptAnnotations(a map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range a {
		if strings.HasPrefix(k, "io.kubernetes.container.") || strings.HasPrefix(k, "io.kubernetes.pod.") || strings.HasPrefix(k, "kubernetes.io/config.") {
			out[k] = redact.String(v)
		}
	}
	return out
}

func (s *sink) protoJSON(p string, m proto.Message) {
	b, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		s.fail(p, err)
		return
	}
	// protojson varies its spaces on purpose; a fixed form is wanted.
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		s.fail(p, err)
		return
	}
	s.json(p, v)
}

type runtimeCondition struct {
	Type    string `json:"type"`
	Status  bool   `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// runtimeInfo is crictl info with its conditions and the control-group driver of
// each runtime; the rest of the runtime's configuration may hold registry
// credentials.
func runtimeInfo(st *runtimev1.StatusResponse) any {
	type options struct {
		SystemdCgroup *bool `json:"SystemdCgroup,omitempty"`
	}
	type rt struct {
		RuntimeType string  `json:"runtimeType,omitempty"`
		Options     options `json:"options"`
	}
	type containerd struct {
		DefaultRuntimeName string        `json:"defaultRuntimeName,omitempty"`
		Runtimes           map[string]rt `json:"runtimes,omitempty"`
		Snapshotter        string        `json:"snapshotter,omitempty"`
	}
	var cfg struct {
		Containerd   containerd `json:"containerd"`
		SandboxImage string     `json:"sandboxImage,omitempty"`
	}
	_ = json.Unmarshal([]byte(st.GetInfo()["config"]), &cfg) // other runtimes have none
	var conds []runtimeCondition
	for _, c := range st.GetStatus().GetConditions() {
		conds = append(conds, runtimeCondition{c.Type, c.Status, c.Reason, redact.String(c.Message)})
	}
	return map[string]any{"config": cfg, "status": map[string]any{"conditions": conds}}
}

type crictlMount struct {
	ContainerPath string `json:"containerPath"`
	HostPath      string `json:"hostPath"`
	ReadOnly      bool   `json:"readonly"`
}

// inspection is crictl inspect with allow-listed fields.
func inspection(r *runtimev1.ContainerStatusResponse) any {
	st := r.GetStatus()
	at := func(ns int64) string {
		if ns <= 0 {
			return "1970-01-01T00:00:00Z"
		}
		return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
	}
	var info struct {
		PID       int    `json:"pid"`
		SandboxID string `json:"sandboxID"`
		Config    struct {
			Command []string `json:"command"`
			Args    []string `json:"args"`
			Envs    []struct {
				Key string `json:"key"`
			} `json:"envs"`
		} `json:"config"`
		RuntimeSpec struct {
			Process struct {
				Args []string `json:"args"`
			} `json:"process"`
		} `json:"runtimeSpec"`
	}
	_ = json.Unmarshal([]byte(r.GetInfo()["info"]), &info)
	mounts := []crictlMount{}
	for _, m := range st.GetMounts() {
		mounts = append(mounts, crictlMount{m.ContainerPath, m.HostPath, m.Readonly})
	}
	var envs []map[string]string
	for _, e := range info.Config.Envs {
		envs = append(envs, map[string]string{"key": e.Key})
	}
	return map[string]any{
		"status": map[string]any{
			"id": st.GetId(), "metadata": map[string]any{"name": st.GetMetadata().GetName(), "attempt": st.GetMetadata().GetAttempt()},
			"state": st.GetState().String(), "createdAt": at(st.GetCreatedAt()), "startedAt": at(st.GetStartedAt()), "finishedAt": at(st.GetFinishedAt()),
			"exitCode": st.GetExitCode(), "image": map[string]any{"image": st.GetImage().GetImage(), "userSpecifiedImage": st.GetImage().GetUserSpecifiedImage()},
			"imageRef": st.GetImageRef(), "reason": st.GetReason(), "message": redact.String(st.GetMessage()), "logPath": st.GetLogPath(),
			"labels": st.GetLabels(), "annotations": keptAnnotations(st.GetAnnotations()), "mounts": mounts,
		},
		"info": map[string]any{
			"pid": info.PID, "sandboxID": info.SandboxID,
			"config":      map[string]any{"command": redact.Args(info.Config.Command), "args": redact.Args(info.Config.Args), "envs": envs},
			"runtimeSpec": map[string]any{"process": map[string]any{"args": redact.Args(info.RuntimeSpec.Process.Args)}},
		},
	}
}
