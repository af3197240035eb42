package etcdctl

import (
	"bytes"
	"encoding/json"
	"fmt"

	"coldplane/bundle"
)

// etcdctl's JSON is that of the client's Go structs: member ids are numbers,
// absent fields are zero.
type jsonHeader struct {
	ClusterID uint64 `json:"cluster_id"`
	MemberID  uint64 `json:"member_id"`
	Revision  int64  `json:"revision"`
	RaftTerm  uint64 `json:"raft_term"`
}

type jsonMember struct {
	ID         uint64   `json:"ID"`
	Name       string   `json:"name"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
	IsLearner  bool     `json:"isLearner"`
}

type jsonStatus struct {
	Header      jsonHeader `json:"header"`
	Version     string     `json:"version"`
	DBSize      int64      `json:"dbSize"`
	DBSizeInUse int64      `json:"dbSizeInUse"`
	Leader      uint64     `json:"leader"`
	RaftIndex   uint64     `json:"raftIndex"`
	RaftTerm    uint64     `json:"raftTerm"`
	Applied     uint64     `json:"raftAppliedIndex"`
	Errors      []string   `json:"errors"`
	IsLearner   bool       `json:"isLearner"`
}

type jsonObject struct {
	Header  jsonHeader      `json:"header"`
	Members json.RawMessage `json:"members"`
	Alarms  []struct {
		MemberID uint64          `json:"memberID"`
		Alarm    json.RawMessage `json:"alarm"`
	} `json:"alarms"`
}

type jsonRow struct {
	Endpoint string      `json:"endpoint"` // also "Endpoint": matching ignores case
	Status   *jsonStatus `json:"Status"`
	Health   *bool       `json:"health"`
	Error    string      `json:"error"`
	HashKV   *struct {
		Header          jsonHeader `json:"header"`
		Hash            uint64     `json:"hash"`
		CompactRevision int64      `json:"compact_revision"`
		HashRevision    int64      `json:"hash_revision"`
	} `json:"HashKV"`
}

// json reads one JSON output that begins at line n; false when it is none.
func (p *parser) json(text []byte, n int) bool {
	text = bytes.TrimSpace(text)
	if bytes.Equal(text, []byte("null")) {
		p.found = true // etcdctl printed an empty answer
		return true
	}
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return false
	}
	at := func(pointer string, off int64) bundle.Ref {
		return p.ref.At(n+bytes.Count(text[:min(max(off, 0), int64(len(text)))], []byte("\n")), pointer)
	}
	if text[0] == '{' {
		return p.jsonObject(text, at)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return false
	}
	any := false
	*p.batch++
	for i := 0; dec.More(); i++ {
		start := dec.InputOffset()
		var r jsonRow
		if dec.Decode(&r) != nil {
			break
		}
		start += int64(len(text[start:]) - len(bytes.TrimLeft(text[start:], " \t\r\n,")))
		ref := at(fmt.Sprintf("/%d", i), start)
		switch {
		case r.Status != nil:
			s := r.Status
			p.status(Status{Endpoint: cut(r.Endpoint), ID: s.Header.MemberID, ClusterID: s.Header.ClusterID, Version: cut(s.Version), Size: s.DBSize, InUse: s.DBSizeInUse,
				Leader: s.Leader, IsLeader: s.Leader != 0 && s.Leader == s.Header.MemberID, Learner: s.IsLearner, Revision: s.Header.Revision, Term: s.RaftTerm,
				Index: s.RaftIndex, Applied: s.Applied, Errors: cut(fmt.Sprint(s.Errors)), Exact: true, Ref: ref,
				Text: cut(fmt.Sprintf("%s member %x version %s leader %x raftTerm %d raftIndex %d raftAppliedIndex %d revision %d", r.Endpoint, s.Header.MemberID,
					s.Version, s.Leader, s.RaftTerm, s.RaftIndex, s.Applied, s.Header.Revision))})
			any = true
		case r.HashKV != nil:
			h := r.HashKV
			p.hash(Hash{Endpoint: cut(r.Endpoint), ClusterID: h.Header.ClusterID, ID: h.Header.MemberID, Hash: h.Hash, HashRevision: h.HashRevision,
				CompactRevision: h.CompactRevision, Revision: h.Header.Revision, Ref: ref,
				Text: cut(fmt.Sprintf("%s member %x hash %d hash_revision %d compact_revision %d", r.Endpoint, h.Header.MemberID, h.Hash, h.HashRevision, h.CompactRevision))})
			any = true
		case r.Health != nil:
			p.health(Health{Endpoint: cut(r.Endpoint), Healthy: *r.Health, Error: cut(r.Error), Ref: ref,
				Text: cut(fmt.Sprintf("%s health %v %s", r.Endpoint, *r.Health, r.Error))})
			any = true
		}
	}
	p.found = p.found || any
	return any
}

func (p *parser) jsonObject(text []byte, at func(string, int64) bundle.Ref) bool {
	var o jsonObject
	if json.Unmarshal(text, &o) != nil {
		return false
	}
	switch {
	case o.Members != nil:
		var ms []jsonMember
		if json.Unmarshal(o.Members, &ms) != nil {
			return false
		}
		p.found = true
		if len(p.out.Members) >= maxRows {
			return true
		}
		l := MemberList{Ref: at("/members", 0), ClusterID: o.Header.ClusterID, MemberID: o.Header.MemberID, RaftTerm: o.Header.RaftTerm, Endpoint: p.endpoint}
		for i, m := range ms[:min(len(ms), maxRows)] {
			off := int64(bytes.Index(text, fmt.Appendf(nil, "%d", m.ID)))
			l.Members = append(l.Members, Member{ID: m.ID, Name: cut(m.Name), Started: m.Name != "", PeerURLs: list(join(m.PeerURLs)), ClientURLs: list(join(m.ClientURLs)),
				Learner: m.IsLearner, Ref: at(fmt.Sprintf("/members/%d", i), off),
				Text: cut(fmt.Sprintf("%x name %q peerURLs %v clientURLs %v isLearner %v", m.ID, m.Name, m.PeerURLs, m.ClientURLs, m.IsLearner))})
		}
		p.out.Members = append(p.out.Members, l)
		return true
	case o.Alarms != nil:
		p.found = true
		for i, a := range o.Alarms {
			typ := string(bytes.Trim(a.Alarm, `"`))
			switch typ {
			case "1":
				typ = "NOSPACE"
			case "2":
				typ = "CORRUPT"
			}
			p.alarm(Alarm{ID: a.MemberID, Type: cut(typ), Ref: at(fmt.Sprintf("/alarms/%d", i), 0), Text: cut(fmt.Sprintf("member %x alarm %s", a.MemberID, typ))})
		}
		return true
	case o.Header.MemberID != 0:
		p.found = true // an answer without content: an alarm list with no alarm
		p.out.NoAlarms = append(p.out.NoAlarms, at("/header", 0))
		return true
	}
	return false
}

func join(s []string) string {
	var b bytes.Buffer
	for _, u := range s {
		b.WriteString(u)
		b.WriteByte(',')
	}
	return b.String()
}
