package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// A run is what the incident left behind.
type run struct {
	dirs map[string]map[string]string // node -> data directory here -> path on the node
	logs map[string]string            // node -> etcd's log
	at   func(time.Time) time.Time    // real time -> time in the story
}

// story maps the minute the servers really ran onto the incident's days: the
// start to two days before, the deletion and what follows to the hour before
// now. After the restore time is stretched.
func story(accident, restored, end time.Time) func(time.Time) time.Time {
	restoredAt := now.Add(-50 * time.Minute)
	return func(t time.Time) time.Time {
		switch {
		case t.Before(accident):
			return now.AddDate(0, 0, -2).Add(t.Sub(accident))
		case t.Before(restored):
			return restoredAt.Add(t.Sub(restored))
		}
		f := float64(t.Sub(restored)) / float64(end.Sub(restored))
		return restoredAt.Add(time.Duration(f * float64(now.Sub(restoredAt)))).Truncate(time.Microsecond)
	}
}

type member struct {
	machine
	dir, log, tls string
	etcd          *embed.Etcd
}

func (m *member) start(name, initial string) error {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = m.Name, m.dir
	at := func(port string) []url.URL { return []url.URL{{Scheme: "https", Host: m.IP + ":" + port}} }
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = at("2380"), at("2380")
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = at("2379"), at("2379")
	cfg.InitialCluster, cfg.ClusterState = initial, "new"
	cfg.SnapshotCount = 100
	cfg.LogOutputs, cfg.LogLevel = []string{m.log}, "info"
	ca := filepath.Join(m.tls, "ca.crt")
	cfg.ClientTLSInfo = transport.TLSInfo{CertFile: filepath.Join(m.tls, "server.crt"), KeyFile: filepath.Join(m.tls, "server.key"), TrustedCAFile: ca, ClientCertAuth: true}
	cfg.PeerTLSInfo = transport.TLSInfo{SkipClientSANVerify: true, CertFile: filepath.Join(m.tls, "peer.crt"), KeyFile: filepath.Join(m.tls, "peer.key"), TrustedCAFile: ca, ClientCertAuth: true}
	e, err := embed.StartEtcd(cfg)
	m.etcd = e
	return err
}

func (m *member) ready() error {
	select {
	case <-m.etcd.Server.ReadyNotify():
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s did not become ready", m.Name)
	}
}

func (m *member) client() (*clientv3.Client, error) {
	info := transport.TLSInfo{CertFile: filepath.Join(m.tls, "client.crt"), KeyFile: filepath.Join(m.tls, "client.key"), TrustedCAFile: filepath.Join(m.tls, "ca.crt")}
	var c *tls.Config
	c, err := info.ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{"https://" + m.IP + ":2379"}, TLS: c, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

func runIncident(work string, pki *pkiSet) (*run, error) {
	var ms []*member
	var initial []string
	for _, x := range machines {
		m := &member{machine: x, dir: filepath.Join(work, x.Name, "etcd"), log: filepath.Join(work, x.Name+".log"), tls: filepath.Join(work, x.Name, "tls")}
		if err := pki.tlsFiles(m.tls, x.Name); err != nil {
			return nil, err
		}
		ms = append(ms, m)
		initial = append(initial, x.Name+"=https://"+x.IP+":2380")
	}
	started := make(chan error, len(ms))
	for _, m := range ms {
		go func() { started <- m.start(m.Name, strings.Join(initial, ",")) }()
	}
	for range ms {
		if err := <-started; err != nil {
			return nil, err
		}
	}
	for _, m := range ms {
		if err := m.ready(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := ms[1].client()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	w := &writer{ctx: ctx, c: c}
	w.cluster(now.Add(-10 * time.Hour))
	w.shop(now.Add(-20 * 24 * time.Hour))
	w.leases(now.Add(-10*time.Hour), 30)
	if w.err != nil {
		return nil, w.err
	}

	// Last night's backup.
	snap := filepath.Join(work, "backup.db")
	rc, err := c.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(snap)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(f, rc); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}

	// The accident, then the half-done restore on cp1.
	w.leases(now.Add(-70*time.Minute), 20)
	accident := time.Now()
	w.deleteShop()
	w.leases(now.Add(-60*time.Minute), 40)
	w.compact()
	if w.err != nil {
		return nil, w.err
	}
	ms[0].etcd.Close()
	restored := filepath.Join(work, "cp1", "etcd-restored")
	if err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: snap, Name: "default", OutputDataDir: restored, PeerURLs: []string{"http://localhost:2380"},
		InitialCluster: "default=http://localhost:2380", InitialClusterToken: "etcd-cluster",
	}); err != nil {
		return nil, err
	}
	old := ms[0].dir
	back := time.Now()
	ms[0].dir = restored
	if err := ms[0].start("cp1", initial[0]); err != nil {
		return nil, err
	}
	if err := ms[0].ready(); err != nil {
		return nil, err
	}
	c1, err := ms[0].client()
	if err != nil {
		return nil, err
	}
	defer c1.Close()
	w1 := &writer{ctx: ctx, c: c1}
	for i := range 6 { // both halves go on, for long enough that the peers complain
		at := now.Add(time.Duration(i-6) * 2 * time.Second)
		w.leases(at, 1)
		w1.leases(at, 1)
		time.Sleep(2 * time.Second)
	}
	if w.err != nil || w1.err != nil {
		return nil, fmt.Errorf("%w %w", w.err, w1.err)
	}
	end := time.Now()
	for _, m := range ms {
		m.etcd.Close()
	}
	r := &run{dirs: map[string]map[string]string{}, logs: map[string]string{}, at: story(accident, back, end)}
	for _, m := range ms {
		r.dirs[m.Name] = map[string]string{m.dir: "var/lib/etcd"}
		r.logs[m.Name] = m.log
	}
	r.dirs["cp1"] = map[string]string{old: "var/lib/etcd", restored: "var/lib/etcd-restored"}
	return r, nil
}
