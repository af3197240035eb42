//go:build !linux

package archive

import "os"

func renameNew(from, to string) error { return os.Rename(from, to) }
