package etcdctl

import (
	"regexp"
	"strings"
)

var (
	simpleHealth = regexp.MustCompile(`^(\S+) is (healthy|unhealthy): (.*)$`)
	simpleAlarm  = regexp.MustCompile(`^memberID:(\d+) alarm:([A-Z]+)\s*$`)
)

// simple reads the default output: values separated by ", ", without a header.
// Which command it was shows in the second value and in their number.
func (p *parser) simple(b []line) {
	open := false
	for _, l := range b {
		text := cut(l.s)
		if m := simpleHealth.FindStringSubmatch(l.s); m != nil {
			h := Health{Endpoint: cut(m[1]), Healthy: m[2] == "healthy", Ref: p.ref.At(l.n, ""), Text: text}
			if !h.Healthy {
				h.Error = cut(m[3])
			}
			p.health(h)
			continue
		}
		if m := simpleAlarm.FindStringSubmatch(l.s); m != nil {
			p.alarm(Alarm{ID: uintOf(m[1]), Type: m[2], Ref: p.ref.At(l.n, ""), Text: text})
			continue
		}
		f := strings.Split(l.s, ", ")
		if len(f) < 2 || len(f) > 64 {
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(strings.TrimSuffix(f[i], ","))
		}
		if m, ok := simpleMember(f); ok {
			if !open {
				p.openList(l.n)
				open = true
			}
			m.Ref, m.Text = p.ref.At(l.n, ""), text
			p.member(m)
			continue
		}
		if s, ok := simpleStatus(f); ok {
			s.Ref, s.Text = p.ref.At(l.n, ""), text
			p.status(s)
			continue
		}
		if (len(f) == 2 || len(f) == 3) && strings.Contains(f[0], ":") && uintOf(f[1]) > 0 {
			h := Hash{Endpoint: cut(f[0]), Hash: uintOf(f[1]), Ref: p.ref.At(l.n, ""), Text: text}
			if len(f) == 3 {
				h.HashRevision = int64(uintOf(f[2]))
			}
			p.hash(h)
		}
	}
}

// simpleMember reads "id, started, name, peers, clients[, learner]"; the
// learner column came with 3.4.
func simpleMember(f []string) (Member, bool) {
	id, ok := hexID(f[0])
	if !ok || len(f) < 4 || f[1] != "started" && f[1] != "unstarted" {
		return Member{}, false
	}
	m := Member{ID: id, Started: f[1] == "started", Name: cut(f[2]), PeerURLs: list(f[3])}
	if len(f) > 4 {
		m.ClientURLs = list(f[4])
	}
	if len(f) > 5 {
		m.Learner = isTrue(f[5])
	}
	return m, true
}

// simpleStatus reads "endpoint, id, version, [storage version,] size, ...":
// seven values in 3.3, ten in 3.4 and 3.5, more from 3.6 on.
func simpleStatus(f []string) (Status, bool) {
	if len(f) < 7 {
		return Status{}, false
	}
	id, ok := hexID(f[1])
	if !ok || !looksLikeVersion(f[2]) {
		return Status{}, false
	}
	s := Status{Endpoint: cut(f[0]), ID: id, Version: cut(f[2]), Size: -1, InUse: -1}
	rest := f[3:]
	if looksLikeVersion(rest[0]) {
		rest = rest[1:]
	}
	s.Size = bytesOf(rest[0])
	// The two booleans, or the one of 3.3, are the anchor for what follows.
	for i := 1; i < len(rest); i++ {
		if rest[i] != "true" && rest[i] != "false" {
			continue
		}
		s.IsLeader = isTrue(rest[i])
		i++
		if i < len(rest) && (rest[i] == "true" || rest[i] == "false") {
			s.Learner = isTrue(rest[i])
			i++
		}
		for j, v := range rest[i:] {
			switch j {
			case 0:
				s.Term = uintOf(v)
			case 1:
				s.Index = uintOf(v)
			case 2:
				s.Applied = uintOf(v)
			case 3:
				s.Errors = cut(v)
			}
		}
		return s, true
	}
	return Status{}, false
}

func looksLikeVersion(s string) bool {
	if s == "" || s[0] < '0' || s[0] > '9' || !strings.Contains(s, ".") || strings.Contains(s, " ") {
		return false
	}
	return strings.Count(s, ".") == 2
}
