package etcdctl

import (
	"strconv"
	"strings"
)

// fields reads the output of "-w fields": one `"Name" : value` a line and an
// empty line after every row. The answer's header has no row of its own: it
// stands in front of the first one. A name that comes twice in a row is the
// header's and then the row's.
func (p *parser) fields(b []line) {
	var cur, header map[string]string
	var peers, clients []string
	start, open := 0, false
	flush := func() {
		if cur == nil {
			return
		}
		if header == nil {
			header = cur
		}
		p.fieldRow(cur, header, peers, clients, start, &open)
		cur, peers, clients = nil, nil, nil
	}
	for _, l := range b {
		k, v, ok := fieldOf(l.s)
		if !ok {
			flush()
			continue
		}
		if cur == nil {
			cur, start = map[string]string{}, l.n
		}
		switch k {
		case "PeerURL":
			peers = append(peers, list(v)...)
		case "ClientURL":
			clients = append(clients, list(v)...)
		}
		cur[k] = v
	}
	flush()
}

func fieldOf(s string) (k, v string, ok bool) {
	if !fieldLine.MatchString(s) {
		return "", "", false
	}
	k, v, _ = strings.Cut(s[1:], `" : `)
	if u, err := strconv.Unquote(v); err == nil {
		v = u
	}
	return k, cut(v), true
}

func (p *parser) fieldRow(f, header map[string]string, urls, clients []string, n int, open *bool) {
	ref := p.ref.At(n, "")
	get := func(k string) uint64 {
		if v, ok := f[k]; ok {
			return anyID(v)
		}
		return anyID(header[k])
	}
	switch {
	case f["Endpoint"] != "" && f["RaftTerm"] != "" && (f["Version"] != "" || f["DBSize"] != ""):
		s := Status{Endpoint: f["Endpoint"], ID: get("MemberID"), ClusterID: get("ClusterID"), Version: f["Version"], Size: int64(anyID(f["DBSize"])),
			InUse: int64(anyID(f["DBSizeInUse"])), Leader: anyID(f["Leader"]), Learner: isTrue(f["IsLearner"]), Revision: int64(get("Revision")),
			Term: anyID(f["RaftTerm"]), Index: anyID(f["RaftIndex"]), Applied: anyID(f["RaftAppliedIndex"]), Errors: f["Errors"], Exact: true, Ref: ref}
		s.IsLeader = s.Leader != 0 && s.Leader == s.ID
		s.Text = cut("Endpoint " + s.Endpoint + " Version " + s.Version + " RaftTerm " + f["RaftTerm"] + " RaftIndex " + f["RaftIndex"])
		p.status(s)
	case f["Endpoint"] != "" && f["Hash"] != "":
		p.hash(Hash{Endpoint: f["Endpoint"], ClusterID: get("ClusterID"), ID: get("MemberID"), Hash: anyID(f["Hash"]), CompactRevision: int64(anyID(f["CompactRevision"])),
			HashRevision: int64(anyID(f["HashRevision"])), Revision: int64(get("Revision")), Ref: ref, Text: cut("Endpoint " + f["Endpoint"] + " Hash " + f["Hash"])})
	case f["Endpoint"] != "" && f["Health"] != "":
		p.health(Health{Endpoint: f["Endpoint"], Healthy: isTrue(f["Health"]), Error: f["Error"], Ref: ref, Text: cut("Endpoint " + f["Endpoint"] + " Health " + f["Health"])})
	case f["ID"] != "" && urls != nil:
		if !*open {
			p.openList(n)
			*open = true
			l := &p.out.Members[len(p.out.Members)-1]
			l.ClusterID, l.MemberID, l.RaftTerm = anyID(header["ClusterID"]), anyID(header["MemberID"]), anyID(header["RaftTerm"])
		}
		p.member(Member{ID: anyID(f["ID"]), Name: f["Name"], Started: f["Name"] != "", PeerURLs: urls, ClientURLs: clients, Learner: isTrue(f["IsLearner"]), Ref: ref,
			Text: cut("ID " + f["ID"] + " Name " + f["Name"] + " PeerURL " + strings.Join(urls, ","))})
	case f["AlarmType"] != "" || f["Alarm"] != "":
		p.alarm(Alarm{ID: anyID(f["MemberID"]), Type: f["AlarmType"] + f["Alarm"], Ref: ref})
	}
}

// anyID reads a number printed in decimal, or in hexadecimal where it cannot
// be decimal.
func anyID(s string) uint64 {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n
	}
	n, _ := hexID(strings.TrimPrefix(s, "0x"))
	return n
}
