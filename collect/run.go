//go:build linux

package collect

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coldplane/bundle/archive"
	"coldplane/bundle/redact"
)

// run is one collection.
type run struct {
	o     Options
	root  *nodeRoot
	scan  *redact.Scanner
	node  nodeFacts
	paths wiring
	keys  []keyRecord
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// NodeName finds out what a node calls itself without collecting anything.
func NodeName(root string) (string, error) {
	r, err := openRoot(root)
	if err != nil {
		return "", err
	}
	defer r.close()
	return nodeName(r), nil
}

// Plan lists what a collection would look at, without reading contents.
func Plan(ctx context.Context, o Options) ([]PlanItem, error) {
	o = o.withDefaults()
	root, err := openRoot(o.Root)
	if err != nil {
		return nil, err
	}
	defer root.close()
	r := &run{o: o, root: root}
	r.paths = findWiring(root)
	return r.plan(ctx), nil
}

// Run collects into w. An error that wraps redact.ErrLeak, or any write error,
// means that nothing of w may be used. When ctx is cancelled the bundle is closed
// with what is whole, and its status is interrupted.
func Run(ctx context.Context, w io.Writer, o Options) (Report, error) {
	o = o.withDefaults()
	if o.Etcd == EtcdFull && len(o.Recipients) == 0 {
		return Report{}, errors.New("etcd mode full needs a recipient: the bundle would hold every Secret")
	}
	root, err := openRoot(o.Root)
	if err != nil {
		return Report{}, err
	}
	defer root.close()
	r := &run{o: o, root: root, scan: redact.NewScanner()}
	r.node = readNode(root)
	if o.Node == "" {
		o.Node = nodeName(root)
		r.o.Node = o.Node
	}
	r.paths = findWiring(root)
	h := r.header()
	ao := archive.Options{Compression: o.Compression, Recipients: o.Recipients}
	if o.Etcd != EtcdFull {
		ao.Scanner = r.scan
	}
	aw, err := archive.NewWriter(w, h, ao)
	if err != nil {
		return Report{}, err
	}
	rep := Report{Node: o.Node}
	budget, cancel := context.WithTimeout(ctx, o.Budget)
	defer cancel()
	sources := r.sources()
	for i := range sources {
		s := &sources[i]
		o.Progress(Event{Source: s.name, Index: i + 1, Total: len(sources)})
		res, err := r.one(ctx, budget, s, aw)
		if err != nil {
			aw.Abort()
			return rep, err
		}
		aw.Result(res)
		rep.Results = append(rep.Results, res)
		rep.Bytes += res.Stored
		o.Progress(Event{Source: s.name, Index: i + 1, Total: len(sources), Result: &res})
		if ctx.Err() != nil {
			break
		}
	}
	if err := r.writeKeys(aw); err != nil {
		aw.Abort()
		return rep, err
	}
	rep.Status = aw.Status()
	if ctx.Err() != nil {
		rep.Status = archive.Interrupted
	}
	rep.Fingerprint, err = aw.Close(rep.Status, readClock(o.Now, root))
	return rep, err
}

// one runs a source under its deadline.
func (r *run) one(ctx, budget context.Context, s *source, w *archive.Writer) (archive.Result, error) {
	k := &sink{run: r, src: s, absent: map[string]bool{}, dirs: map[string]bool{}, capsHit: map[string]bool{},
		spool: &spoolFile{dir: r.o.SpoolDir, room: r.o.Room}}
	k.res = archive.Result{Source: s.name, Start: r.o.Now().UTC(), Outcome: archive.OK}
	if why := r.skipped(s); why != "" {
		k.res.Outcome, k.res.Error, k.res.End = archive.Skipped, why, k.res.Start
		return k.res, nil
	}
	began := time.Now() //nolint:forbidigo // monotonic time, never shown as a clock
	d := s.deadline
	if d == 0 {
		d = r.o.Deadline
	}
	sctx, cancel := context.WithTimeout(budget, d)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("a defect: %v", p)
			}
		}()
		done <- s.run(sctx, k)
	}()
	var err error
	select {
	case err = <-done:
	case <-sctx.Done():
		// A source that minds its context ends now; one that hangs in a system
		// call never does and is left behind.
		select {
		case err = <-done:
			if err == nil {
				err = sctx.Err()
			}
		case <-time.After(2 * time.Second):
			err = fmt.Errorf("left behind: %w", sctx.Err())
		}
	}
	if ferr := k.flush(w); ferr != nil {
		return k.res, ferr
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	res := k.res
	r.keys = append(r.keys, k.keys...)
	res.End = r.o.Now().UTC()
	res.Seconds = time.Since(began).Seconds()
	for p := range k.absent {
		res.Absent = append(res.Absent, p)
	}
	slices.Sort(res.Absent)
	switch {
	case ctx.Err() != nil:
		res.Outcome = archive.Stopped
	case errors.Is(err, context.DeadlineExceeded):
		res.Outcome, res.Error = archive.TimedOut, clean(err.Error())
	case errors.Is(err, errNothing):
		res.Outcome = archive.Missing
	case err != nil:
		res.Outcome, res.Error = archive.Failure, clean(err.Error())
		if res.Entries > 0 {
			res.Outcome = archive.Partial
		}
	case k.failed > 0 || len(res.Caps) > 0:
		res.Outcome = archive.Partial
	}
	return res, nil
}

// errNothing says that there is nothing of a source's kind on this node.
var errNothing = errors.New("nothing of the kind on this node")

func (r *run) skipped(s *source) string {
	match := func(list []string) bool { return slices.Contains(list, s.name) }
	switch {
	case len(r.o.Only) > 0 && !match(r.o.Only):
		return "not asked for"
	case match(r.o.Skip):
		return "left out by --skip"
	case s.live && r.o.Root != "/":
		return "needs the running system; this is a mounted disk"
	}
	return ""
}

func (r *run) header() archive.Header {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	h := archive.Header{
		Tool: r.o.Tool, BundleID: hex.EncodeToString(id), Node: r.o.Node, CollectedAt: r.o.Now().UTC(),
		Clock: readClock(r.o.Now, r.root), Sensitivity: "redacted", CaseID: clean(r.o.CaseID),
		Policy:  archive.Policy{Redaction: string(r.o.Level), Etcd: string(r.o.Etcd), Since: r.o.Since.String()},
		Mounted: r.o.Root != "/", UID: effectiveUID(), Kernel: r.node.Kernel, Arch: r.node.Arch,
	}
	for _, l := range r.o.Labels {
		h.Labels = append(h.Labels, clean(l))
	}
	if r.o.Etcd == EtcdFull {
		h.Sensitivity = "full"
	}
	return h
}

// writeKeys stores the index of private keys.
func (r *run) writeKeys(w *archive.Writer) error {
	if w.Has(archive.KeysPath) {
		return nil
	}
	slices.SortFunc(r.keys, func(a, b keyRecord) int {
		return strings.Compare(a.Path+"\x00"+a.User, b.Path+"\x00"+b.User)
	})
	r.keys = slices.CompactFunc(r.keys, func(a, b keyRecord) bool { return a.Path == b.Path && a.User == b.User })
	if r.keys == nil {
		r.keys = []keyRecord{}
	}
	b, err := marshal(r.keys)
	if err != nil {
		return err
	}
	return w.AddBytes(archive.Entry{Path: archive.KeysPath, Treatment: archive.Derived}, b)
}

// sources in the order they run: what changes fastest first, the store last.
func (r *run) sources() []source {
	return []source{
		{name: "host", what: "processes, sockets, mounts, devices, clock", live: true, run: r.host},
		{name: "probe", what: "reachability of the endpoint, API servers and etcd members", live: true, deadline: time.Minute, run: r.probe},
		{name: "cri", what: "the container runtime's containers, sandboxes and images", live: true, run: r.cri},
		{name: "etcd-status", what: "etcd's members, status and alarms", live: true, run: r.etcdStatus},
		{name: "manifests", what: "static-pod manifests", run: r.manifests},
		{name: "pki", what: "certificates; keys as fingerprints", run: r.pki},
		{name: "kubeconfigs", what: "kubeconfigs without their keys", run: r.kubeconfigs},
		{name: "kubelet", what: "the kubelet's configuration, flags and unit", run: r.kubelet},
		{name: "runtime", what: "the runtime's configuration", run: r.runtime},
		{name: "system", what: "os-release, hostname, hosts, resolv.conf", run: r.system},
		{name: "referenced", what: "files that flags and volumes name", run: r.referenced},
		{name: "datadir", what: "listings of etcd's data directory and kubeadm's leftovers", run: r.listings},
		{name: "journal", what: "journals of kubelet, runtime and kernel", deadline: 2 * time.Minute, run: r.journal},
		{name: "logs", what: "logs of the control plane's containers", deadline: 3 * time.Minute, run: r.logs},
		{name: "etcd", what: "the etcd database, scrubbed, and facts about it", deadline: r.etcdDeadline(), run: r.etcd},
	}
}

func (r *run) etcdDeadline() time.Duration { return max(r.o.Budget*8/10, time.Minute) }
