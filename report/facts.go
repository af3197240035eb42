package report

import (
	"encoding/json"
	"time"
)

// Keys of Report.Facts and the type each holds. A key is absent when nothing
// of its kind was in the evidence; readers must cope with that.
const (
	FactInventory    = "inventory"    // []NodeInventory
	FactTopology     = "topology"     // Topology
	FactBanner       = "banner"       // Banner
	FactMatrix       = "matrix"       // Matrix
	FactMembers      = "members"      // []Member
	FactQuorum       = "quorum"       // Quorum
	FactStore        = "store"        // []Store, one per member or database file
	FactCertificates = "certificates" // []Certificate
	FactVersions     = "versions"     // []Version
	FactIncident     = "incident"     // Incident
)

// Fact returns the value of one key of Report.Facts. It works both on a report
// just made, whose facts are the structs themselves, and on one read from
// JSON. ok is false when the key is absent or holds something else.
func Fact[T any](r *Report, key string) (v T, ok bool) {
	x, there := r.Facts[key]
	if !there || x == nil {
		return v, false
	}
	switch y := x.(type) {
	case T:
		return y, true
	case *T:
		if y == nil {
			return v, false
		}
		return *y, true
	}
	b, err := json.Marshal(x)
	if err != nil {
		return v, false
	}
	if err := json.Unmarshal(b, &v); err != nil {
		var zero T
		return zero, false
	}
	return v, true
}

// A NodeInventory is one row of the inventory.
type NodeInventory struct {
	Node       string      `json:"node"`
	Roles      []string    `json:"roles"`
	Inputs     []string    `json:"inputs"` // ids of Report.Inputs
	AsOf       *time.Time  `json:"asOf,omitempty"`
	AsOfSource string      `json:"asOfSource,omitempty"`
	AsOfDetail string      `json:"asOfDetail,omitempty"`
	Components []Component `json:"components"`
	DataDir    string      `json:"dataDir,omitempty"` // etcd's, on the host
}

// A Component is one control-plane component of a node, from its manifest.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // image tag
	Path    string `json:"path"`              // manifest, inside the input
}

// Topology is what kubeadm-config says of the cluster's shape.
type Topology struct {
	KubernetesVersion    string   `json:"kubernetesVersion"`
	ControlPlaneEndpoint string   `json:"controlPlaneEndpoint"`
	Etcd                 string   `json:"etcd"` // "stacked", "external"
	EtcdEndpoints        []string `json:"etcdEndpoints,omitempty"`
	Source               string   `json:"source"` // path, inside the input
}

// A Banner is the line above everything: how old what is seen may be.
type Banner struct {
	Text       string     `json:"text"`                // "cluster state as of 2026-01-02T03:04:05Z, 312 s before collection"
	LastWrite  *time.Time `json:"lastWrite,omitempty"` // newest write the store proves
	AgeSeconds *int64     `json:"ageSeconds,omitempty"`
}

// States of a row of the matrix, of a member, of a domain.
const (
	Alive      = "alive"
	Dead       = "dead"
	LastSeen   = "last-seen" // was alive at Time; nothing newer is known
	NotKnown   = "unknown"
	SubjectAll = "cluster" // subject of a row about the cluster as a whole
)

// Planes of a row of the matrix.
const (
	PlaneOfControl = "control"
	PlaneOfUsers   = "user"
)

// Names of the two rows about SubjectAll that settle the verdict's planes.
const (
	RowControlPlane = "control plane"
	RowUserTraffic  = "user traffic"
)

// A Matrix says what is alive and what is not, each for itself: an open port
// does not prove a usable API, a Ready node does not prove a running kubelet.
type Matrix struct {
	Rows []MatrixRow `json:"rows"`
}

// A MatrixRow is one question about one subject.
type MatrixRow struct {
	Plane    string     `json:"plane"`          // PlaneOfControl, PlaneOfUsers
	Subject  string     `json:"subject"`        // a node's name, or SubjectAll
	Name     string     `json:"name"`           // "etcd process", "API /readyz", "VIP TCP", "user traffic", ...
	State    string     `json:"state"`          // Alive, Dead, LastSeen, NotKnown
	Time     *time.Time `json:"time,omitempty"` // of the observation
	Text     string     `json:"text"`           // how it is known, one line
	Evidence []Evidence `json:"evidence"`
	Findings []string   `json:"findings,omitempty"` // ids
}

// A Member is one etcd member, joined over everything that names it.
type Member struct {
	ID         string     `json:"id"` // hexadecimal
	Name       string     `json:"name,omitempty"`
	Node       string     `json:"node,omitempty"`
	Cluster    string     `json:"cluster,omitempty"` // cluster id, hexadecimal
	PeerURLs   []string   `json:"peerURLs"`
	ClientURLs []string   `json:"clientURLs"`
	Learner    bool       `json:"learner,omitempty"`
	Leader     bool       `json:"leader,omitempty"` // by the newest evidence
	State      string     `json:"state"`            // Alive, Dead, LastSeen, NotKnown
	Why        string     `json:"why,omitempty"`    // how State is known
	Time       *time.Time `json:"time,omitempty"`   // of that observation
	Domain     string     `json:"domain,omitempty"` // failure domain: zone, hypervisor
	Version    string     `json:"version,omitempty"`
	Term       uint64     `json:"term,omitempty"`
	Index      uint64     `json:"index,omitempty"`    // consistent index
	Revision   int64      `json:"revision,omitempty"` // newest in its store
	Size       int64      `json:"size,omitempty"`     // bytes of its file
	Source     string     `json:"source,omitempty"`   // path of the list that names it
}

// A Quorum is the arithmetic of one etcd cluster.
type Quorum struct {
	State        string   `json:"state"` // "held", "lost", "at-risk", "unknown"
	Text         string   `json:"text,omitempty"`
	Cluster      string   `json:"cluster,omitempty"`
	Voters       int      `json:"voters"`
	Learners     int      `json:"learners"`
	Need         int      `json:"need"`         // voters that make a majority
	AliveMin     int      `json:"aliveMin"`     // proved alive
	AliveMax     int      `json:"aliveMax"`     // not proved dead
	ToleranceMin int      `json:"toleranceMin"` // more losses survived, if all unknown ones are dead; negative when quorum is lost
	ToleranceMax int      `json:"toleranceMax"` // the same, if all unknown ones are alive
	Losses       []Loss   `json:"losses,omitempty"`
	Domains      []Domain `json:"domains,omitempty"`
	Source       string   `json:"source,omitempty"`

	Nodes    []NodeLoss `json:"nodes,omitempty"`    // every control-plane node: what losing it would do
	Recovery []Recover  `json:"recovery,omitempty"` // for members that do not answer: in which order help counts
}

// A NodeLoss is what losing one control-plane node would do, each thing judged
// for itself.
type NodeLoss struct {
	Node    string `json:"node"`
	Domain  string `json:"domain,omitempty"` // failure domain of a node
	State   string `json:"state,omitempty"`  // of its member now: Alive, Dead, NotKnown
	Quorum  string `json:"quorum"`           // after the loss: "held", "lost", "unknown"
	API     string `json:"api"`              // "2 of 3 API servers left"
	VIP     string `json:"vip"`              // what happens to the endpoint's address
	CoreDNS string `json:"coreDNS"`          // "1 of 2 pods left"
}

// A Recover is one step of bringing lost members back.
type Recover struct {
	Node   string `json:"node"`
	Text   string `json:"text"`
	Quorum bool   `json:"quorum,omitempty"` // this step brings quorum back
}

// A Loss is one row of the loss table: what is left after losing Lost more.
type Loss struct {
	Lost   int    `json:"lost"`
	Left   int    `json:"left"`   // voters alive then, at best
	Quorum string `json:"quorum"` // "held", "lost", "unknown"
	Text   string `json:"text,omitempty"`
}

// A Domain is a failure domain and the voters in it.
type Domain struct {
	Name    string   `json:"name"`
	Members []string `json:"members"` // names or ids
	Quorum  string   `json:"quorum"`  // after losing this domain: "held", "lost", "unknown"
	API     string   `json:"api,omitempty"`
	CoreDNS string   `json:"coreDNS,omitempty"`
}

// A Store is what fills one etcd database. Sizes are bytes; a nil pointer
// means not known.
type Store struct {
	Node        string      `json:"node,omitempty"`
	Member      string      `json:"member,omitempty"` // id or name
	Path        string      `json:"path"`             // inside the input
	Size        int64       `json:"size"`             // of the file, without a snapshot's trailer
	InUse       int64       `json:"inUse"`            // pages in use
	Free        int64       `json:"free"`             // free pages
	Live        int64       `json:"live"`             // newest records of live keys
	History     int64       `json:"history"`          // superseded records and tombstones
	Tombstones  int64       `json:"tombstones"`       // count
	Keys        int64       `json:"keys"`             // live
	Revisions   int64       `json:"revisions"`        // records kept
	Revision    int64       `json:"revision"`         // newest
	Compacted   int64       `json:"compacted"`        // compact revision
	Quota       *int64      `json:"quota,omitempty"`  // bytes; nil: not known; 0 or less: switched off
	QuotaSource string      `json:"quotaSource,omitempty"`
	AfterComp   *int64      `json:"afterCompact,omitempty"` // estimate of InUse after a compaction
	AfterDefrag *int64      `json:"afterDefrag,omitempty"`  // estimate of Size after compaction and defragmentation
	Alarms      []Alarm     `json:"alarms"`
	Types       []StoreType `json:"types"`             // by bytes, largest first
	Largest     []StoreKey  `json:"largest,omitempty"` // largest values
	Hot         []StoreKey  `json:"hot,omitempty"`     // most revisions kept
	Damage      string      `json:"damage,omitempty"`  // what could not be read
	Version     string      `json:"version,omitempty"` // storage version
	LastWrite   *time.Time  `json:"lastWrite,omitempty"`
}

// An Alarm is an etcd alarm stored in the database.
type Alarm struct {
	Member string `json:"member"`
	Type   string `json:"type"` // "NOSPACE", "CORRUPT"
}

// A StoreType is one resource type in the store.
type StoreType struct {
	Type       string           `json:"type"` // "pods", "events", "helm.sh/releases", "other"
	Live       int64            `json:"live"` // bytes
	History    int64            `json:"history"`
	Objects    int64            `json:"objects"` // live keys
	Revisions  int64            `json:"revisions"`
	Namespaces []StoreNamespace `json:"namespaces,omitempty"` // by bytes, largest first, the first few
}

// A StoreNamespace is a type's part in one namespace.
type StoreNamespace struct {
	Namespace string `json:"namespace"` // "" for cluster-wide objects
	Live      int64  `json:"live"`
	History   int64  `json:"history"`
	Objects   int64  `json:"objects"`
}

// A StoreKey is one key of the store. Values are never in a report.
type StoreKey struct {
	Key       string `json:"key"`
	Size      int64  `json:"size"` // of the newest value
	Revisions int64  `json:"revisions"`
	Bytes     int64  `json:"bytes"` // of all its records
	Revision  int64  `json:"revision,omitempty"`
	Deleted   bool   `json:"deleted,omitempty"`
}

// A Certificate is one row of the expiry and trust table.
type Certificate struct {
	Node      string     `json:"node,omitempty"`
	Path      string     `json:"path"`              // inside the input
	Origin    string     `json:"origin,omitempty"`  // on the node
	Pointer   string     `json:"pointer,omitempty"` // where in a kubeconfig
	Role      string     `json:"role,omitempty"`    // "apiserver", "etcd/peer", "ca", ...
	CA        bool       `json:"ca,omitempty"`
	Subject   string     `json:"subject"`
	Issuer    string     `json:"issuer"`
	Serial    string     `json:"serial,omitempty"`
	SANs      []string   `json:"sans,omitempty"`
	Usages    []string   `json:"usages,omitempty"`
	UsedBy    []string   `json:"usedBy,omitempty"` // "kube-apiserver --etcd-certfile (etc/.../kube-apiserver.yaml:20)"
	NotBefore time.Time  `json:"notBefore"`        // zero when the certificate cannot be read
	NotAfter  time.Time  `json:"notAfter"`
	DaysLeft  *int       `json:"daysLeft,omitempty"` // at as-of; negative when expired; nil without as-of
	Chain     string     `json:"chain"`              // Good, Bad, NotKnown
	ChainWhy  string     `json:"chainWhy,omitempty"`
	KeyMatch  string     `json:"keyMatch"`       // Good, Bad, NotKnown
	SPKI      string     `json:"spki,omitempty"` // SHA-256 of the public key info, hex
	Findings  []string   `json:"findings,omitempty"`
	AsOf      *time.Time `json:"asOf,omitempty"`              // that judged DaysLeft
	Missing   bool       `json:"missing,omitempty"`           // a flag or kubeadm names the file and it is not on the node
	External  bool       `json:"externallyManaged,omitempty"` // the issuing CA's key is known not to be on the node
}

// Answers of a check of a certificate.
const (
	Good = "ok"
	Bad  = "bad"
)

// A Version is one component's version and how it is known.
type Version struct {
	Node      string `json:"node,omitempty"`
	Component string `json:"component"`
	Version   string `json:"version"`
	Source    string `json:"source"` // "manifest", "log", "etcd", "kubelet node status", ...
	Path      string `json:"path,omitempty"`
	Note      string `json:"note,omitempty"` // "end of life", "skew 2 minors"
}

// An Incident is the span of time in which things went wrong.
type Incident struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Why  string    `json:"why"` // which observation opens it
}
