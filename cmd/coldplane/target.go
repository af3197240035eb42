package main

import (
	"io"
	"os"
)

// A target is where a result goes: stdout, or a file that appears whole or not at
// all. It is opened before foreign evidence is read, so that nothing needs to be
// opened for writing afterwards, and a name that cannot be written is told at once.
type target struct {
	name string // "" is stdout
	f    *os.File
	tmp  string // what f is called until it is whole; "" when it is written in place
}

// newTarget opens a target.
func newTarget(name string) (*target, error) {
	t := &target{name: name}
	if name == "" {
		return t, nil
	}
	var err error
	if fi, serr := os.Stat(name); serr == nil && !fi.Mode().IsRegular() {
		t.f, err = os.OpenFile(name, os.O_WRONLY, 0) // a device or a pipe is not replaced by a file
		return t, err
	}
	t.tmp = name + ".partial"
	t.f, err = os.OpenFile(t.tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	return t, err
}

// write fills the target; it can be filled once.
func (t *target) write(stdout io.Writer, fill func(io.Writer) error) error {
	if t.name == "" {
		return fill(stdout)
	}
	f := t.f
	t.f = nil
	err := fill(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if t.tmp == "" {
		return err
	}
	if err == nil {
		err = os.Rename(t.tmp, t.name)
	}
	if err != nil {
		os.Remove(t.tmp)
	}
	return err
}

// discard takes away what was not written; after write it does nothing.
func (t *target) discard() {
	if t == nil || t.f == nil {
		return
	}
	t.f.Close()
	t.f = nil
	if t.tmp != "" {
		os.Remove(t.tmp)
	}
}

// openTargets opens the files of several outputs, all or none.
func openTargets(outs []output) ([]*target, error) {
	var ts []*target
	for _, o := range outs {
		t, err := newTarget(o.file)
		if err != nil {
			discardAll(ts)
			return nil, err
		}
		ts = append(ts, t)
	}
	return ts, nil
}

func discardAll(ts []*target) {
	for _, t := range ts {
		t.discard()
	}
}
