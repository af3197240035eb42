package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
)

type getFlags struct {
	storeFlags
	namespace string
	all       bool
	rev       int64
	deleted   bool
}

const (
	maxGetObject = 4 << 20
	maxGetRows   = 100000
)

func newGet(e *env, g *globals) *cobra.Command {
	f := &getFlags{}
	c := &cobra.Command{
		Use:   "get TYPE [NAME] INPUT",
		Short: "Take Kubernetes objects out of a snapshot or a data directory",
		Long: `Take Kubernetes objects out of an etcd database, as they are now, as they were at
a revision (--rev), or deleted ones that etcd still remembers (--deleted). TYPE
is what kubectl takes: pods, po, deployments, applications.argoproj.io.

Values of Secrets are never shown.

` + etcdExitHelp,
		Example: "  coldplane get pods snapshot.db -A\n  coldplane get cm kubeadm-config snapshot.db -n kube-system -o yaml\n  coldplane get deploy snapshot.db -n shop --deleted",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			name := ""
			if len(args) == 3 {
				name = args[1]
			}
			return runGet(c.Context(), e, g, f, args[0], name, args[len(args)-1])
		},
	}
	f.register(c, "text, wide, name, json, yaml")
	fs := c.Flags()
	fs.StringVarP(&f.namespace, "namespace", "n", "", "namespace (default: default)")
	fs.BoolVarP(&f.all, "all-namespaces", "A", false, "all namespaces")
	fs.Int64Var(&f.rev, "rev", 0, "state at this etcd revision (default: the newest)")
	fs.BoolVar(&f.deleted, "deleted", false, "objects that were deleted and are still remembered")
	return c
}

// A found is one object that get answers with.
type found struct {
	name    etcdstore.Name
	version etcdstore.Version  // of the value; zero when nothing is left of it
	gone    *etcdstore.Version // the tombstone of a deleted object
}

func runGet(ctx context.Context, e *env, g *globals, f *getFlags, typ, name, input string) error {
	if !slices.Contains([]string{"text", "wide", "name", "json", "yaml"}, f.output) {
		return usagef("formats are text, wide, name, json, yaml", "unknown output format %q", f.output)
	}
	if f.all && f.namespace != "" {
		return usagef("use one of them", "--namespace and --all-namespaces exclude each other")
	}
	s, err := openStores(ctx, e, g, &f.storeFlags, []string{input})
	if err != nil {
		return err
	}
	defer s.close()
	set, err := s.chosen()
	if err != nil {
		return err
	}
	t, candidates := set.FindType(typ)
	if t == "" {
		if len(candidates) > 0 {
			return usagef("name one of "+strings.Join(candidates, ", "), "%q fits several types", typ)
		}
		return &bundle.InputError{Path: input, What: fmt.Sprintf("the store has no objects of type %q", typ), Hint: "coldplane etcd top lists the types"}
	}
	ns := f.namespace
	if ns == "" && !f.all && namespaced(set, t) {
		ns = "default"
	}
	list, err := f.find(ctx, set, t, ns, name)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		if !g.quiet {
			fmt.Fprintln(e.err, "coldplane: nothing found")
		}
		return nil
	}
	return f.to.write(e.out, func(w io.Writer) error { return f.write(w, set, list) })
}

// namespaced tells by the keys whether objects of a type live in namespaces.
func namespaced(s *objects.Set, typ string) bool {
	for _, t := range s.Store.Types {
		if t.Type == typ {
			return slices.ContainsFunc(t.Namespaces, func(n etcdstore.NamespaceStats) bool { return n.Namespace != "" })
		}
	}
	return false
}

func (f *getFlags) find(ctx context.Context, set *objects.Set, typ, ns, name string) ([]found, error) {
	st := set.Store
	match := st.MatchType(typ, ns)
	if name != "" {
		inner := match
		match = func(key []byte) bool { return inner(key) && etcdstore.Classify(st.Prefix, key).Object == name }
	}
	at := func(v etcdstore.Version) etcdstore.Name { return etcdstore.Classify(st.Prefix, []byte(v.Key)) }
	var out []found
	if f.rev == 0 && !f.deleted {
		list, _ := st.Select(maxGetRows, match)
		for _, v := range list {
			out = append(out, found{name: at(v), version: v})
		}
		return out, nil
	}
	if f.rev > st.MaxRev {
		return nil, usagef(fmt.Sprintf("the newest revision is %d", st.MaxRev), "revision %d is in the future of this file", f.rev)
	}
	if f.rev > 0 && f.rev < st.Compacted() {
		return nil, usagef(fmt.Sprintf("the oldest state that can be told is that of revision %d", st.Compacted()), "revision %d is compacted", f.rev)
	}
	revs, _, err := st.Revisions(ctx, 1<<20, match)
	if err != nil {
		return nil, err
	}
	last := map[string]*found{}
	for _, v := range revs {
		if f.rev > 0 && v.Rev.Main > f.rev {
			break
		}
		x := last[v.Key]
		if x == nil {
			x = &found{name: at(v)}
			last[v.Key] = x
		}
		if v.Tombstone {
			tomb := v
			x.gone = &tomb
		} else {
			x.version, x.gone = v, nil
		}
	}
	for _, x := range last {
		if (x.gone != nil) == f.deleted {
			out = append(out, *x)
		}
	}
	sortBy(out, func(a, b found) bool {
		return a.name.Namespace < b.name.Namespace || a.name.Namespace == b.name.Namespace && a.name.Object < b.name.Object
	})
	return out, nil
}

func (f *getFlags) write(w io.Writer, set *objects.Set, list []found) error {
	switch f.output {
	case "name":
		for _, x := range list {
			fmt.Fprintf(w, "%s/%s\n", visible(etcdstore.Resource(x.name.Type)), visible(x.name.Object))
		}
		return nil
	case "json", "yaml":
		return f.objects(w, set, list)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := []any{"NAMESPACE", "NAME", "REVISION", "CREATED", "BYTES"}
	if f.output == "wide" {
		head = append(head, "UID", "LAST WRITER", "KEY")
	}
	if f.deleted {
		head = append(head, "DELETED AT REVISION", "DELETED AT")
	}
	row(tw, head...)
	clock := set.Clock()
	for _, x := range list {
		var h objects.Head
		size := ""
		if x.version.Len > 0 {
			if r, err := set.Store.Load(x.version, maxGetObject); err == nil {
				h, _ = objects.ReadHead(r.Value)
				size = fmt.Sprint(len(r.Value))
			}
		}
		created := ""
		if !h.Created.IsZero() {
			created = h.Created.Format(time.RFC3339)
		}
		cells := []any{x.name.Namespace, x.name.Object, x.version.Rev.Main, created, size}
		if f.output == "wide" {
			writer := ""
			if n := len(h.Managers); n > 0 {
				writer = h.Managers[n-1].Name
			}
			cells = append(cells, h.UID, writer, x.version.Key)
		}
		if x.gone != nil {
			when := ""
			if t, ok := clock.At(x.gone.Rev.Main); ok {
				when = "about " + t.UTC().Format(time.RFC3339)
			}
			cells = append(cells, x.gone.Rev.Main, when)
		}
		row(tw, cells...)
	}
	return tw.Flush()
}

// objects writes whole objects: one, or a List.
func (f *getFlags) objects(w io.Writer, set *objects.Set, list []found) error {
	dec, err := objects.NewDecoder()
	if err != nil {
		return err
	}
	var items []any
	for _, x := range list {
		if x.version.Len == 0 {
			items = append(items, map[string]any{"metadata": map[string]any{"name": x.name.Object, "namespace": x.name.Namespace}, "coldplane": "deleted, and its last value is compacted"})
			continue
		}
		r, err := set.Store.Load(x.version, maxGetObject)
		if err == nil {
			var o map[string]any
			if o, err = dec.Object(r.Value); err == nil {
				items = append(items, o)
				continue
			}
		}
		items = append(items, map[string]any{"metadata": map[string]any{"name": x.name.Object, "namespace": x.name.Namespace}, "coldplane": "not readable: " + err.Error()})
	}
	var v any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 {
		v = items[0]
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if f.output == "yaml" {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return err
		}
	} else {
		b = append(b, '\n')
	}
	_, err = w.Write(b)
	return err
}

// sortBy sorts a slice by a less function, keeping equal elements in order.
func sortBy[T any](s []T, less func(a, b T) bool) {
	slices.SortStableFunc(s, func(a, b T) int {
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
}
