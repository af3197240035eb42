package walframe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
)

const (
	maxV2Depth   = 64
	maxV2Members = 4096
)

// A V2Store is what the JSON of a v2 store says about membership. Up to etcd
// 3.5 it decides who the members are.
type V2Store struct {
	Present bool
	Members []MemberInfo // by id
	Removed []uint64     // by id: once members, never again
	Version string       // of the cluster
	// UserKeys counts keys outside the part where etcd keeps membership:
	// somebody stored data over the v2 API.
	UserKeys int64
	// Dropped counts members beyond the number that is kept.
	Dropped int
	// Odd counts member records whose id or attributes could not be read.
	Odd int
}

// parseV2Store streams the JSON of a v2 store. Values other than membership
// are skipped and never kept.
func parseV2Store(b []byte) (V2Store, error) {
	p := v2Parser{dec: json.NewDecoder(bytes.NewReader(b)), members: make(map[uint64]*MemberInfo)}
	p.dec.UseNumber()
	p.store.Present = true
	err := p.object(0, func(key string) error {
		if key == "Root" {
			return p.node("", 1)
		}
		return p.skip(1)
	})
	if err == nil {
		if _, err = p.dec.Token(); err == io.EOF {
			err = nil
		} else if err == nil {
			err = fmt.Errorf("data after the end")
		}
	}
	for _, m := range p.members {
		p.store.Members = append(p.store.Members, *m)
	}
	sort.Slice(p.store.Members, func(i, j int) bool { return p.store.Members[i].ID < p.store.Members[j].ID })
	sort.Slice(p.store.Removed, func(i, j int) bool { return p.store.Removed[i] < p.store.Removed[j] })
	if err != nil {
		return p.store, fmt.Errorf("%w: %w", ErrSnapStore, err)
	}
	return p.store, nil
}

type v2Parser struct {
	dec     *json.Decoder
	store   V2Store
	members map[uint64]*MemberInfo
}

// node reads one node of the store's tree; path is its place in it.
func (p *v2Parser) node(path string, depth int) error {
	children := false
	err := p.object(depth, func(key string) error {
		switch key {
		case "Value":
			t, err := p.dec.Token()
			if err != nil {
				return err
			}
			if s, ok := t.(string); ok {
				p.value(path, s)
				return nil
			}
			return p.skipToken(t, depth)
		case "Children":
			t, err := p.dec.Token()
			if err != nil || t == nil {
				return err
			}
			if t != json.Delim('{') {
				return p.skipToken(t, depth)
			}
			children = true
			return p.body(depth, func(name string) error {
				return p.node(path+"/"+boundedString([]byte(name), maxPrefixBytes), depth+1)
			})
		}
		return p.skip(depth)
	})
	if err == nil {
		p.visit(path, children)
	}
	return err
}

// visit counts nodes outside etcd's own part. The directories /1 and /2 and
// the empty role directories of /2 exist without any use of the v2 API.
func (p *v2Parser) visit(path string, dir bool) {
	if dir || path == "" || path == "/0" || strings.HasPrefix(path, "/0/") {
		return
	}
	p.store.UserKeys++
}

// value takes the value of a node that describes a member.
func (p *v2Parser) value(path, v string) {
	if path == "/0/version" {
		p.store.Version = boundedString([]byte(v), 64)
		return
	}
	if hex, ok := strings.CutPrefix(path, "/0/removed_members/"); ok && !strings.Contains(hex, "/") {
		id, ok := parseHexID(hex)
		switch {
		case !ok:
			p.store.Odd++
		case len(p.store.Removed) < maxV2Members:
			p.store.Removed = append(p.store.Removed, id)
		default:
			p.store.Dropped++
		}
		return
	}
	rest, ok := strings.CutPrefix(path, "/0/members/")
	if !ok {
		return
	}
	hex, leaf, _ := strings.Cut(rest, "/")
	id, ok := parseHexID(hex)
	if !ok {
		p.store.Odd++
		return
	}
	m := p.members[id]
	if m == nil {
		if len(p.members) >= maxV2Members {
			p.store.Dropped++
			return
		}
		m = &MemberInfo{ID: id}
		p.members[id] = m
	}
	if leaf == "" {
		return // the directory itself
	}
	j, ok := parseMemberJSON([]byte(v))
	if !ok {
		p.store.Odd++
		return
	}
	switch leaf {
	case "attributes":
		m.Name, m.ClientURLs = j.Name, j.ClientURLs
	case "raftAttributes":
		m.PeerURLs, m.IsLearner = j.PeerURLs, j.IsLearner
	}
}

// object reads an object and calls f at every value.
func (p *v2Parser) object(depth int, f func(key string) error) error {
	t, err := p.dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return fmt.Errorf("an object was expected at byte %d", p.dec.InputOffset())
	}
	return p.body(depth, f)
}

// body reads what follows an opening brace.
func (p *v2Parser) body(depth int, f func(key string) error) error {
	if depth > maxV2Depth {
		return fmt.Errorf("nested deeper than %d at byte %d", maxV2Depth, p.dec.InputOffset())
	}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return fmt.Errorf("a name was expected at byte %d", p.dec.InputOffset())
		}
		if err := f(key); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

// skip reads one value and forgets it.
func (p *v2Parser) skip(depth int) error {
	t, err := p.dec.Token()
	if err != nil {
		return err
	}
	return p.skipToken(t, depth)
}

func (p *v2Parser) skipToken(t json.Token, depth int) error {
	open := 0
	for {
		switch t {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		if open == 0 {
			return nil
		}
		if depth+open > maxV2Depth {
			return fmt.Errorf("nested deeper than %d at byte %d", maxV2Depth, p.dec.InputOffset())
		}
		var err error
		if t, err = p.dec.Token(); err != nil {
			return err
		}
	}
}
