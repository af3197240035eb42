package kubevalue

import "errors"

var errJSON = errors.New("not JSON")

// MaxJSONDepth is the nesting of a JSON value that is taken apart.
const MaxJSONDepth = 200

// A JSONPolicy decides about one JSON value and what is below it. Arrays are
// transparent: a policy for an array is that of its elements. The nil policy
// overwrites every string and digit below and keeps keys, structure, true, false
// and null.
type JSONPolicy struct {
	Keep   bool                   // this value stays, with all below it
	Fields map[string]*JSONPolicy // of an object
	// Any decides about the fields of an object that Fields does not name.
	Any func(key []byte) *JSONPolicy
	// Hide overwrites everything below, keys too.
	Hide bool
}

// ScrubJSON overwrites a JSON text in place. On an error the text may be changed
// in part and must be overwritten whole by the caller.
func ScrubJSON(b []byte, p *JSONPolicy, o Options) error {
	s := jsonScrub{b: b, o: o}
	if err := s.value(p, 0); err != nil {
		return err
	}
	s.space()
	if s.i != len(b) {
		return errJSON
	}
	return nil
}

type jsonScrub struct {
	b []byte
	i int
	o Options
}

func (s *jsonScrub) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

func (s *jsonScrub) value(p *JSONPolicy, depth int) error {
	if depth > MaxJSONDepth {
		return errJSON
	}
	s.space()
	if s.i >= len(s.b) {
		return errJSON
	}
	switch c := s.b[s.i]; {
	case c == '{':
		return s.object(p, depth)
	case c == '[':
		return s.array(p, depth)
	case c == '"':
		str, err := s.str()
		if err != nil {
			return err
		}
		if p != nil && p.Keep {
			s.check(str)
			return nil
		}
		s.o.note(str)
		FillText(str)
		return nil
	case c == '-' || c >= '0' && c <= '9':
		start := s.i
		for s.i < len(s.b) && isNumber(s.b[s.i]) {
			if (p == nil || !p.Keep) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
				s.b[s.i] = '1'
			}
			s.i++
		}
		if s.i == start {
			return errJSON
		}
		return nil
	}
	for _, w := range [...]string{"true", "false", "null"} {
		if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
			s.i += len(w)
			return nil
		}
	}
	return errJSON
}

func isNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func (s *jsonScrub) object(p *JSONPolicy, depth int) error {
	s.i++
	for first := true; ; first = false {
		s.space()
		if s.i >= len(s.b) {
			return errJSON
		}
		if s.b[s.i] == '}' {
			s.i++
			return nil
		}
		if !first {
			if s.b[s.i] != ',' {
				return errJSON
			}
			s.i++
			s.space()
		}
		key, err := s.str()
		if err != nil {
			return err
		}
		sub := p.below(key)
		s.space()
		if s.i >= len(s.b) || s.b[s.i] != ':' {
			return errJSON
		}
		s.i++
		if p != nil && p.Hide {
			s.o.note(key)
			FillText(key)
		} else {
			s.check(key)
		}
		if err := s.value(sub, depth+1); err != nil {
			return err
		}
	}
}

func (p *JSONPolicy) below(key []byte) *JSONPolicy {
	switch {
	case p == nil:
		return nil
	case p.Keep || p.Hide:
		return p
	}
	if sub, ok := p.Fields[string(key)]; ok {
		return sub
	}
	if p.Any != nil {
		return p.Any(key)
	}
	return nil
}

func (s *jsonScrub) array(p *JSONPolicy, depth int) error {
	s.i++
	for first := true; ; first = false {
		s.space()
		if s.i >= len(s.b) {
			return errJSON
		}
		if s.b[s.i] == ']' {
			s.i++
			return nil
		}
		if !first {
			if s.b[s.i] != ',' {
				return errJSON
			}
			s.i++
		}
		if err := s.value(p, depth+1); err != nil {
			return err
		}
	}
}

// str consumes a string and returns what is between its quotes.
func (s *jsonScrub) str() ([]byte, error) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return nil, errJSON
	}
	s.i++
	start := s.i
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '\\':
			s.i += 2
		case '"':
			str := s.b[start:s.i:s.i]
			s.i++
			return str, nil
		default:
			s.i++
		}
	}
	return nil, errJSON
}

// check looks at a kept string. One in which something is found goes whole:
// overwriting a part could cut an escape sequence in two.
func (s *jsonScrub) check(str []byte) {
	if s.o.Check != nil && s.o.Check(str) {
		FillText(str)
	}
}
