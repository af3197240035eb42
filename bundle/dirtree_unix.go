//go:build unix

package bundle

import (
	"io/fs"
	"os"
	"syscall"
)

// openNoBlock opens for reading only; a FIFO does not block it and a terminal
// does not become ours.
func openNoBlock(r *os.Root, name string) (*os.File, error) {
	return r.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

func owner(fi fs.FileInfo) (uid, gid int) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}
