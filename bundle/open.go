package bundle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"coldplane/bundle/archive"
)

// Options of Open.
type Options struct {
	Limits   Limits
	SpoolDir string // where large archive entries go; "" is the temp dir
	Digest   bool   // compute the SHA-256 of file inputs beside the analysis

	// Progress, when set, is told of each input before it is read. The number
	// of inputs is not known beforehand: a directory may hold many.
	Progress func(path string)

	// Identities open inputs that are encrypted with age.
	Identities []age.Identity
}

// An InputError says that an input cannot be used at all, and what to try.
type InputError struct {
	Path string
	What string
	Hint string
}

func (e *InputError) Error() string { return e.Path + ": " + e.What }

// Open opens inputs, recognises them by content and merges them into one set.
// An input that is nothing we know is an *InputError if it is the only one;
// beside others it becomes one of Set.Problems.
func Open(ctx context.Context, paths []string, o Options) (*Set, error) {
	o.Limits = o.Limits.withDefaults()
	if o.SpoolDir == "" {
		o.SpoolDir = os.TempDir()
	}
	s := &Set{Shared: &Node{}, spool: &spool{dir: o.SpoolDir, limit: o.Limits.Spool}}
	op := &opener{ctx: ctx, set: s, o: o}
	var bad []error
	for _, p := range paths {
		if err := op.input(p, true); err != nil {
			var ie *InputError
			if !errors.As(err, &ie) {
				s.Close()
				return nil, err
			}
			bad = append(bad, err)
		}
	}
	if len(s.Inputs) == 0 {
		s.Close()
		if len(bad) == 0 {
			return nil, &InputError{Path: strings.Join(paths, " "), What: "no input", Hint: "name a bundle, a node's root directory or an etcd snapshot"}
		}
		return nil, bad[0]
	}
	for _, err := range bad {
		var ie *InputError
		errors.As(err, &ie)
		s.Problems = append(s.Problems, &MissingError{Evidence: ie.Path, Reason: Unsupported, Detail: ie.What, Ref: Ref{Path: ie.Path}})
	}
	s.sortNodes()
	return s, nil
}

type opener struct {
	ctx context.Context
	set *Set
	o   Options
	mem int64
}

func (op *opener) newInput(p string, f Format) *Input {
	in := &Input{ID: fmt.Sprintf("b%d", len(op.set.Inputs)+1), Path: p, Format: f, State: "read"}
	op.set.Inputs = append(op.set.Inputs, in)
	return in
}

func (op *opener) input(p string, expand bool) error {
	if op.o.Progress != nil {
		op.o.Progress(p)
	}
	fi, err := os.Stat(p)
	if err != nil {
		hint := "check the path"
		if errors.Is(err, fs.ErrPermission) {
			hint = "run as a user who may read it"
		}
		return &InputError{p, cleanOSError(err), hint}
	}
	switch {
	case fi.IsDir():
		return op.dir(p, expand)
	case fi.Mode().IsRegular():
		return op.file(p, fi.Size())
	}
	return &InputError{p, "not a file or a directory (" + fi.Mode().Type().String() + ")", "name a regular file or a directory"}
}

func (op *opener) dir(p string, expand bool) error {
	root, err := os.OpenRoot(p)
	if err != nil {
		return &InputError{p, cleanOSError(err), "run as a user who may read it"}
	}
	t := dirTree{root}
	if _, err := t.readdir(""); err != nil {
		root.Close()
		return &InputError{p, cleanOSError(err), "run as a user who may read it"}
	}
	sh := recognizeAt(t, "")
	if sh.format == FormatUnknown && expand {
		if files := op.expand(p, t); len(files) > 0 {
			root.Close()
			var first error
			n := 0
			for _, f := range files {
				if err := op.input(f, false); err == nil {
					n++
				} else if first == nil {
					first = err
				}
			}
			if n > 0 {
				return nil
			}
			return first
		}
	}
	if err := foreign(p, sh.format); err != nil {
		root.Close()
		return err
	}
	if sh.format == FormatUnknown {
		es, _ := t.readdir("")
		root.Close()
		if len(es) == 0 {
			return &InputError{p, "an empty directory", "name a node's root (it holds etc/kubernetes or var/lib/etcd), a bundle or a snapshot"}
		}
		return &InputError{p, "not a node root: no etc/kubernetes, var/lib/kubelet, var/lib/etcd, member/snap or nodes/ in it",
			"name the directory that corresponds to the node's /"}
	}
	op.set.closers = append(op.set.closers, root)
	in := op.newInput(p, sh.format)
	op.build(in, t, sh, isLiveRoot(p))
	return nil
}

// expand lists the files of a directory that is no node root but may hold
// bundles and snapshots.
func (op *opener) expand(p string, t tree) []string {
	es, err := t.readdir("")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range es {
		if !e.mode.IsRegular() {
			continue
		}
		c, err := t.open(e.name)
		if err != nil {
			continue
		}
		switch sniff(c, c.Size()) {
		case fileZstd, fileGzip, fileTar, fileBolt, fileAge:
			out = append(out, filepath.Join(p, e.name))
		}
		c.Close()
	}
	return out
}

func isLiveRoot(p string) bool {
	a, err := filepath.Abs(p)
	return err == nil && a == string(filepath.Separator)
}

func foreign(p string, f Format) error {
	what := map[Format]string{
		FormatSOS:     "a sosreport",
		FormatSupport: "a troubleshoot support bundle",
		FormatGather:  "a must-gather",
		FormatDump:    "a kubectl cluster-info dump",
	}[f]
	if what == "" {
		return nil
	}
	return &InputError{p, what + ", which this version does not read", "give coldplane's own bundle, the node's root directory or an etcd snapshot"}
}

func (op *opener) file(p string, size int64) error {
	f, err := os.Open(p)
	if err != nil {
		return &InputError{p, cleanOSError(err), "run as a user who may read it"}
	}
	keep := false
	defer func() {
		if !keep {
			f.Close()
		}
	}()
	ff := sniff(f, size)
	switch ff {
	case fileEmpty:
		return &InputError{p, "an empty file (0 bytes)", "there is nothing to read in it; give the original, or the directory it came from"}
	case fileAge:
		if len(op.o.Identities) == 0 {
			return &InputError{p, "encrypted with age", "give the key: --identity FILE (or decrypt it first: age -d -i KEY FILE > bundle.tar.zst)"}
		}
		if keep, err = op.archive(p, f, ff, size); err != nil {
			return err
		}
	case fileText:
		return &InputError{p, "a text file", "give the directory that corresponds to the node's /, so that paths have a meaning"}
	case fileUnknown:
		return &InputError{p, "not a bundle, archive, etcd database or node root", "bundles are tar, tar.gz or tar.zst; databases are bbolt files"}
	case fileBolt:
		op.bolt(p, f, size)
		keep = true
	default:
		if keep, err = op.archive(p, f, ff, size); err != nil {
			return err
		}
	}
	in := op.set.Inputs[len(op.set.Inputs)-1]
	in.Size = size
	if op.o.Digest {
		op.set.hashFile(in, func() (*os.File, error) { return os.Open(p) })
	}
	if keep {
		op.set.closers = append(op.set.closers, f)
	}
	return nil
}

// bolt makes a node of a bare database: its only file is the database, at /NAME.
func (op *opener) bolt(p string, f *os.File, size int64) {
	format := FormatDB
	if size%512 == 32 { // etcdctl snapshot save appends a SHA-256: etcdutl/snapshot hasChecksum
		format = FormatSnapshot
	}
	in := op.newInput(p, format)
	t := newMemTree()
	fi, _ := f.Stat()
	base := filepath.Base(p)
	e := entry{size: size, mode: 0o600, uid: -1, gid: -1}
	if fi != nil {
		e.mode, e.mtime = fi.Mode(), fi.ModTime().UTC()
	}
	t.add(base, e, regionContent{f, 0, size})
	n := op.set.attach(nodeNameOf(base), &layer{input: in, tree: t}, false)
	in.Node = n.Name
}

// nodeNameOf names a node after the file it came from.
func nodeNameOf(base string) string {
	for {
		ext := filepath.Ext(base)
		switch ext {
		case ".db", ".snapshot", ".tar", ".zst", ".gz", ".tgz", ".snap", ".age":
			base = strings.TrimSuffix(base, ext)
			continue
		}
		return base
	}
}

// archive indexes a tar, compressed or not. It reports whether f must stay open.
func (op *opener) archive(p string, f *os.File, ff fileFormat, size int64) (keep bool, err error) {
	x := &indexer{ctx: op.ctx, limits: op.o.Limits, mem: &op.mem, spool: op.set.spool, tree: newMemTree()}
	var r io.Reader
	switch ff {
	case fileAge:
		d, err := archive.Unwrap(f, op.o.Identities)
		if err != nil {
			return false, &InputError{p, "cannot be decrypted: " + err.Error(), "give the identity that belongs to one of its recipients"}
		}
		r = d
	case fileZstd:
		d, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return false, &InputError{p, err.Error(), "the file may be cut off; copy it again"}
		}
		defer d.Close()
		r = d
	case fileGzip:
		g, err := gzip.NewReader(bufio.NewReaderSize(f, 256<<10))
		if err != nil {
			return false, &InputError{p, err.Error(), "the file may be cut off; copy it again"}
		}
		r = g
	default:
		x.at = f
		x.pos = func() int64 { n, _ := f.Seek(0, io.SeekCurrent); return n }
		r = f
	}
	if ff != fileTar {
		br := bufio.NewReaderSize(r, sniffBytes)
		head, _ := br.Peek(sniffBytes)
		if k := sniffHead(head); k == fileBolt {
			return false, op.compressedBolt(p, br, f)
		} else if k == fileZstd || k == fileGzip {
			return false, &InputError{p, "compressed twice", "decompress it once"}
		}
		r = br
	}
	xerr := x.index(r)
	if xerr != nil && op.ctx.Err() != nil {
		return false, op.ctx.Err()
	}
	x.tree.seal()
	sh := recognize(x.tree)
	if err := foreign(p, sh.format); err != nil {
		return false, err
	}
	if sh.format == FormatUnknown {
		if xerr != nil {
			return false, &InputError{p, "damaged archive: " + xerr.Error(), "copy it again and compare the sizes; nothing usable lies before the damage"}
		}
		if len(x.tree.nodes) == 1 {
			return false, &InputError{p, "an archive without entries", "make it with: tar -C / -cf node.tar etc/kubernetes var/lib/kubelet"}
		}
		return false, &InputError{p, "an archive that holds no node root", "paths in it must begin with etc/kubernetes, var/lib/etcd, … or nodes/<name>/"}
	}
	if sh.format == FormatNodeRoot {
		sh.format = FormatArchive
		if has(sub(x.tree, sh.prefix), "coldplane/HEADER.json") {
			sh.format = FormatBundle
		}
	}
	in := op.newInput(p, sh.format)
	in.Refusals, in.RefusalsDropped = x.refusals, x.dropped
	if xerr != nil {
		in.State, in.Detail = "damaged", xerr.Error()
	}
	if sh.format == FormatBundle && x.verify != nil {
		in.verified(x.verify, x.tree)
	}
	op.build(in, x.tree, sh, false)
	return x.at != nil, nil
}

// compressedBolt takes a database that was compressed without tar.
func (op *opener) compressedBolt(p string, r io.Reader, f *os.File) error {
	data, n, err := op.set.spool.drain(r, op.o.Limits.EntryBytes)
	if data == nil {
		return &InputError{p, "cannot be decompressed: " + err.Error(), "decompress it first"}
	}
	format := FormatDB
	if n%512 == 32 {
		format = FormatSnapshot
	}
	in := op.newInput(p, format)
	if err != nil {
		in.State, in.Detail = "damaged", err.Error()
	}
	t := newMemTree()
	base := nodeNameOf(filepath.Base(p))
	e := entry{size: n, mode: 0o600, uid: -1, gid: -1}
	if fi, err := f.Stat(); err == nil {
		e.mtime = fi.ModTime().UTC()
	}
	t.add(base+".db", e, data)
	in.Node = op.set.attach(base, &layer{input: in, tree: t}, false).Name
	return nil
}

// build turns a recognised tree into nodes.
func (op *opener) build(in *Input, t tree, sh shape, live bool) {
	switch sh.format {
	case FormatNodes:
		for _, name := range sortedKeys(sh.nodes) {
			prefix := sh.nodes[name]
			op.root(in, &layer{input: in, tree: sub(t, prefix), prefix: prefix}, name, live)
		}
		if sh.shared {
			op.set.Shared.layers = append(op.set.Shared.layers, &layer{input: in, tree: hideNodes{sub(t, sh.prefix)}, prefix: sh.prefix})
		}
	case FormatDataDir:
		l := &layer{input: in, tree: sub(t, sh.prefix), prefix: sh.prefix}
		in.Node = op.set.attach(nodeNameOf(filepath.Base(cleanAbs(in.Path))), l, false).Name
	default:
		l := &layer{input: in, tree: sub(t, sh.prefix), prefix: sh.prefix}
		in.Node = op.root(in, l, "", live).Name
	}
}

func cleanAbs(p string) string {
	if a, err := filepath.Abs(p); err == nil {
		return a
	}
	return filepath.Clean(p)
}

func (op *opener) root(in *Input, l *layer, name string, live bool) *Node {
	l.complete = isWholeRoot(l.tree)
	if v := in.Verification; v != nil {
		l.complete = false
		if v.Manifest != nil {
			l.absent, l.dirs = setOf(v.Manifest.Absent), setOf(v.Manifest.Dirs)
		}
	}
	id := identify(l)
	if name == "" {
		if name = id.name; name == "" {
			name = nodeNameOf(filepath.Base(cleanAbs(in.Path)))
			if name == string(filepath.Separator) || name == "." {
				name = "node"
			}
		}
	}
	n := op.set.attach(name, l, true)
	n.Live = live
	if !id.collectedAt.IsZero() {
		n.CollectedAt, in.CollectedAt = id.collectedAt, id.collectedAt
	}
	return n
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// hideNodes is the part of a multi-node input that belongs to no single node.
type hideNodes struct{ tree }

func (h hideNodes) lstat(n string) (entry, error) {
	if n == "nodes" || strings.HasPrefix(n, "nodes/") {
		return entry{}, errNotExist
	}
	return h.tree.lstat(n)
}

func (h hideNodes) readdir(n string) ([]entry, error) {
	es, err := h.tree.readdir(n)
	if n == "" {
		es = slices.DeleteFunc(slices.Clone(es), func(e entry) bool { return e.name == "nodes" })
	}
	return es, err
}
