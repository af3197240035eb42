package host

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
)

// A saved line of a tool's output.
type savedLine struct {
	text string
	ref  bundle.Ref
}

// saved returns the lines of the first file under listing/ or host/ whose name
// begins with one of the prefixes; nil if there is none.
func saved(n *bundle.Node, prefixes ...string) []savedLine {
	for _, dir := range []string{"/host", "/listing", ""} {
		for _, p := range prefixes {
			for _, f := range n.Glob(dir + "/" + p + "*.txt") {
				if lines := linesOf(f); len(lines) > 0 {
					return lines
				}
			}
		}
	}
	return nil
}

func linesOf(f *bundle.File) []savedLine {
	b, err := f.Bytes(maxFile)
	if err != nil {
		return nil
	}
	var out []savedLine
	for i, l := range bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n")) {
		out = append(out, savedLine{strings.TrimRight(string(l), "\r"), f.Line(i + 1)})
	}
	return out
}

// savedMounts reads df output: blocks (df, df -h, df -k, df -T) and, from
// another file, inodes (df -i).
func savedMounts(n *bundle.Node) *List[hostfacts.Mount] {
	l := &List[hostfacts.Mount]{}
	readDF(l, saved(n, "df-h", "df-k", "df.", "df-T", "df-P", "df"), false)
	readDF(l, saved(n, "df-i"), true)
	if len(l.Items) == 0 {
		return nil
	}
	return l
}

func readDF(l *List[hostfacts.Mount], lines []savedLine, inodes bool) {
	unit, typed := int64(1024), false
	for _, line := range lines {
		f := strings.Fields(line.text)
		if len(f) > 0 && f[0] == "Filesystem" {
			typed = len(f) > 1 && f[1] == "Type"
			inodes = strings.Contains(line.text, "Inodes")
			if strings.Contains(line.text, "1B-blocks") {
				unit = 1
			}
			continue
		}
		if typed && len(f) > 6 {
			f = append(f[:1:1], f[2:]...)
		}
		if len(f) < 6 || !strings.HasSuffix(f[4], "%") || !strings.HasPrefix(f[5], "/") {
			continue
		}
		total, ok1 := size(f[1], unit, inodes)
		avail, ok2 := size(f[3], unit, inodes)
		if !ok1 || !ok2 {
			continue
		}
		at := slices.IndexFunc(l.Items, func(m hostfacts.Mount) bool { return m.MountPoint == f[5] })
		if at < 0 {
			at = len(l.Items)
			l.Items = append(l.Items, hostfacts.Mount{Device: f[0], MountPoint: f[5]})
			l.Refs = append(l.Refs, line.ref)
		}
		m := &l.Items[at]
		if inodes {
			m.Inodes, m.InodesFree = total, avail
		} else {
			m.Size, m.Available, m.Free = total, avail, avail
		}
	}
}

// size reads "983G", "1.5T" or a plain number of units.
func size(s string, unit int64, plain bool) (int64, bool) {
	mult := float64(unit)
	if plain {
		mult = 1
	}
	if s == "" {
		return 0, false
	}
	if i := strings.IndexByte("KMGTP", s[len(s)-1]); i >= 0 {
		mult = float64(int64(1) << (10 * (i + 1)))
		s = s[:len(s)-1]
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 {
		return 0, false
	}
	return int64(v * mult), true
}

// savedSockets reads "ss -ltnp" output.
func savedSockets(n *bundle.Node) *List[hostfacts.Socket] {
	l := &List[hostfacts.Socket]{}
	proc := regexp.MustCompile(`users:\(\("([^"]+)",pid=(\d+)`)
	for _, line := range saved(n, "ss") {
		f := strings.Fields(line.text)
		at := slices.Index(f, "LISTEN")
		if at < 0 || len(f) < at+4 {
			continue
		}
		i := strings.LastIndexByte(f[at+3], ':')
		if i < 0 {
			continue
		}
		port, err := strconv.Atoi(f[at+3][i+1:])
		if err != nil {
			continue
		}
		s := hostfacts.Socket{Proto: "tcp", Port: port, Address: strings.Trim(f[at+3][:i], "[]")}
		if j := strings.IndexByte(s.Address, '%'); j >= 0 {
			s.Address = s.Address[:j]
		}
		if s.Address == "*" {
			s.Address = "::"
		}
		if m := proc.FindStringSubmatch(line.text); m != nil {
			s.Comm = m[1]
			s.PID, _ = strconv.Atoi(m[2])
		}
		l.Items, l.Refs = append(l.Items, s), append(l.Refs, line.ref)
	}
	if len(l.Items) == 0 {
		return nil
	}
	return l
}

// savedInterfaces reads "ip addr" and "ip -br addr" output.
func savedInterfaces(n *bundle.Node) *List[hostfacts.Interface] {
	l := &List[hostfacts.Interface]{}
	for _, line := range saved(n, "ip-addr", "ip-a", "ip_addr", "ip") {
		f := strings.Fields(line.text)
		switch {
		case len(f) >= 3 && (f[1] == "UP" || f[1] == "DOWN" || f[1] == "UNKNOWN"):
			l.Items = append(l.Items, hostfacts.Interface{Name: f[0], Up: f[1] != "DOWN", Addresses: f[2:]})
			l.Refs = append(l.Refs, line.ref)
		case len(f) >= 3 && strings.HasSuffix(f[0], ":") && strings.HasSuffix(f[1], ":"):
			l.Items = append(l.Items, hostfacts.Interface{Name: strings.TrimSuffix(f[1], ":"), Up: strings.Contains(f[2], "UP"), Addresses: []string{}})
			l.Refs = append(l.Refs, line.ref)
		case len(f) >= 2 && (f[0] == "inet" || f[0] == "inet6") && len(l.Items) > 0:
			i := &l.Items[len(l.Items)-1]
			i.Addresses = append(i.Addresses, f[1])
		}
	}
	if len(l.Items) == 0 {
		return nil
	}
	return l
}

// savedUnits reads "systemctl status" and "systemctl show" output.
func savedUnits(n *bundle.Node) *List[hostfacts.Unit] {
	l := &List[hostfacts.Unit]{}
	status := regexp.MustCompile(`^[●○×*] ?(\S+\.service)`)
	active := regexp.MustCompile(`^\s*Active: (\w+) \(([\w-]+)\)(?:.*\(Result: ([\w-]+)\))?`)
	for _, line := range saved(n, "systemctl") {
		key, val, show := strings.Cut(line.text, "=")
		last := len(l.Items) - 1
		switch {
		case status.MatchString(line.text):
			l.Items = append(l.Items, hostfacts.Unit{Name: status.FindStringSubmatch(line.text)[1]})
			l.Refs = append(l.Refs, line.ref)
		case show && key == "Id":
			l.Items = append(l.Items, hostfacts.Unit{Name: val})
			l.Refs = append(l.Refs, line.ref)
		case last < 0:
		case active.MatchString(line.text):
			m := active.FindStringSubmatch(line.text)
			l.Items[last].ActiveState, l.Items[last].SubState = m[1], m[2]
			l.Items[last].Result = cmp.Or(m[3], l.Items[last].Result)
			l.Refs[last] = line.ref
		case show && key == "ActiveState":
			l.Items[last].ActiveState = val
		case show && key == "SubState":
			l.Items[last].SubState = val
		case show && key == "Result":
			l.Items[last].Result = val
		case show && key == "NRestarts":
			l.Items[last].Restarts, _ = strconv.Atoi(val)
		}
	}
	if len(l.Items) == 0 {
		return nil
	}
	return l
}

// savedClock reads "timedatectl" and "chronyc tracking" output.
func savedClock(n *bundle.Node) *ClockInfo {
	clk := &ClockInfo{}
	for _, line := range saved(n, "timedatectl") {
		key, val, _ := strings.Cut(strings.TrimSpace(line.text), ":")
		val = strings.TrimSpace(val)
		switch key {
		case "System clock synchronized", "NTP synchronized":
			yes := val == "yes"
			clk.Synchronized, clk.Ref = &yes, line.ref
		case "Time zone":
			name, rest, _ := strings.Cut(val, " ")
			clk.Zone = name
			if i := strings.IndexAny(rest, "+-"); i >= 0 && len(rest) >= i+5 {
				h, err1 := strconv.Atoi(rest[i+1 : i+3])
				m, err2 := strconv.Atoi(rest[i+3 : i+5])
				if err1 == nil && err2 == nil {
					off := h*3600 + m*60
					if rest[i] == '-' {
						off = -off
					}
					clk.UTCOffset = &off
				}
			}
			if clk.Ref.IsZero() {
				clk.Ref = line.ref
			}
		}
	}
	offset := regexp.MustCompile(`^System time\s*: ([0-9.]+) seconds (fast|slow)`)
	for _, line := range saved(n, "chronyc") {
		if m := offset.FindStringSubmatch(line.text); m != nil {
			if v, err := strconv.ParseFloat(m[1], 64); err == nil {
				if m[2] == "slow" {
					v = -v
				}
				clk.OffsetSeconds, clk.Service, clk.Ref = &v, "chronyd", line.ref
			}
		}
	}
	if clk.Ref.IsZero() {
		return nil
	}
	return clk
}
