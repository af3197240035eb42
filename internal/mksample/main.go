// Command mksample makes the demo incident: a three-node control plane after
// a half-done restore, with real etcd servers. It is a module of its own so
// that its libraries stay out of coldplane.
//
// The story: namespace shop was deleted on 2026-05-12. The operator stopped
// etcd on cp1, restored last night's snapshot there with the default flags
// into /var/lib/etcd-restored, edited the manifest on cp1 only and left a copy
// of the old one beside it. cp2 and cp3 go on as the old cluster.
//
// It needs the addresses 192.0.2.11 to 192.0.2.13 on this machine:
//
//	ip addr add 192.0.2.11/32 dev lo    (and .12, .13)
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"
)

// now is the moment of collection in the story.
var now = time.Date(2026, 5, 12, 9, 30, 0, 0, time.UTC)

type machine struct{ Name, IP string }

var machines = []machine{{"cp1", "192.0.2.11"}, {"cp2", "192.0.2.12"}, {"cp3", "192.0.2.13"}}

func main() {
	log.SetFlags(0)
	out := flag.String("o", "../../testdata/incident", "directory to write, replaced")
	base := flag.String("base", "../../analyze/analyzetest/base/node", "templates of a healthy kubeadm tree")
	flag.Parse()
	if err := make1(*out, *base); err != nil {
		log.Fatal("mksample: ", err)
	}
}

func make1(out, base string) error {
	work, err := os.MkdirTemp("", "mksample-*")
	if err != nil {
		return err
	}
	if os.Getenv("KEEP") == "" {
		defer os.RemoveAll(work)
	}
	pki, err := newPKI()
	if err != nil {
		return err
	}
	run, err := runIncident(work, pki)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	for _, m := range machines {
		root := filepath.Join(out, "nodes", m.Name)
		if err := writeTree(root, base, m); err != nil {
			return err
		}
		if err := pki.write(root, m); err != nil {
			return err
		}
		for from, to := range run.dirs[m.Name] {
			if err := copyMember(from, filepath.Join(root, to)); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
		}
		if err := writeLogs(root, m, run.logs[m.Name], run.at); err != nil {
			return err
		}
	}
	return finishStory(out, base)
}
