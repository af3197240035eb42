package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A File is a bundle on its way to its final name. Until Publish it is called
// NAME.partial, so that no kill leaves something that looks whole.
type File struct {
	f    *os.File
	path string
	mu   sync.Mutex
	done bool
}

// PartialSuffix and InterruptedSuffix end the names of unfinished bundles.
const (
	PartialSuffix     = ".partial"
	InterruptedSuffix = ".interrupted"
)

// Create makes path.partial, mode 0600. It fails when path or path.partial is
// there already: the latter is another collection, or the rest of a killed one.
func Create(path string) (*File, error) {
	for _, p := range []string{path, path + InterruptedSuffix} {
		if _, err := os.Lstat(p); err == nil {
			return nil, fmt.Errorf("%s: %w", p, fs.ErrExist)
		}
	}
	f, err := os.OpenFile(path+PartialSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil { // whatever the umask was
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		return nil, err
	}
	return &File{f: f, path: path}, nil
}

func (f *File) Write(p []byte) (int, error) { return f.f.Write(p) }

var _ io.Writer = (*File)(nil)

// Publish makes the content durable and gives it its final name, with
// InterruptedSuffix when the collection was interrupted. It returns that name.
func (f *File) Publish(interrupted bool) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return "", errors.New("published or removed already")
	}
	final := f.path
	if interrupted {
		final += InterruptedSuffix
	}
	err := f.f.Sync()
	err = errors.Join(err, f.f.Close())
	if err == nil {
		err = renameNew(f.path+PartialSuffix, final)
	}
	f.done = true
	if err != nil {
		return "", errors.Join(err, os.Remove(f.path+PartialSuffix))
	}
	return final, syncDir(filepath.Dir(final))
}

// Remove gives up and removes the partial file. After Publish it does nothing.
func (f *File) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.f.Close(), os.Remove(f.path+PartialSuffix))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// WriteAt and Truncate serve outputs that are not written in order.
func (f *File) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }

// Truncate sets the length; what was not written reads as zeros.
func (f *File) Truncate(size int64) error { return f.f.Truncate(size) }
