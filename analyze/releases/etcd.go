package releases

// Oldest patch of a series from which a member may go to the next minor of
// etcd: https://etcd.io/docs/v3.6/upgrades/upgrade_3_6/ (3.5.26 carries the
// membership fix, the page asks for 3.5.32) and upgrade_3_7.
const (
	floorPatch35   = 26
	advisedPatch35 = 32
	floorPatch36   = 11
)

// EtcdFloor returns the oldest version of a member's own series that may go to
// etcd 3.toMinor, and the one the documentation advises. ok is false when the
// step is not one of the known ones.
func EtcdFloor(fromMinor, toMinor int) (floor, advised Version, ok bool) {
	switch {
	case fromMinor == 5 && toMinor >= 6:
		return Version{3, 5, floorPatch35, ""}, Version{3, 5, advisedPatch35, ""}, true
	case fromMinor == 6 && toMinor >= 7:
		return Version{3, 6, floorPatch36, ""}, Version{3, 6, floorPatch36, ""}, true
	}
	return Version{}, Version{}, false
}

// A KnownBug is trouble in a range of etcd versions: those of a series with a
// patch below Fixed (and at or above From). Source: CHANGELOG-3.5 to 3.7 of
// etcd and the project's posts of 2025 and 2026.
type KnownBug struct {
	Minor, From, Fixed int
	What               string
	Grave              bool // data corruption without an operator's doing
}

// EtcdBugs returns what is known about a version, gravest first.
func EtcdBugs(v Version) []KnownBug {
	var out []KnownBug
	if v.Major != 3 {
		return nil
	}
	for _, b := range knownBugs() {
		if b.Minor == v.Minor && v.Patch >= b.From && v.Patch < b.Fixed {
			out = append(out, b)
		}
	}
	return out
}

func knownBugs() []KnownBug {
	return []KnownBug{
		{5, 0, 3, "data may be corrupted when etcd crashes under load", true},
		{5, 0, 6, "a defragmentation that is interrupted may leave the member different from the others", false},
		{5, 0, 12, "deletes may be seen inconsistently in concurrent reads", false},
		{5, 0, 13, "leases may be revoked wrongly when a leader stalls", false},
		{5, 0, 14, "a panic during compaction may set the revision back", false},
		{5, 1, 20, "the promotion of a learner is not stored in the v3 store", false},
		{5, 0, 23, "a snapshot applied during a defragmentation may corrupt the member", false},
		{5, 0, 26, "members removed long ago come back when the cluster goes to 3.6", false},
		{5, 0, 28, "stale reads after the process was paused", false},
		{5, 0, 30, "a member cannot be added while another one is down", false},
		{5, 0, 31, "member update promotes a learner silently", false},
		{5, 0, 33, "a client can exhaust the server in the TLS handshake; read permission on one key leaks later keys", false},
		{6, 0, 4, "the server may not start when it replays a promotion", false},
		{6, 0, 5, "a snapshot applied during a defragmentation may corrupt the member", false},
		{6, 0, 9, "stale reads after the process was paused", false},
		{6, 0, 11, "a member cannot be added while another one is down", false},
		{6, 0, 12, "member update promotes a learner silently", false},
		{6, 0, 14, "a client can exhaust the server in the TLS handshake; read permission on one key leaks later keys", false},
		{7, 0, 1, "a client can exhaust the server in the TLS handshake; read permission on one key leaks later keys", false},
	}
}
