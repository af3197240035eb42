package etcdwal

import (
	"slices"

	"coldplane/bundle"
	"coldplane/bundle/decode/walframe"
)

// Membership is who the members are by the v2 store of the newest snapshot
// file with the committed conf changes of the log behind it: what decides up
// to etcd 3.5.
type Membership struct {
	Index   uint64 // up to which the log was applied
	Members []walframe.MemberInfo
	Removed []uint64
	// Base is where it starts from: a snapshot file, or the first conf change of
	// a log that reaches back to the beginning.
	Base bundle.Ref
	// Applied are the conf changes that were added to the base.
	Applied []walframe.ConfChange
	Version string // of the cluster, by the v2 store
}

// Member returns the member of an id, or nil.
func (m *Membership) Member(id uint64) *walframe.MemberInfo {
	for i := range m.Members {
		if m.Members[i].ID == id {
			return &m.Members[i]
		}
	}
	return nil
}

// Membership replays the directory's own record of the members. ok is false
// when it does not reach back far enough: no readable snapshot file with a v2
// store and a log that begins later than index 1, or a log with a gap.
func (d *Dir) Membership() (m Membership, ok bool) {
	snap := d.NewestSnap()
	base := uint64(0)
	switch {
	case snap != nil && snap.Store.Present && snap.Store.Dropped == 0:
		m = Membership{Index: snap.Index, Members: slices.Clone(snap.Store.Members), Removed: slices.Clone(snap.Store.Removed),
			Base: snap.File.Ref(), Version: snap.Store.Version}
		base = snap.Index
	case d.Log != nil && d.Log.FirstIndex == 1 && d.Log.ConfChanges.Dropped == 0 && len(d.Log.ConfChanges.Items) > 0:
		c := d.Log.ConfChanges.Items[0]
		m.Base = d.Ref(c.Segment, c.Offset)
	default:
		return m, false
	}
	if d.Log == nil {
		return m, snap != nil
	}
	// A damaged stretch may have held a conf change.
	for _, x := range d.Log.Damage {
		if x.Kind != walframe.BadPadding && (x.After == 0 || x.After > base+1) {
			return m, false
		}
	}
	if d.Log.ConfChanges.Dropped > 0 && len(d.Log.ConfChanges.Items) > 0 && d.Log.ConfChanges.Items[0].Index > base+1 {
		return m, false
	}
	m.Index = max(base, min(d.Log.State.Commit, d.Log.LastIndex))
	for _, c := range d.Log.ConfChanges.Items {
		if c.Replaced || c.Index <= base || c.Index > d.Log.State.Commit {
			continue
		}
		m.apply(c)
	}
	for _, a := range d.Log.Attrs.Items {
		if x := m.Member(a.ID); x != nil && a.Index > base && a.Index <= d.Log.State.Commit {
			x.Name, x.ClientURLs = a.Name, a.ClientURLs
		}
	}
	return m, true
}

// apply adds one conf change, as etcd's cluster does.
func (m *Membership) apply(c walframe.ConfChange) {
	m.Applied = append(m.Applied, c)
	switch c.Type {
	case walframe.AddNode, walframe.AddLearner:
		if x := m.Member(c.NodeID); x != nil {
			x.IsLearner = c.Type == walframe.AddLearner
			return
		}
		info := c.Member
		info.ID = c.NodeID
		info.IsLearner = c.Type == walframe.AddLearner
		m.Members = append(m.Members, info)
	case walframe.RemoveNode:
		m.Members = slices.DeleteFunc(m.Members, func(x walframe.MemberInfo) bool { return x.ID == c.NodeID })
		if !slices.Contains(m.Removed, c.NodeID) {
			m.Removed = append(m.Removed, c.NodeID)
		}
	case walframe.UpdateNode:
		if x := m.Member(c.NodeID); x != nil && c.Context {
			x.PeerURLs = c.Member.PeerURLs
		}
	}
}

// Voters counts members that vote.
func (m *Membership) Voters() int {
	n := 0
	for _, x := range m.Members {
		if !x.IsLearner {
			n++
		}
	}
	return n
}

// Forced lists the removals that no server proposed: etcd writes them itself
// when it is started with --force-new-cluster.
func Forced(l *walframe.Log) []walframe.ConfChange {
	var out []walframe.ConfChange
	for _, c := range l.ConfChanges.Items {
		if c.Type == walframe.RemoveNode && c.Proposal == 0 && !c.Replaced {
			out = append(out, c)
		}
	}
	return out
}
