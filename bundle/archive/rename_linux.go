package archive

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames without replacing anything. File systems without that call
// (some network ones) get a plain rename; Create has looked before.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return os.Rename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
