package logline

import (
	"math"
	"time"
)

// digits reads n decimal digits at the start of b, or returns -1.
func digits(b []byte, n int) int {
	if len(b) < n {
		return -1
	}
	v := 0
	for _, c := range b[:n] {
		if c < '0' || c > '9' {
			return -1
		}
		v = v*10 + int(c-'0')
	}
	return v
}

// clock reads "15:04:05" with an optional fraction, and returns the time of day
// and the number of bytes read, 0 if there is none.
func clock(b []byte) (time.Duration, int) {
	if len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0, 0
	}
	h, m, s := digits(b, 2), digits(b[3:], 2), digits(b[6:], 2)
	if h < 0 || m < 0 || s < 0 || h > 23 || m > 59 || s > 60 {
		return 0, 0
	}
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
	f, n := fraction(b[8:])
	return d + f, 8 + n
}

// fraction reads ".123456" or ",123" behind the seconds, and returns the number
// of bytes read, 0 if there is none.
func fraction(b []byte) (time.Duration, int) {
	if len(b) < 2 || b[0] != '.' && b[0] != ',' {
		return 0, 0
	}
	var d time.Duration
	unit := 100 * time.Millisecond
	n := 1
	for ; n < len(b) && b[n] >= '0' && b[n] <= '9'; n++ {
		d += time.Duration(b[n]-'0') * unit
		unit /= 10
	}
	if n == 1 {
		return 0, 0
	}
	return d, n
}

// date reads "2006-01-02" and returns its midnight.
func date(b []byte) (time.Time, bool) {
	if len(b) < 10 || b[4] != '-' || b[7] != '-' {
		return time.Time{}, false
	}
	y, m, d := digits(b, 4), digits(b[5:], 2), digits(b[8:], 2)
	if y < 0 || m < 1 || m > 12 || d < 1 || d > 31 {
		return time.Time{}, false
	}
	return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC), true
}

// zone reads "Z", "+01:00", "+0100" or "+01" and returns the offset and the
// number of bytes read, 0 if there is none.
func zone(b []byte) (time.Duration, int) {
	if len(b) == 0 {
		return 0, 0
	}
	if b[0] == 'Z' {
		return 0, 1
	}
	if b[0] != '+' && b[0] != '-' || len(b) < 3 {
		return 0, 0
	}
	h := digits(b[1:], 2)
	if h < 0 || h > 15 {
		return 0, 0
	}
	n, m := 3, 0
	rest := b[3:]
	colon := 0
	if len(rest) > 0 && rest[0] == ':' {
		colon = 1
	}
	if v := digits(rest[colon:], 2); v >= 0 && v < 60 {
		m, n = v, 5+colon
	}
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if b[0] == '-' {
		d = -d
	}
	return d, n
}

// stamp reads an ISO time with "T" or a blank between date and clock, and an
// optional zone. It returns the number of bytes read, 0 if there is none.
func stamp(b []byte) (Stamp, int) {
	if len(b) < 19 || b[10] != 'T' && b[10] != ' ' {
		return Stamp{}, 0
	}
	day, ok := date(b)
	if !ok {
		return Stamp{}, 0
	}
	d, n := clock(b[11:])
	if n == 0 {
		return Stamp{}, 0
	}
	n += 11
	t := day.Add(d)
	off, zn := zone(b[n:])
	if zn == 0 {
		return Stamp{Time: t, HasYear: true}, n
	}
	return Stamp{Time: t.Add(-off), Zoned: true, HasYear: true}, n + zn
}

var months = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// month reads an English month name of three letters, 0 if there is none.
func month(b []byte) time.Month {
	if len(b) < 3 {
		return 0
	}
	for i, m := range months {
		if b[0] == m[0] && b[1] == m[1] && b[2] == m[2] {
			return time.Month(i + 1)
		}
	}
	return 0
}

// yearless returns a time of the year 0.
func yearless(m time.Month, day int, d time.Duration) Stamp {
	return Stamp{Time: time.Date(0, m, day, 0, 0, 0, 0, time.UTC).Add(d)}
}

// WithYear places a yearless stamp: in the newest year that puts it no later
// than a day and a half after the reference, which is the newest time known
// about the file. Stamps with a year are returned as they are.
func (s Stamp) WithYear(ref time.Time) Stamp {
	if s.HasYear || s.IsZero() || ref.IsZero() {
		return s
	}
	limit := ref.Add(36 * time.Hour)
	for y := limit.Year(); ; y-- {
		t := time.Date(y, s.Time.Month(), s.Time.Day(), s.Time.Hour(), s.Time.Minute(), s.Time.Second(), s.Time.Nanosecond(), time.UTC)
		if !t.After(limit) && t.Day() == s.Time.Day() || y < limit.Year()-8 {
			s.Time, s.HasYear = t, true
			return s
		}
	}
}

// unixMillis is the time of a count of milliseconds, as klog's JSON gives it.
func unixMillis(ms float64) (Stamp, bool) {
	if math.IsNaN(ms) || ms < 1e11 || ms > 1e14 {
		return Stamp{}, false
	}
	return Stamp{Time: time.UnixMicro(int64(ms * 1000)).UTC(), Zoned: true, HasYear: true}, true
}
