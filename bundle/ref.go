package bundle

import "fmt"

// A Ref is where one piece of evidence was read. The zero Ref is refused in a finding.
type Ref struct {
	Input   string // id of the input ("b1")
	Node    string // node name; empty for evidence of the cluster as a whole
	Path    string // path inside the input
	Origin  string // absolute path on the node
	Line    int    // 1-based; 0 when lines have no meaning
	Pointer string // RFC 6901, inside YAML or JSON
	Offset  int64  // bytes from the start, in binary files
	Key     string // etcd key
	Rev     int64  // etcd main revision
}

// IsZero reports whether r points nowhere.
func (r Ref) IsZero() bool { return r == Ref{} }

// At returns r pointing at a line and a pointer inside the same file.
func (r Ref) At(line int, pointer string) Ref {
	r.Line, r.Pointer = line, pointer
	return r
}

// AtKey returns r pointing at a revision of an etcd key inside the same file.
func (r Ref) AtKey(key string, rev int64) Ref {
	r.Key, r.Rev = key, rev
	return r
}

func (r Ref) String() string {
	s := r.Path
	if r.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, r.Line)
	}
	if r.Key != "" {
		s += " " + r.Key
		if r.Rev > 0 {
			s = fmt.Sprintf("%s@%d", s, r.Rev)
		}
	}
	return s
}
