package walframe

import "strconv"

// A Kind is what an entry asks for: the field number of etcd's
// InternalRaftRequest where it is one, a negative number of ours otherwise.
type Kind int32

// Kinds that are no field of InternalRaftRequest.
const (
	Undecodable  Kind = -1 // not a request that we can read
	Empty        Kind = -2 // no data: a new leader's first entry
	Conf         Kind = -3 // raft ConfChange
	ConfV2       Kind = -4 // raft ConfChangeV2
	V2Request    Kind = -5 // a bare request of the v2 API, as 3.5 and older write for attributes and versions
	Oversize     Kind = -6 // larger than is held in memory and not told from its first bytes
	HeaderOnly   Kind = -7 // an InternalRaftRequest with no request in it
	OtherRequest Kind = -8 // a field number unknown to us
)

// Kinds of InternalRaftRequest (api/etcdserverpb/raft_internal.proto, 3.0 to 3.7).
const (
	V2Nested           Kind = 2
	Range              Kind = 3
	Put                Kind = 4
	DeleteRange        Kind = 5
	Txn                Kind = 6
	Compaction         Kind = 7
	LeaseGrant         Kind = 8
	LeaseRevoke        Kind = 9
	Alarm              Kind = 10
	LeaseCheckpoint    Kind = 11
	AuthEnable         Kind = 1000
	AuthDisable        Kind = 1011
	Authenticate       Kind = 1012
	AuthStatus         Kind = 1013
	ClusterVersionSet  Kind = 1300
	MemberAttrSet      Kind = 1301
	DowngradeInfoSet   Kind = 1302
	DowngradeVersionOK Kind = 9900
)

var kindNames = [...]struct {
	kind Kind
	name string
}{
	{Undecodable, "undecodable"}, {Empty, "new-leader"}, {Conf, "conf-change"}, {ConfV2, "conf-change-v2"},
	{V2Request, "v2-request"}, {Oversize, "oversize"}, {HeaderOnly, "header-only"}, {OtherRequest, "other"},
	{V2Nested, "v2-nested"}, {Range, "range"}, {Put, "put"}, {DeleteRange, "delete"}, {Txn, "txn"},
	{Compaction, "compaction"}, {LeaseGrant, "lease-grant"}, {LeaseRevoke, "lease-revoke"}, {Alarm, "alarm"},
	{LeaseCheckpoint, "lease-checkpoint"}, {AuthEnable, "auth-enable"}, {AuthDisable, "auth-disable"},
	{Authenticate, "authenticate"}, {AuthStatus, "auth-status"}, {ClusterVersionSet, "cluster-version"},
	{MemberAttrSet, "member-attributes"}, {DowngradeInfoSet, "downgrade"}, {DowngradeVersionOK, "downgrade-test"},
}

func (k Kind) String() string {
	for _, n := range kindNames {
		if n.kind == k {
			return n.name
		}
	}
	if k >= 1100 && k < 1300 {
		return "auth-" + strconv.Itoa(int(k))
	}
	return "kind-" + strconv.Itoa(int(k))
}

// knownRequest tells whether a field number is one that an etcd up to 3.7 writes.
func knownRequest(n int32) bool {
	switch {
	case n >= 2 && n <= 11, n >= 1100 && n <= 1107, n >= 1200 && n <= 1204:
		return true
	}
	switch Kind(n) {
	case AuthEnable, AuthDisable, Authenticate, AuthStatus, ClusterVersionSet, MemberAttrSet, DowngradeInfoSet, DowngradeVersionOK:
		return true
	}
	return false
}
