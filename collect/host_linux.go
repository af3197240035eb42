package collect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"coldplane/bundle/hostfacts"
	"coldplane/bundle/redact"
)

// host writes the facts of the machine: see package hostfacts for the files.
func (r *run) host(ctx context.Context, s *sink) error {
	start := r.o.Now().UTC()
	mono := time.Now() //nolint:forbidigo // monotonic part only
	boot := bootTime()
	s.json(hostfacts.NodePath, hostNode(boot))
	procs := processes(ctx, boot)
	s.json(hostfacts.ProcessesPath, kept(procs))
	s.json(hostfacts.SocketsPath, sockets(ctx, procs))
	s.json(hostfacts.MountsPath, mounts(ctx, r.root))
	s.json(hostfacts.BlocksPath, blocks())
	s.json(hostfacts.InterfacesPath, interfaces())
	s.json(hostfacts.SysctlsPath, sysctls())
	if u, err := units(ctx); err != nil {
		s.fail("systemctl", err)
	} else {
		s.json(hostfacts.UnitsPath, u)
	}
	clock := hostfacts.Clock{Start: start, Zone: readClock(r.o.Now, r.root).Zone}
	if c := readClock(r.o.Now, r.root); c.Unsynchronised != nil {
		sync := !*c.Unsynchronised
		clock.Synchronized = &sync
	}
	_, off := time.Now().Local().Zone() //nolint:forbidigo // the offset, not the time
	clock.UTCOffset = &off
	clockSource(ctx, procs, &clock)
	clock.End = r.o.Now().UTC()
	clock.MonotonicNano = time.Since(mono).Nanoseconds()
	s.json(hostfacts.ClockPath, clock)
	return ctx.Err()
}

func readText(p string) string {
	b, err := os.ReadFile(p)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func bootTime() time.Time {
	for line := range strings.Lines(readText("/proc/stat")) {
		if v, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
				return time.Unix(n, 0).UTC()
			}
		}
	}
	return time.Time{}
}

func hostNode(boot time.Time) hostfacts.Node {
	n := hostfacts.Node{CPUs: runtime.NumCPU(), MachineID: readText("/etc/machine-id"), BootID: readText("/proc/sys/kernel/random/boot_id")}
	n.Hostname, _ = os.Hostname()
	if !boot.IsZero() {
		n.BootTime = &boot
	}
	f := readNode(&nodeRoot{path: "/"})
	n.Kernel, n.Arch = f.Kernel, f.Arch
	for line := range strings.Lines(readText("/etc/os-release") + "\n") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			n.OS = strings.Trim(v, `"`)
		}
	}
	for line := range strings.Lines(readText("/proc/meminfo") + "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "MemTotal:":
			n.MemTotal = kb << 10
		case "MemAvailable:":
			n.MemAvailable = kb << 10
		}
	}
	if b, err := os.ReadFile("/proc/swaps"); err == nil {
		n.Swaps = []hostfacts.Swap{}
		for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			if f := strings.Fields(line); i > 0 && len(f) >= 4 {
				size, _ := strconv.ParseInt(f[2], 10, 64)
				used, _ := strconv.ParseInt(f[3], 10, 64)
				n.Swaps = append(n.Swaps, hostfacts.Swap{Device: f[0], Size: size << 10, Used: used << 10})
			}
		}
	}
	var st unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &st) == nil {
		v2 := st.Type == unix.CGROUP2_SUPER_MAGIC
		n.CgroupV2 = &v2
	}
	n.Vendor, n.Product, n.SystemUUID = readText("/sys/class/dmi/id/sys_vendor"), readText("/sys/class/dmi/id/product_name"), readText("/sys/class/dmi/id/product_uuid")
	return n
}

// known are programs whose arguments are taken, masked by the flags' list.
var known = regexp.MustCompile(`^(kube-apiserver|kube-controller|kube-scheduler|kube-proxy|kubelet|etcd|containerd|crio|dockerd|cri-dockerd|haproxy|keepalived|kube-vip|chronyd|ntpd|systemd-timesyn|coredns)`)

const ticks = 100 // USER_HZ, the same on every architecture Linux supports here

func processes(ctx context.Context, boot time.Time) (out []hostfacts.Process) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if ctx.Err() != nil || len(out) > 32768 {
			break
		}
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			continue
		}
		stat := readText(d + "/stat")
		open, shut := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
		if open < 0 || shut < open {
			continue
		}
		f := strings.Fields(stat[shut+1:])
		if len(f) < 22 {
			continue
		}
		p := hostfacts.Process{PID: pid, Comm: stat[open+1 : shut], State: f[0]}
		p.PPID, _ = strconv.Atoi(f[1])
		if t, err := strconv.ParseInt(f[19], 10, 64); err == nil && !boot.IsZero() {
			at := boot.Add(time.Duration(t) * time.Second / ticks).UTC()
			p.StartedAt = &at
		}
		if rss, err := strconv.ParseInt(f[21], 10, 64); err == nil {
			p.RSS = rss * int64(os.Getpagesize())
		}
		if fi, err := os.Stat(d); err == nil {
			var st unix.Stat_t
			if unix.Stat(d, &st) == nil {
				p.UID = int(st.Uid)
			}
			_ = fi
		}
		if known.MatchString(p.Comm) {
			p.Exe, _ = os.Readlink(d + "/exe")
			if b, err := os.ReadFile(d + "/cmdline"); err == nil && len(b) > 0 {
				p.Args = redact.Args(strings.Split(strings.TrimRight(string(b[:min(len(b), 64<<10)]), "\x00"), "\x00"))
			}
			p.ContainerID = containerID(readText(d + "/cgroup"))
			if fds, err := os.ReadDir(d + "/fd"); err == nil {
				p.OpenFiles = len(fds)
			}
			for line := range strings.Lines(readText(d+"/limits") + "\n") {
				if v, ok := strings.CutPrefix(line, "Max open files"); ok {
					if f := strings.Fields(v); len(f) > 0 {
						p.FileLimit, _ = strconv.ParseInt(f[0], 10, 64)
					}
				}
			}
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b hostfacts.Process) int { return a.PID - b.PID })
	return out
}

var cgroupID = regexp.MustCompile(`([0-9a-f]{64})`)

func containerID(s string) string { return cgroupID.FindString(s) }

// kept are the processes that are named one by one: those of the control plane,
// and whatever hangs or is dead.
func kept(all []hostfacts.Process) []hostfacts.Process {
	out := []hostfacts.Process{}
	for _, p := range all {
		if known.MatchString(p.Comm) || p.State == "D" || p.State == "Z" {
			out = append(out, p)
		}
	}
	return out
}

// sockets are the listening ones.
func sockets(ctx context.Context, procs []hostfacts.Process) []hostfacts.Socket {
	owner := map[string]hostfacts.Process{}
	for _, p := range procs {
		if ctx.Err() != nil {
			break
		}
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if l, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID, fd.Name())); err == nil {
				if ino, ok := strings.CutPrefix(l, "socket:["); ok {
					owner[strings.TrimSuffix(ino, "]")] = p
				}
			}
		}
	}
	out := []hostfacts.Socket{}
	for _, proto := range []string{"tcp", "tcp6", "udp", "udp6"} {
		f, err := os.Open("/proc/net/" + proto)
		if err != nil {
			continue
		}
		sc := bufio.NewScanner(f)
		for sc.Scan() && len(out) < 10000 {
			c := strings.Fields(sc.Text())
			if len(c) < 10 || strings.HasPrefix(proto, "tcp") && c[3] != "0A" || strings.HasPrefix(proto, "udp") && c[3] != "07" {
				continue
			}
			addr, port, ok := procAddress(c[1])
			if !ok {
				continue
			}
			p := owner[c[9]]
			out = append(out, hostfacts.Socket{Proto: proto, Address: addr, Port: port, PID: p.PID, Comm: p.Comm})
		}
		f.Close()
	}
	return out
}

func procAddress(s string) (string, int, bool) {
	a, p, ok := strings.Cut(s, ":")
	port, err := strconv.ParseUint(p, 16, 16)
	b, err2 := hex.DecodeString(a)
	if !ok || err != nil || err2 != nil || len(b)%4 != 0 {
		return "", 0, false
	}
	for i := 0; i < len(b); i += 4 { // words in host order
		slices.Reverse(b[i : i+4])
	}
	return net.IP(b).String(), int(port), true
}

func mounts(ctx context.Context, r *nodeRoot) []hostfacts.Mount {
	out := []hostfacts.Mount{}
	for line := range strings.Lines(readText("/proc/self/mountinfo") + "\n") {
		f := strings.Fields(line)
		i := slices.Index(f, "-")
		if i < 6 || i+3 >= len(f) || ctx.Err() != nil {
			continue
		}
		m := hostfacts.Mount{Device: redact.String(f[i+2]), MountPoint: unescape(f[4]), FSType: f[i+1], DevNumber: f[2], Options: redact.String(f[5])}
		m.ReadOnly = slices.Contains(strings.Split(f[5], ","), "ro")
		if real := !r.remote(m.MountPoint) && (strings.HasPrefix(f[i+2], "/") || m.FSType == "tmpfs" || m.FSType == "overlay" || m.FSType == "zfs" || m.FSType == "btrfs"); !real {
			if strings.HasPrefix(m.MountPoint, "/var/lib/kubelet/pods/") || m.FSType == "proc" || m.FSType == "sysfs" {
				continue
			}
		} else if !strings.HasPrefix(m.MountPoint, "/run/containerd") && !strings.HasPrefix(m.MountPoint, "/var/lib/kubelet/pods/") {
			var st unix.Statfs_t
			if err := unix.Statfs(m.MountPoint, &st); err != nil {
				m.Error = err.Error()
			} else {
				bs := st.Bsize
				m.Size, m.Free, m.Available = int64(st.Blocks)*bs, int64(st.Bfree)*bs, int64(st.Bavail)*bs
				m.Inodes, m.InodesFree = int64(st.Files), int64(st.Ffree)
			}
		} else {
			continue
		}
		if out = append(out, m); len(out) > 2000 {
			break
		}
	}
	return out
}

func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func blocks() []hostfacts.Block {
	out := []hostfacts.Block{}
	devs, _ := os.ReadDir("/sys/class/block")
	for _, d := range devs {
		base := "/sys/class/block/" + d.Name()
		if strings.HasPrefix(d.Name(), "loop") || strings.HasPrefix(d.Name(), "ram") {
			continue
		}
		b := hostfacts.Block{Name: d.Name(), DevNumber: readText(base + "/dev"), Model: readText(base + "/device/model")}
		if n, err := strconv.ParseInt(readText(base+"/size"), 10, 64); err == nil {
			b.Size = n * 512
		}
		if l, err := os.Readlink(base); err == nil && readText(base+"/partition") != "" {
			b.Parent = filepath.Base(filepath.Dir(l))
		}
		if v := readText(base + "/queue/rotational"); v != "" {
			rot := v == "1"
			b.Rotational = &rot
		}
		if v := readText(base + "/queue/scheduler"); v != "" {
			if i, j := strings.IndexByte(v, '['), strings.IndexByte(v, ']'); i >= 0 && j > i {
				b.Scheduler = v[i+1 : j]
			}
		}
		out = append(out, b)
	}
	return out
}

func interfaces() []hostfacts.Interface {
	out := []hostfacts.Interface{}
	is, _ := net.Interfaces()
	for _, i := range is {
		if strings.HasPrefix(i.Name, "veth") || strings.HasPrefix(i.Name, "cali") || len(out) > 500 {
			continue
		}
		x := hostfacts.Interface{Name: i.Name, Up: i.Flags&net.FlagUp != 0, MTU: i.MTU, Addresses: []string{}}
		as, _ := i.Addrs()
		for _, a := range as {
			x.Addresses = append(x.Addresses, a.String())
		}
		out = append(out, x)
	}
	return out
}

func sysctls() map[string]string {
	out := map[string]string{}
	for _, k := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.bridge.bridge-nf-call-iptables", "vm.overcommit_memory", "vm.swappiness", "vm.dirty_ratio",
		"vm.dirty_background_ratio", "fs.file-max", "fs.inotify.max_user_instances", "fs.inotify.max_user_watches", "kernel.panic", "kernel.panic_on_oops", "net.ipv4.ip_local_port_range",
		"net.core.somaxconn", "net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_count", "kernel.pid_max"} {
		if v := readText("/proc/sys/" + strings.ReplaceAll(k, ".", "/")); v != "" {
			out[k] = v
		}
	}
	return out
}

// units asks systemd about the services a control plane needs.
func units(ctx context.Context) ([]hostfacts.Unit, error) {
	names := []string{"kubelet.service", "containerd.service", "crio.service", "docker.service", "etcd.service", "keepalived.service", "haproxy.service", "chronyd.service", "chrony.service",
		"systemd-timesyncd.service", "ntpd.service", "ntp.service", "firewalld.service", "ufw.service"}
	b, err := command(ctx, 5, 1<<20, "systemctl", append([]string{"show", "--no-pager", "--timestamp=unix",
		"-p", "Id,LoadState,ActiveState,SubState,UnitFileState,Result,NRestarts,ExecMainStatus,MainPID,ActiveEnterTimestamp,InactiveEnterTimestamp,StateChangeTimestamp"}, names...)...)
	if err != nil {
		return nil, err
	}
	out := []hostfacts.Unit{}
	for _, block := range bytes.Split(b, []byte("\n\n")) {
		u := hostfacts.Unit{}
		for line := range strings.Lines(string(block)) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			n, _ := strconv.Atoi(v)
			when := func() *time.Time {
				if s, err := strconv.ParseInt(strings.TrimPrefix(v, "@"), 10, 64); err == nil && s > 0 {
					t := time.Unix(s, 0).UTC()
					return &t
				}
				return nil
			}
			switch k {
			case "Id":
				u.Name = v
			case "LoadState":
				u.LoadState = v
			case "ActiveState":
				u.ActiveState = v
			case "SubState":
				u.SubState = v
			case "UnitFileState":
				u.FileState = v
			case "Result":
				u.Result = v
			case "NRestarts":
				u.Restarts = n
			case "ExecMainStatus":
				u.ExitStatus = n
			case "MainPID":
				u.MainPID = n
			case "ActiveEnterTimestamp":
				u.ActiveSince = when()
			case "InactiveEnterTimestamp":
				u.InactiveSince = when()
			case "StateChangeTimestamp":
				u.StateChangedAt = when()
			}
		}
		if u.Name != "" && u.LoadState != "not-found" {
			out = append(out, u)
		}
	}
	return out, nil
}

// clockSource asks the time service, if a known one runs, how far off the clock
// is.
func clockSource(ctx context.Context, procs []hostfacts.Process, c *hostfacts.Clock) {
	for _, p := range procs {
		switch {
		case p.Comm == "chronyd", p.Comm == "ntpd":
			c.Service = p.Comm
		case strings.HasPrefix(p.Comm, "systemd-timesyn"):
			c.Service = "systemd-timesyncd"
		}
	}
	if c.Service != "chronyd" {
		return
	}
	b, err := command(ctx, 3, 4096, "chronyc", "-c", "tracking")
	if err != nil {
		return
	}
	f := strings.Split(strings.TrimSpace(string(b)), ",")
	if len(f) < 5 {
		return
	}
	c.Source = f[1]
	if off, err := strconv.ParseFloat(f[4], 64); err == nil {
		c.OffsetSeconds = &off
	}
}
