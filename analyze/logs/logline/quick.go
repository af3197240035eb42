package logline

import (
	"bytes"
	"strconv"
	"time"
)

// A Clock reads the time of many lines cheaply: it remembers the last second it
// saw. The zero value is ready for use; it is not safe for concurrent use.
type Clock struct {
	second [19]byte // as written: 2006-01-02T15:04:05
	base   time.Time
}

// Quick returns the time at the beginning of a line without taking the line
// apart: of the wrapping if there is one, else of the line itself. The zero
// Stamp means that none is where it would be expected.
func (c *Clock) Quick(b []byte) Stamp {
	if len(b) < 15 {
		return Stamp{}
	}
	switch f := b[0]; {
	case f >= '0' && f <= '9':
		return c.iso(b)
	case f == '{':
		head := b[:min(len(b), 96)]
		if i := bytes.Index(head, []byte(`"ts":`)); i >= 0 && i+6 < len(b) {
			if b[i+5] == '"' {
				return c.iso(b[i+6:])
			}
			end := value(b, i+5)
			if ms, err := strconv.ParseFloat(string(b[i+5:end]), 64); err == nil {
				s, _ := unixMillis(ms)
				return s
			}
			return Stamp{}
		}
		const key = `"__REALTIME_TIMESTAMP":`
		if i := bytes.Index(b, []byte(key)); i >= 0 {
			us := int64(0)
			for _, d := range b[i+len(key) : min(len(b), i+len(key)+24)] {
				if d >= '0' && d <= '9' {
					us = us*10 + int64(d-'0')
				} else if d != '"' && d != ' ' || us > 0 {
					break
				}
			}
			return micros(us)
		}
	case f == 't' && bytes.HasPrefix(b, []byte(`time="`)):
		return c.iso(b[6:])
	case (f == 'I' || f == 'W' || f == 'E' || f == 'F') && b[1] >= '0' && b[1] <= '9':
		mon, day := digits(b[1:], 2), digits(b[3:], 2)
		if d, n := clock(b[6:]); n > 0 && mon >= 1 && mon <= 12 && day >= 1 && day <= 31 {
			return yearless(time.Month(mon), day, d)
		}
	case f >= 'A' && f <= 'S':
		var l Line
		if _, ok := l.short(b); ok {
			return l.Outer
		}
	}
	return Stamp{}
}

func (c *Clock) iso(b []byte) Stamp {
	if len(b) < 19 || b[10] != 'T' && b[10] != ' ' {
		return Stamp{}
	}
	if string(b[:19]) != string(c.second[:]) {
		day, ok := date(b)
		d, n := clock(b[11:19])
		if !ok || n == 0 {
			return Stamp{}
		}
		copy(c.second[:], b)
		c.base = day.Add(d)
	}
	d, n := fraction(b[19:])
	off, zn := zone(b[19+n:])
	return Stamp{Time: c.base.Add(d - off), Zoned: zn > 0, HasYear: true}
}
