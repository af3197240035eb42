package walframe

import (
	"bytes"
	"strconv"
)

const (
	maxPrefixes    = 4096
	maxPrefixBytes = 256
	// OtherPrefix collects writes beyond the number of prefixes kept apart.
	OtherPrefix = "(other)"
)

// tally gathers what entries say.
type tally struct {
	log      *Log
	prefixes map[string]*PrefixStat
}

func newTally(l *Log) *tally {
	l.Kinds = make(map[Kind]KindStat)
	return &tally{log: l, prefixes: make(map[string]*PrefixStat)}
}

func (t *tally) kind(k Kind, n int64) {
	if !k.named() {
		k = OtherRequest
	}
	s := t.log.Kinds[k]
	s.Entries++
	s.Bytes += n
	t.log.Kinds[k] = s
}

// named keeps the map of kinds small: a hostile log may use any number.
func (k Kind) named() bool { return k < 0 || knownRequest(int32(k)) }

func (t *tally) write(key []byte, value int64) {
	p := t.prefix(key)
	p.Puts++
	p.ValueBytes += value
	p.LargestValue = max(p.LargestValue, value)
}

func (t *tally) remove(key []byte) { t.prefix(key).Deletes++ }

func (t *tally) prefix(key []byte) *PrefixStat {
	k := keyPrefix(key)
	if p := t.prefixes[string(k)]; p != nil {
		return p
	}
	name := OtherPrefix
	if len(t.prefixes) < maxPrefixes {
		name = string(bytes.ToValidUTF8(k, []byte("\uFFFD")))
	}
	p := t.prefixes[name]
	if p == nil {
		p = new(PrefixStat)
		t.prefixes[name] = p
	}
	return p
}

// keyPrefix is the part of a key that names its resource type: two path
// elements, three where the second is an API group or the split "services".
func keyPrefix(key []byte) []byte {
	end, parts, want := 0, 0, 2
	for end < len(key) && parts < want {
		next := bytes.IndexByte(key[min(end+1, len(key)):], '/')
		if next < 0 {
			if parts == 0 || parts+1 < want {
				return bounded(key)
			}
			return bounded(key[:end]) // the rest is a name
		}
		part := key[end+1 : end+1+next]
		end += 1 + next
		parts++
		if parts == 2 && (bytes.IndexByte(part, '.') >= 0 || string(part) == "services") {
			want = 3
		}
	}
	return bounded(key[:end])
}

func bounded(b []byte) []byte {
	if len(b) > maxPrefixBytes {
		return b[:maxPrefixBytes]
	}
	return b
}

// finish copies the counters out and trims the lists.
func (t *tally) finish() {
	t.log.Prefixes = make(map[string]PrefixStat, len(t.prefixes))
	for k, v := range t.prefixes {
		t.log.Prefixes[k] = *v
	}
	t.log.Marks.shrink()
	t.log.ConfChanges.shrink()
	t.log.Alarms.shrink()
	t.log.Attrs.shrink()
	t.log.Versions.shrink()
	t.log.Terms.shrink()
}

func parseHexID(s string) (uint64, bool) {
	if s == "" || len(s) > 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 16, 64)
	return n, err == nil
}
