package kubevalue

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// An Action is what happens to a field's content.
type Action uint8

// Actions.
const (
	Overwrite Action = iota // the zero value: nothing of it stays
	Keep                    // stays, after Options.Check has looked at it
	Descend                 // a message: Fields decide
	MapKeys                 // a map: keys stay, MapValue decides about values
	EmptyJSON               // bytes that readers parse as JSON: become an empty object
)

// A Policy decides about one field and what is below it. The zero Policy
// overwrites. Numbers and booleans always stay, strings and bytes only where a
// Policy says so.
type Policy struct {
	Action Action
	Fields map[protowire.Number]*Policy // Descend: the others are overwritten
	// MapValue decides about the value of a map's key; nil overwrites all. A
	// returned nil overwrites.
	MapValue func(key []byte) *Policy
	// Edit, when set on a field that is kept, may overwrite parts of it in place.
	Edit func(content []byte)
}

// Options of Scrub.
type Options struct {
	// Check overwrites suspicious parts of a kept content in place and reports
	// whether it did. It may not change the length.
	Check func(content []byte) bool
	// Overwritten sees every content just before it is overwritten.
	Overwritten func(content []byte)
}

// Limits of the walk.
const (
	MaxDepth = 100
	// MaxValue is the largest value that is taken apart; larger ones are
	// overwritten whole.
	MaxValue = 8 << 20
)

var errWire = errors.New("not a message")

// ScrubMessage overwrites the fields of a message in place. On an error the
// message may be changed in part and must be overwritten whole by the caller.
func ScrubMessage(b []byte, p *Policy, o Options) error { return o.message(b, p, 0) }

func (o *Options) message(b []byte, p *Policy, depth int) error {
	if depth > MaxDepth {
		return errWire
	}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if typ == protowire.StartGroupType || typ == protowire.EndGroupType {
				return errWire
			}
			n := protowire.ConsumeFieldValue(num, typ, b)
			if n < 0 {
				return errWire
			}
			b = b[n:]
			continue
		}
		content, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if err := o.field(content, p.Fields[num], depth); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) field(content []byte, p *Policy, depth int) error {
	if p == nil {
		p = &Policy{}
	}
	switch p.Action {
	case Keep:
		o.keep(content, p)
	case Descend:
		return o.message(content, p, depth+1)
	case MapKeys:
		return o.mapEntry(content, p, depth+1)
	case EmptyJSON:
		o.note(content)
		FillJSON(content)
	default:
		o.overwrite(content)
	}
	return nil
}

// mapEntry is one entry of a map: {1 key, 2 value}.
func (o *Options) mapEntry(b []byte, p *Policy, depth int) error {
	var key, val []byte
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if typ != protowire.BytesType {
			n := protowire.ConsumeFieldValue(num, typ, b)
			if n < 0 || typ == protowire.StartGroupType {
				return errWire
			}
			b = b[n:]
			continue
		}
		c, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch num {
		case 1:
			key = c
		case 2:
			val = c
		default:
			o.overwrite(c)
		}
	}
	var vp *Policy
	if p.MapValue != nil {
		vp = p.MapValue(key)
	}
	o.keep(key, &Policy{})
	if val == nil {
		return nil
	}
	return o.field(val, vp, depth)
}

// keep leaves a content as it is unless Check finds something in it. What was
// found is overwritten; if the content was a message and no longer is, all of it
// goes.
func (o *Options) keep(content []byte, p *Policy) {
	if p.Edit != nil {
		p.Edit(content)
	}
	if o.Check == nil {
		return
	}
	before := isMessage(content, 0)
	if o.Check(content) && before && !isMessage(content, 0) {
		Fill(content)
	}
}

func (o *Options) note(content []byte) {
	if o.Overwritten != nil && len(content) > 0 {
		o.Overwritten(content)
	}
}

func (o *Options) overwrite(content []byte) {
	o.note(content)
	Fill(content)
}

// isMessage reports whether b can be read as a message.
func isMessage(b []byte, depth int) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || typ == protowire.StartGroupType || typ == protowire.EndGroupType || depth > MaxDepth {
			return false
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 {
			return false
		}
		b = b[n+m:]
	}
	return true
}

// Field returns the content of the last length-delimited field of that path, nil
// when it is not there.
func Field(b []byte, path ...protowire.Number) []byte {
	for _, want := range path {
		var found []byte
		for len(b) > 0 {
			num, typ, n := protowire.ConsumeTag(b)
			if n < 0 {
				return nil
			}
			m := protowire.ConsumeFieldValue(num, typ, b[n:])
			if m < 0 {
				return nil
			}
			if num == want && typ == protowire.BytesType {
				found, _ = protowire.ConsumeBytes(b[n:])
			}
			b = b[n+m:]
		}
		if found == nil {
			return nil
		}
		b = found
	}
	return bytes.Clone(b)
}
