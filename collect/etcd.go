//go:build linux

package collect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"coldplane/bundle/archive"
	"coldplane/bundle/decode/boltpage"
	"coldplane/bundle/decode/walframe"
	"coldplane/bundle/hostfacts"
	"coldplane/bundle/redact"
)

// etcdTLS is the client certificate that the API server or a probe would use.
func (r *run) etcdTLS() (*tls.Config, error) {
	one := func(flag string) string {
		if v := r.paths.flags[flag]; len(v) > 0 {
			return path.Clean(v[0])
		}
		return ""
	}
	pki := kubeDir + "/pki/"
	sets := [][3]string{
		{one("etcd-cafile"), one("etcd-certfile"), one("etcd-keyfile")},
		{pki + "etcd/ca.crt", pki + "etcd/healthcheck-client.crt", pki + "etcd/healthcheck-client.key"},
		{pki + "etcd/ca.crt", pki + "apiserver-etcd-client.crt", pki + "apiserver-etcd-client.key"},
		{one("trusted-ca-file"), one("cert-file"), one("key-file")},
	}
	err := errors.New("no client certificate for etcd on this node")
	for _, f := range sets {
		cert, key := r.root.small(f[1]), r.root.small(f[2])
		if len(cert) == 0 || len(key) == 0 {
			continue
		}
		pair, perr := tls.X509KeyPair(cert, key)
		clear(key)
		if perr != nil {
			err = fmt.Errorf("%s: %w", f[1], perr)
			continue
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(r.root.small(f[0]))
		return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
	}
	return nil, err
}

// etcdEndpoints are client URLs, the local one first: asking it costs the
// others nothing.
func (r *run) etcdEndpoints() (local []string) {
	for _, e := range r.paths.endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Host == "" {
			continue
		}
		if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
			local = append([]string{e}, local...)
			continue
		}
		local = append(local, e)
	}
	return local
}

func (r *run) etcdClient(ctx context.Context, endpoint string) (*clientv3.Client, error) {
	cfg := clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: probeTimeout, Context: ctx, Logger: zap.NewNop(), MaxCallRecvMsgSize: 16 << 20}
	if strings.HasPrefix(endpoint, "https://") {
		t, err := r.etcdTLS()
		if err != nil {
			return nil, err
		}
		cfg.TLS = t
	}
	return clientv3.New(cfg)
}

// etcdStatus asks etcd for its members, alarms and each endpoint's status, and
// writes them the way etcdctl -w json does.
func (r *run) etcdStatus(ctx context.Context, s *sink) error {
	eps := r.etcdEndpoints()
	if len(eps) == 0 {
		return errNothing
	}
	var last error
	for _, ep := range eps {
		c, err := r.etcdClient(ctx, ep)
		if err != nil {
			last = fmt.Errorf("%s: %w", ep, err)
			continue
		}
		err = r.statusFrom(ctx, s, c)
		c.Close()
		if err == nil {
			return nil
		}
		last = fmt.Errorf("%s: %w", ep, err)
	}
	return last
}

func (r *run) statusFrom(ctx context.Context, s *sink, c *clientv3.Client) error {
	ml, err := call(ctx, func(x context.Context) (*clientv3.MemberListResponse, error) { return c.MemberList(x) })
	if err != nil {
		return err
	}
	s.json("etcd/members.json", ml)
	if al, err := call(ctx, func(x context.Context) (*clientv3.AlarmResponse, error) { return c.AlarmList(x) }); err != nil {
		s.fail("alarms", err)
	} else {
		s.json("etcdctl/alarm-list.json", al)
	}
	type status struct {
		Endpoint string                   `json:"Endpoint"`
		Status   *clientv3.StatusResponse `json:"Status"`
	}
	var all []status
	for _, m := range ml.Members {
		for _, u := range m.ClientURLs[:min(len(m.ClientURLs), 1)] {
			st, err := call(ctx, func(x context.Context) (*clientv3.StatusResponse, error) { return c.Status(x, u) })
			if err != nil {
				s.fail("status of "+u, err)
				continue
			}
			all = append(all, status{u, st})
		}
	}
	if all != nil {
		s.json("etcd/status.json", all)
	}
	return nil
}

// etcd takes the store: by etcd's own snapshot call when it answers, else as a copy
// of its files that takes no lock.
func (r *run) etcd(ctx context.Context, s *sink) error {
	if r.o.Etcd == EtcdNone {
		return errNothing
	}
	facts := []hostfacts.EtcdFacts{}
	any := false
	for _, d := range r.paths.dataDirs {
		if fi, err := r.root.stat(d + "/member"); err != nil || !fi.IsDir() {
			continue
		}
		any = true
		f := hostfacts.EtcdFacts{Origin: d}
		f.Snaps = r.snaps(s, d)
		facts = append(facts, f)
	}
	var live error
	var cm *configMap
	if r.o.Root == "/" {
		if eps := r.etcdEndpoints(); len(eps) > 0 {
			f, m, err := r.snapshotRPC(ctx, s, eps)
			if live = err; err == nil {
				any = true
				facts, cm = append(facts, f), m
			} else {
				s.note("snapshot through etcd: %s", reason(err))
			}
		}
	}
	for i := range facts {
		// With a whole snapshot at hand only the data directory it is of is copied
		// in name; without one, every directory is.
		if !path.IsAbs(facts[i].Origin) || r.o.Root == "/" && live == nil && len(r.etcdEndpoints()) > 0 {
			r.recordDB(s, facts[i].Origin+"/member/snap/db")
			continue
		}
		m, err := r.copyDB(ctx, s, &facts[i])
		if err != nil {
			s.fail(facts[i].Origin+"/member/snap/db", err)
			r.recordDB(s, facts[i].Origin+"/member/snap/db")
		}
		if cm == nil {
			cm = m
		}
	}
	if !any {
		if live != nil {
			return live
		}
		return errNothing
	}
	// The log after the databases: of a running member it must not seem to end
	// before what they hold.
	for _, f := range facts {
		if path.IsAbs(f.Origin) {
			r.walIndex(ctx, s, f.Origin)
		}
	}
	s.json(hostfacts.EtcdFactsPath, facts)
	if cm != nil && cm.found() {
		s.add(archive.Entry{Path: "kubeadm-config.yaml", Treatment: archive.Redacted, Rule: "configuration, from etcd"}, cm.yaml())
	}
	return ctx.Err()
}

// recordDB notes a database that is not copied.
func (r *run) recordDB(s *sink, p string) {
	if fi, err := r.root.lstat(p); err == nil {
		s.record(archive.Entry{Path: entryPath(p), Treatment: archive.Dropped, Rule: "database, etcd mode " + string(r.o.Etcd), Source: sourceOf(p, fi, "")})
	}
}

// walIndex writes what the write-ahead log says, without any value in it.
func (r *run) walIndex(ctx context.Context, s *sink, dir string) {
	wal := dir + "/member/wal"
	names, _, err := r.root.readdir(wal, 1000)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.fail(wal, err)
		}
		return
	}
	slices.Sort(names)
	var segs []walframe.Segment
	var open []*os.File
	defer func() {
		for _, f := range open {
			dropCache(f)
			f.Close()
		}
	}()
	for _, n := range names {
		if !strings.HasSuffix(n, ".wal") || ctx.Err() != nil {
			continue
		}
		f, fi, err := r.root.open(path.Join(wal, n))
		if err != nil {
			s.fail(path.Join(wal, n), err)
			continue
		}
		open = append(open, f)
		segs = append(segs, walframe.Segment{Name: n, Size: fi.Size(), R: f})
	}
	if len(segs) == 0 {
		return
	}
	l := walframe.Walk(segs)
	b, err := json.Marshal(map[string]any{"dataDir": dir, "log": l})
	if err != nil {
		s.fail(wal, err)
		return
	}
	redact.Check(b)
	p := "etcd/wal-index.jsonl"
	if dir != "/var/lib/etcd" {
		p = "etcd/wal-index-" + strings.ReplaceAll(entryPath(dir), "/", "-") + ".jsonl"
	}
	s.add(archive.Entry{Path: p, Treatment: archive.Derived, Rule: "index of the log, no values"}, append(b, '\n'))
}

func (r *run) snaps(s *sink, dir string) (out []hostfacts.SnapFacts) {
	names, _, err := r.root.readdir(dir+"/member/snap", 1000)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	slices.Reverse(names)
	for _, n := range names {
		p := path.Join(dir, "member/snap", n)
		if !strings.HasSuffix(n, ".snap") {
			continue
		}
		if len(out) >= 10 {
			r.recordListed(s, p)
			continue
		}
		f, fi, err := r.root.open(p)
		if err != nil {
			out = append(out, hostfacts.SnapFacts{Path: p, Err: clean(reason(err))})
			r.recordListed(s, p)
			continue
		}
		sf, err := walframe.ReadSnap(n, f, fi.Size())
		x := hostfacts.SnapFacts{Path: p, File: sf}
		if err != nil {
			x.Err = clean(err.Error())
		}
		if err != nil || !r.keepSnap(s, p, f, fi, sf) {
			r.recordListed(s, p)
		}
		f.Close()
		out = append(out, x)
	}
	return out
}

// keepSnap takes a raft snapshot that holds nothing but membership: a few
// kilobytes of JSON. One with keys of the v2 API may hold anything and is left.
func (r *run) keepSnap(s *sink, p string, f io.ReaderAt, fi fs.FileInfo, sf walframe.SnapFile) bool {
	if sf.Store.UserKeys > 0 || fi.Size() > smallFile {
		return false
	}
	b := make([]byte, fi.Size())
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return false
	}
	if redact.Check(b) {
		return false // it would not be the file any more
	}
	s.add(archive.Entry{Path: entryPath(p), Treatment: archive.Kept, Rule: "membership only", Source: sourceOf(p, fi, "")}, b)
	return true
}

func (r *run) recordListed(s *sink, p string) {
	if fi, err := r.root.lstat(p); err == nil {
		s.record(archive.Entry{Path: entryPath(p), Treatment: archive.Dropped, Rule: "listed", Source: sourceOf(p, fi, "")})
	}
}

// snapshotRPC streams etcd's own snapshot into an unlinked file, scrubs it there
// and stages it.
func (r *run) snapshotRPC(ctx context.Context, s *sink, eps []string) (hostfacts.EtcdFacts, *configMap, error) {
	var last error
	for _, ep := range eps {
		c, err := r.etcdClient(ctx, ep)
		if err != nil {
			last = err
			continue
		}
		st, err := call(ctx, func(x context.Context) (*clientv3.StatusResponse, error) { return c.Status(x, ep) })
		if err != nil {
			c.Close()
			last = fmt.Errorf("%s: %w", ep, err)
			continue
		}
		f, cm, err := r.snapshotFrom(ctx, s, c, ep, st.DbSize)
		c.Close()
		return f, cm, err
	}
	return hostfacts.EtcdFacts{}, nil, last
}

func (r *run) snapshotFrom(ctx context.Context, s *sink, c *clientv3.Client, ep string, size int64) (hostfacts.EtcdFacts, *configMap, error) {
	f := hostfacts.EtcdFacts{Origin: ep, Consistency: archive.RPCSnapshot}
	if r.o.Etcd == EtcdSummary {
		return f, nil, nil
	}
	if room := r.o.Room(r.o.SpoolDir); room < size {
		s.note("the snapshot of %d bytes would not leave the reserve free (%d bytes left above it): summary only", size, max(room, 0))
		return f, nil, nil
	}
	rc, err := c.Snapshot(ctx)
	if err != nil {
		return f, nil, err
	}
	defer rc.Close()
	sp := &spoolFile{dir: r.o.SpoolDir, room: r.o.Room}
	n, err := io.CopyBuffer(struct{ io.Writer }{sp}, &rateReader{ctx: ctx, r: rc, rate: r.o.Rate, began: time.Now()}, make([]byte, 256<<10)) //nolint:forbidigo // monotonic
	s.didRead(n)
	if err != nil {
		sp.close()
		return f, nil, err
	}
	cm, err := r.stageDB(ctx, s, &f, sp, n, archive.Entry{Path: entryPath(hostfacts.SnapshotPath), Consistency: archive.RPCSnapshot})
	return f, cm, err
}

// copyDB copies a database file without a lock. A running etcd may write
// meanwhile: the copy is walked, and the meta page compared before and after.
func (r *run) copyDB(ctx context.Context, s *sink, f *hostfacts.EtcdFacts) (*configMap, error) {
	p := f.Origin + "/member/snap/db"
	if _, err := r.root.lstat(p); errors.Is(err, fs.ErrNotExist) {
		s.setAbsent(p)
		return nil, nil
	}
	if r.o.Etcd == EtcdSummary {
		r.recordDB(s, p)
		return nil, nil
	}
	for try := 1; ; try++ {
		src, fi, err := r.root.open(p)
		if err != nil {
			return nil, err
		}
		if room := r.o.Room(r.o.SpoolDir); room < fi.Size() {
			src.Close()
			s.note("the database of %d bytes would not leave the reserve free (%d bytes left above it): summary only", fi.Size(), max(room, 0))
			r.recordDB(s, p)
			return nil, nil
		}
		sp := &spoolFile{dir: r.o.SpoolDir, room: r.o.Room}
		before := txid(src)
		n, err := copyRange(ctx, sp, src, fi.Size(), r.o.Rate)
		s.didRead(n)
		after := txid(src)
		dropCache(src)
		src.Close()
		if err != nil {
			sp.close()
			return nil, err
		}
		f.Consistency = archive.RawClean
		if before != after {
			if try < 3 {
				sp.close()
				continue
			}
			f.Consistency = archive.RawTorn
		}
		return r.stageDB(ctx, s, f, sp, n, archive.Entry{Path: entryPath(p), Source: sourceOf(p, fi, "")})
	}
}

// txid reads the newer transaction id of the meta pages of a file in use.
func txid(r io.ReaderAt) uint64 {
	var best uint64
	for _, off := range []int64{0, 4096, 16384, 65536} {
		var b [80]byte
		if _, err := r.ReadAt(b[:], off); err == nil && binary.LittleEndian.Uint32(b[16:]) == 0xED0CDAED {
			best = max(best, binary.LittleEndian.Uint64(b[64:]))
		}
	}
	return best
}

// stageDB scrubs a spooled database in place and stages it.
func (r *run) stageDB(ctx context.Context, s *sink, f *hostfacts.EtcdFacts, sp *spoolFile, size int64, e archive.Entry) (*configMap, error) {
	file, err := sp.file()
	if err != nil {
		return nil, err
	}
	f.Size = size
	if b, err := boltpage.Open(file, size/512*512); err == nil {
		f.DBSize, f.PageSize, f.Txid = b.DBSize(), b.PageSize(), b.Meta().Txid
		f.Digest = storeDigest(ctx, file, size/512*512)
	}
	cm := &configMap{}
	if r.o.Etcd == EtcdFull {
		e.Treatment, e.Rule = archive.Kept, "etcd mode full"
		s.stage(staged{entry: e, size: size, file: sp})
		return cm, nil
	}
	res, err := redact.Store(ctx, file, size, file, redact.StoreOptions{Level: r.o.Level, InPlace: true, Secret: r.scan.Secret, Scrubbed: cm.see})
	if err != nil {
		sp.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// Nothing of it can be trusted to be scrubbed.
		return nil, fmt.Errorf("not a database that can be scrubbed: %w", err)
	}
	f.Damage, f.DamageOf, f.Zeroed, f.Records = res.Damage, res.DamageOf, res.Zeroed, res.Elements
	if res.Defects > 0 {
		s.fail(f.Origin, fmt.Errorf("%d values overwritten whole after a defect", res.Defects))
	}
	switch res.Trailer {
	case redact.GoodTrailer:
		f.Trailer = "good"
	case redact.WrongTrailer:
		f.Trailer = "wrong"
	}
	if f.Consistency == archive.RawClean && res.Damage > 0 {
		f.Consistency = archive.RawTorn
	}
	e.Treatment, e.Rule, e.Consistency = archive.Scrubbed, "level "+string(r.o.Level), f.Consistency
	e.Counts = map[string]int{"records": int(res.Elements), "pages zeroed": int(res.Zeroed)}
	s.stage(staged{entry: e, size: size, file: sp})
	return cm, nil
}

// rateReader bounds how fast a stream is taken.
type rateReader struct {
	ctx   context.Context
	r     io.Reader
	rate  int64
	n     int64
	began time.Time
}

func (r *rateReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.n += int64(n)
	if r.rate > 0 {
		if d := time.Duration(float64(r.n)/float64(r.rate)*float64(time.Second)) - time.Since(r.began); d > 0 {
			select {
			case <-r.ctx.Done():
			case <-time.After(d):
			}
		}
	}
	return n, err
}
