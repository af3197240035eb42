package collect

import (
	"bytes"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"coldplane/bundle/archive"
)

type nodeFacts struct{ Kernel, Arch string }

func effectiveUID() int { return os.Geteuid() }

func readNode(r *nodeRoot) (n nodeFacts) {
	if r.path != "/" {
		return n
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		n.Kernel, n.Arch = unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:])
	}
	return n
}

var (
	nodeUser = regexp.MustCompile(`system:node:([a-z0-9.-]+)`)
	etcdName = regexp.MustCompile(`(?m)^\s*- --name=["']?([A-Za-z0-9._-]+)`)
	override = regexp.MustCompile(`--hostname-override=([A-Za-z0-9.-]+)`)
	goodName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

func isGoodName(s string) bool { return len(s) <= 202 && goodName.MatchString(s) }

// nodeName is what Kubernetes calls the node, as far as its files say.
func nodeName(r *nodeRoot) string {
	for _, s := range []struct {
		p  string
		re *regexp.Regexp
	}{{kubeletDir + "/kubeadm-flags.env", override}, {kubeDir + "/kubelet.conf", nodeUser}, {kubeDir + "/manifests/etcd.yaml", etcdName}} {
		if m := s.re.FindSubmatch(r.small(s.p)); m != nil && isGoodName(string(m[1])) {
			return string(m[1])
		}
	}
	if h := strings.TrimSpace(string(r.small("/etc/hostname"))); isGoodName(h) {
		return h
	}
	if r.path == "/" {
		if h, err := os.Hostname(); err == nil && isGoodName(h) {
			return h
		}
	}
	if b := path.Base(path.Clean(r.path)); isGoodName(b) {
		return b
	}
	return "node"
}

func readClock(now func() time.Time, r *nodeRoot) archive.Clock {
	c := archive.Clock{Wall: now().UTC()}
	if r.path != "/" {
		return c
	}
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) == nil {
		c.BootSeconds = float64(ts.Sec) + float64(ts.Nsec)/1e9
	}
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		c.BootID = string(bytes.TrimSpace(b))
	}
	var tx unix.Timex
	if state, err := unix.Adjtimex(&tx); err == nil { // modes 0: reads only
		un := tx.Status&unix.STA_UNSYNC != 0 || state == unix.TIME_ERROR
		c.Unsynchronised, c.MaxErrorMicros = &un, int64(tx.Maxerror)
	}
	if l, err := os.Readlink("/etc/localtime"); err == nil {
		if _, z, ok := strings.Cut(l, "zoneinfo/"); ok {
			c.Zone = z
		}
	}
	return c
}

// dropCache tells the kernel that a large file's pages are not needed again.
func dropCache(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // advice only
}

// LowPriority makes this process give way: to others' CPU and disk, and to the
// out-of-memory killer, which should take it before etcd.
func LowPriority() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19)
	const idle = 3 << 13 // IOPRIO_CLASS_IDLE
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, 1, 0, idle)
	if f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString(strconv.Itoa(1000))
		f.Close()
	}
}

// Room returns a function for Options.Room: free space of a path's file system
// less the reserve, which is the larger of 1 GiB and a tenth of the file system.
func Room(reserve int64) func(string) int64 {
	return func(p string) int64 {
		if p == "" {
			p = os.TempDir()
		}
		var st unix.Statfs_t
		if err := unix.Statfs(p, &st); err != nil {
			return 1 << 62 // not known: writing will say
		}
		keep := reserve
		if keep < 0 {
			keep = max(1<<30, int64(st.Blocks)*st.Bsize/10)
		}
		return int64(st.Bavail)*st.Bsize - keep
	}
}

// SameFS reports whether two paths lie on one file system.
func SameFS(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) == nil && unix.Stat(b, &y) == nil && x.Dev == y.Dev
}
