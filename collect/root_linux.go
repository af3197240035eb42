package collect

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"coldplane/bundle/archive"
)

// A nodeRoot is the directory that stands for the node's "/". Every path is
// resolved below it: absolute links start there, and none leads out.
type nodeRoot struct {
	dir    *os.File
	path   string
	net    []string // mount points of network and FUSE file systems, not to be touched
	legacy *os.Root // for kernels without openat2
}

func openRoot(p string) (*nodeRoot, error) {
	d, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	if fi, err := d.Stat(); err != nil || !fi.IsDir() {
		d.Close()
		return nil, &fs.PathError{Op: "open", Path: p, Err: errors.New("not a directory")}
	}
	r := &nodeRoot{dir: d, path: p}
	if fd, err := unix.Openat2(int(d.Fd()), ".", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}); err == nil {
		unix.Close(fd)
	} else if r.legacy, err = os.OpenRoot(p); err != nil {
		d.Close()
		return nil, err
	}
	if p == "/" {
		r.net = remoteMounts()
	}
	return r, nil
}

func (r *nodeRoot) close() {
	r.dir.Close()
	if r.legacy != nil {
		r.legacy.Close()
	}
}

var errRemote = errors.New("on a network or FUSE file system, which may hang: not touched")

func (r *nodeRoot) remote(abs string) bool {
	for _, m := range r.net {
		if abs == m || strings.HasPrefix(abs, m+"/") {
			return true
		}
	}
	return false
}

// remoteMounts are the mount points that a dead server could make hang. Reading
// mountinfo touches none of them.
func remoteMounts() (out []string) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		i := 0
		for i < len(f) && f[i] != "-" {
			i++
		}
		if i+1 >= len(f) || len(f) < 5 {
			continue
		}
		switch t := f[i+1]; {
		case strings.HasPrefix(t, "nfs"), strings.HasPrefix(t, "fuse"), t == "cifs", t == "smb3", t == "ceph", t == "9p", t == "glusterfs", t == "lustre", t == "afs", t == "gpfs":
			if t == "fuseblk" || t == "fusectl" || f[4] == "/" {
				continue
			}
			out = append(out, f[4])
		}
	}
	return out
}

func (r *nodeRoot) openat(abs string, flags int, nofollow bool) (*os.File, error) {
	abs = path.Clean("/" + abs)
	if r.remote(abs) {
		return nil, &fs.PathError{Op: "open", Path: abs, Err: errRemote}
	}
	rel := strings.TrimPrefix(abs, "/")
	if rel == "" {
		rel = "."
	}
	flags |= unix.O_CLOEXEC
	if flags&unix.O_PATH == 0 { // openat2 refuses them together
		flags |= unix.O_NOCTTY | unix.O_NONBLOCK
	}
	if nofollow {
		flags |= unix.O_NOFOLLOW
	}
	if r.legacy != nil {
		f, err := r.legacy.OpenFile(rel, flags&^unix.O_PATH, 0)
		return f, err
	}
	fd, err := unix.Openat2(int(r.dir.Fd()), rel, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: abs, Err: err}
	}
	return os.NewFile(uintptr(fd), abs), nil
}

// open opens a regular file for reading. It follows links, below the root only.
// What is not a regular file is never opened for reading: opening a device can do
// things.
func (r *nodeRoot) open(abs string) (*os.File, fs.FileInfo, error) {
	fi, err := r.stat(abs)
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fi, &fs.PathError{Op: "open", Path: abs, Err: errNotRegular}
	}
	f, err := r.openat(abs, unix.O_RDONLY|unix.O_NOATIME, false)
	if errors.Is(err, unix.EPERM) {
		f, err = r.openat(abs, unix.O_RDONLY, false)
	}
	if err != nil {
		return nil, fi, err
	}
	if fi, err = f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, fi, errors.Join(err, &fs.PathError{Op: "open", Path: abs, Err: errNotRegular})
	}
	return f, fi, nil
}

var errNotRegular = errors.New("not a regular file")

func (r *nodeRoot) stat(abs string) (fs.FileInfo, error) { return r.statAt(abs, false) }

func (r *nodeRoot) lstat(abs string) (fs.FileInfo, error) { return r.statAt(abs, true) }

func (r *nodeRoot) statAt(abs string, nofollow bool) (fs.FileInfo, error) {
	if r.legacy != nil {
		rel := strings.TrimPrefix(path.Clean("/"+abs), "/")
		if rel == "" {
			rel = "."
		}
		if nofollow {
			return r.legacy.Lstat(rel)
		}
		return r.legacy.Stat(rel)
	}
	f, err := r.openat(abs, unix.O_PATH, nofollow)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

func (r *nodeRoot) readlink(abs string) (string, error) {
	if r.legacy != nil {
		return r.legacy.Readlink(strings.TrimPrefix(path.Clean("/"+abs), "/"))
	}
	f, err := r.openat(abs, unix.O_PATH, true)
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(int(f.Fd()), "", buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// readdir lists a directory, at most max entries; more reports that there are
// more.
func (r *nodeRoot) readdir(abs string, most int) (names []string, more bool, err error) {
	f, err := r.openat(abs, unix.O_RDONLY|unix.O_DIRECTORY, false)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	names, err = f.Readdirnames(most + 1)
	if len(names) > most {
		return names[:most], true, nil
	}
	if err != nil && err.Error() == "EOF" {
		err = nil
	}
	return names, false, err
}

func sourceOf(abs string, fi fs.FileInfo, link string) *archive.Source {
	s := &archive.Source{Path: strings.ToValidUTF8(abs, "?"), Type: "file", Size: fi.Size(), Mode: uint32(fi.Mode().Perm()), MTime: fi.ModTime().UTC(), UID: -1, GID: -1, Link: strings.ToValidUTF8(link, "?")}
	switch m := fi.Mode(); {
	case m.IsDir():
		s.Type = "dir"
	case m&fs.ModeSymlink != 0:
		s.Type = "link"
	case m&fs.ModeNamedPipe != 0:
		s.Type = "fifo"
	case m&fs.ModeSocket != 0:
		s.Type = "socket"
	case m&fs.ModeDevice != 0:
		s.Type = "device"
	}
	for bit, m := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if fi.Mode()&m != 0 {
			s.Mode |= bit
		}
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		c := time.Unix(st.Ctim.Unix()).UTC()
		s.Dev, s.Inode, s.UID, s.GID, s.CTime = uint64(st.Dev), st.Ino, int(st.Uid), int(st.Gid), &c
	}
	return s
}
