package etcdctl

import "strings"

// isTable tells a line of a table: etcdctl draws them with ASCII up to 3.5 and
// with box characters since.
func isTable(s string) bool {
	return strings.HasPrefix(s, "+-") || strings.HasPrefix(s, "|") || strings.HasPrefix(s, "┌") || strings.HasPrefix(s, "│")
}

// cells splits a row of a table; nil for a border.
func cells(s string) []string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "│", "|")
	if !strings.HasPrefix(s, "|") {
		return nil
	}
	s = strings.TrimSuffix(strings.TrimPrefix(s, "|"), "|")
	parts := strings.Split(s, "|")
	if len(parts) > 64 {
		return nil
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// row gives cells by the table's header.
type row struct {
	head  map[string]int
	cells []string
}

func (r row) get(names ...string) string {
	for _, n := range names {
		if i, ok := r.head[n]; ok && i < len(r.cells) {
			return r.cells[i]
		}
	}
	return ""
}

func (r row) has(name string) bool { _, ok := r.head[name]; return ok }

// table reads a table of any of the commands.
func (p *parser) table(b []line) {
	var head map[string]int
	for _, l := range b {
		c := cells(l.s)
		if c == nil {
			continue
		}
		if head == nil {
			head = map[string]int{}
			for i, h := range c {
				head[strings.ToUpper(h)] = i
			}
			p.tableFound(row{head: head}, b[0])
			continue
		}
		p.tableRow(row{head, c}, l)
	}
}

// tableFound opens a member list, which may turn out to be empty.
func (p *parser) tableFound(r row, l line) {
	switch {
	case r.has("PEER ADDRS"):
		p.openList(l.n)
	case r.has("ENDPOINT"):
		p.found = true
	}
}

func (p *parser) openList(n int) {
	p.found = true
	if len(p.out.Members) < maxRows {
		p.out.Members = append(p.out.Members, MemberList{Ref: p.ref.At(n, ""), Endpoint: p.endpoint})
	}
}

func (p *parser) tableRow(r row, l line) {
	text := strings.Join(strings.Fields(strings.ReplaceAll(l.s, "│", "|")), " ")
	switch {
	case r.has("PEER ADDRS"):
		if id, ok := hexID(r.get("ID")); ok {
			p.member(Member{ID: id, Name: cut(r.get("NAME")), Started: r.get("STATUS") == "started", PeerURLs: list(r.get("PEER ADDRS")),
				ClientURLs: list(r.get("CLIENT ADDRS")), Learner: isTrue(r.get("IS LEARNER")), Ref: p.ref.At(l.n, ""), Text: cut(text)})
		}
	case r.has("RAFT TERM"):
		s := Status{Endpoint: cut(r.get("ENDPOINT")), Version: cut(r.get("VERSION")), Size: bytesOf(r.get("DB SIZE")), InUse: bytesOf(r.get("IN USE", "DB SIZE IN USE")),
			IsLeader: isTrue(r.get("IS LEADER")), Learner: isTrue(r.get("IS LEARNER")), Term: uintOf(r.get("RAFT TERM")),
			Index: uintOf(r.get("RAFT INDEX")), Applied: uintOf(r.get("RAFT APPLIED INDEX")), Errors: cut(r.get("ERRORS")),
			Ref: p.ref.At(l.n, ""), Text: cut(text)}
		if id, ok := hexID(r.get("ID")); ok {
			s.ID = id
			p.status(s)
		}
	case r.has("HEALTH"):
		p.health(Health{Endpoint: cut(r.get("ENDPOINT")), Healthy: isTrue(r.get("HEALTH")), Error: cut(r.get("ERROR")), Ref: p.ref.At(l.n, ""), Text: cut(text)})
	case r.has("HASH"):
		p.hash(Hash{Endpoint: cut(r.get("ENDPOINT")), Hash: uintOf(r.get("HASH")), HashRevision: int64(uintOf(r.get("HASH REVISION", "HASH_REVISION"))),
			Ref: p.ref.At(l.n, ""), Text: cut(text)})
	case r.has("ALARM"):
		if id, ok := hexID(r.get("MEMBER", "MEMBERID", "ID")); ok {
			p.alarm(Alarm{ID: id, Type: cut(r.get("ALARM")), Ref: p.ref.At(l.n, ""), Text: cut(text)})
		}
	}
}

func (p *parser) member(m Member) {
	p.found = true
	if n := len(p.out.Members); n > 0 && len(p.out.Members[n-1].Members) < maxRows {
		l := &p.out.Members[n-1]
		l.Members = append(l.Members, m)
	}
}

func (p *parser) status(s Status) {
	p.found = true
	s.Batch = *p.batch
	if len(p.out.Status) < maxRows {
		p.out.Status = append(p.out.Status, s)
	}
}

func (p *parser) health(h Health) {
	p.found = true
	if len(p.out.Health) < maxRows {
		p.out.Health = append(p.out.Health, h)
	}
}

func (p *parser) hash(h Hash) {
	p.found = true
	h.Batch = *p.batch
	if len(p.out.Hashes) < maxRows {
		p.out.Hashes = append(p.out.Hashes, h)
	}
}

func (p *parser) alarm(a Alarm) {
	p.found = true
	if len(p.out.Alarms) < maxRows {
		p.out.Alarms = append(p.out.Alarms, a)
	}
}
