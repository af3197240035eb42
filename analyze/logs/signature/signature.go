// Package signature holds the literal log texts coldplane knows, as data, and finds them.
//
// A Signature says which program prints a text, in which part of the line it
// counts, and which rules read it. The table is the only place where log texts
// live; rules name signatures by ID. The package knows nothing of files, nodes
// or times: package logs reads those. It imports nothing of ours.
package signature

import (
	"fmt"
	"math/bits"
	"strings"
)

// An Emitter is a set of programs. A text counts only in the log of a program
// that can have printed it: the same words inside another program's log are a
// quotation (an event shown, an annotation, a request body).
type Emitter uint32

// The programs whose logs are read.
const (
	Etcd Emitter = 1 << iota
	APIServer
	ControllerManager
	Scheduler
	Kubelet
	Containerd // containerd and the runc errors it passes on
	Kubeadm
	VIP // kube-vip, keepalived, haproxy
	Kernel
	Systemd
	TimeSync // chronyd, systemd-timesyncd, ntpd
	Events   // saved output of "kubectl get events" or "describe"

	// Any is every program, for streams whose program is not known.
	Any Emitter = 1<<iota - 1
)

// kube are the Kubernetes programs that share component-base.
const kube = APIServer | ControllerManager | Scheduler | Kubelet

var emitterNames = [...]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
	"containerd", "kubeadm", "vip", "kernel", "systemd", "timesync", "events"}

// String returns the names of the set joined by "|", and "" for the empty set.
func (e Emitter) String() string {
	var names []string
	for i, n := range emitterNames {
		if e&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, "|")
}

// Named returns the emitter of a container, unit or syslog identifier, and 0
// for a program that prints none of the texts.
func Named(name string) Emitter {
	name = strings.TrimSuffix(name, ".service")
	switch name {
	case "etcdmain", "etcd-member", "etcd3":
		return Etcd
	case "containerd-shim", "dockerd", "crio", "runc", "cri-o", "docker":
		return Containerd
	case "kube-vip", "keepalived", "haproxy", "Keepalived", "Keepalived_vrrp":
		return VIP
	case "chronyd", "systemd-timesyncd", "ntpd", "chrony":
		return TimeSync
	case "systemd-logind":
		return 0
	}
	for i, n := range emitterNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// Known reports whether e is exactly one program.
func (e Emitter) Known() bool { return bits.OnesCount32(uint32(e)) == 1 }

// A Place is the part of a line in which a text counts.
type Place uint8

const (
	// Message: only the message itself (the msg of zap, klog's quoted text, the
	// whole text of an unstructured line).
	Message Place = iota
	// Text: the message or a field that carries an error or a result
	// (error, err, reason, output, message).
	Text
)

// Gap stands in a text for a part that varies, as in "a … b". The parts must
// follow one another within one line.
const Gap = "…"

// A Signature is one known log text.
type Signature struct {
	ID       string   // stable, never reused: "E05"
	Texts    []string // any of them, case-sensitive; further ones are older or newer wordings
	By       Emitter  // the programs that print it
	In       Place
	Start    bool     // the text must be at the start of the message
	Context  bool     // keep the two lines before a hit with its excerpt
	Means    string   // what it says, in our words
	Keys     []string // structured fields worth keeping
	Pattern  string   // RE2 over the message and error text; its named groups are kept like fields
	Measure  string   // the field that holds a duration worth a distribution
	Versions string   // the versions in whose source the text was read
	Source   string   // where it was read: repository and file
	Rules    []string // rules that read it
}

// Table returns every signature, ordered as in the sources. The caller owns it.
func Table() []Signature {
	var all []Signature
	for _, part := range [...][]Signature{etcd(), raft(), apiServer(), controllers(), kubelet(), runtime(),
		golang(), kubeadm(), host()} {
		all = append(all, part...)
	}
	return all
}

// Validate reports the first defect of a table: a duplicate or empty ID, no
// text, no emitter, no source, or a text too short to be searched for.
func Validate(table []Signature) error {
	seen := make(map[string]bool, len(table))
	for _, s := range table {
		switch {
		case s.ID == "" || seen[s.ID]:
			return fmt.Errorf("signature %q: ID empty or used twice", s.ID)
		case len(s.Texts) == 0 || s.By == 0 || s.Means == "" || s.Source == "":
			return fmt.Errorf("signature %s: text, emitter, meaning and source are all needed", s.ID)
		}
		for _, t := range s.Texts {
			if len(longestPart(t)) < minLiteral {
				return fmt.Errorf("signature %s: %q has no part of %d bytes", s.ID, t, minLiteral)
			}
		}
		seen[s.ID] = true
	}
	return nil
}

func longestPart(text string) string {
	var best string
	for p := range strings.SplitSeq(text, Gap) {
		if len(p) > len(best) {
			best = p
		}
	}
	return best
}
