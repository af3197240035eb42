package bundle

import (
	"fmt"
	"io/fs"
	"strings"

	"coldplane/bundle/archive"
)

// verified takes over what checking a bundle found: its state, and, from its
// manifest, what the archive's constant metadata cannot say. Names and contents
// come from the archive alone; a manifest adds only files that have none.
func (in *Input) verified(v *archive.Verification, t *memTree) {
	in.Verification, in.claims = v, true
	in.State, in.Detail = string(v.State), v.Detail()
	if v.Manifest == nil {
		return
	}
	for _, e := range v.Manifest.Entries {
		name, why := localName(e.Path)
		if why != "" || name == "" || name != e.Path {
			continue
		}
		if e.Stored {
			if n := t.nodes[name]; n != nil && n.content != nil && e.Source != nil {
				n.describe(e.Source)
				n.mode &^= fs.ModeType
			}
			continue
		}
		t.describe(name, e)
	}
	t.seal()
}

// describe adds a path that the manifest knows and the archive does not hold.
func (t *memTree) describe(name string, m archive.Entry) {
	var e memEntry
	if m.Source != nil {
		e.describe(m.Source)
	}
	var c contentSource
	switch {
	case m.Treatment == archive.Directory:
		e.mode = fs.ModeDir | e.mode.Perm()
	case m.Treatment == archive.LinkOnly && m.Source != nil && m.Source.Link != "":
		e.mode = fs.ModeSymlink | 0o777
	case m.Treatment == archive.Failed:
		c = failedContent{fmt.Errorf("could not be read on the node: %s", m.Error)}
	case e.mode.Type() != 0:
		// a FIFO, socket or device: there is no content to have
	default:
		c = failedContent{fmt.Errorf("%w (%s)", errRedacted, m.Rule)}
	}
	t.add(name, e.entry, c)
}

func (e *memEntry) describe(s *archive.Source) {
	e.mode = fs.FileMode(s.Mode).Perm()
	for bit, m := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if s.Mode&bit != 0 {
			e.mode |= m
		}
	}
	switch s.Type {
	case "dir":
		e.mode |= fs.ModeDir
	case "link":
		e.mode |= fs.ModeSymlink
		e.link = s.Link
	case "fifo":
		e.mode |= fs.ModeNamedPipe
	case "socket":
		e.mode |= fs.ModeSocket
	case "device":
		e.mode |= fs.ModeDevice
	}
	if e.content == nil {
		e.size = s.Size
	}
	e.mtime, e.uid, e.gid = s.MTime.UTC(), s.UID, s.GID
}

func setOf(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, p := range list {
		if strings.HasPrefix(p, "/") {
			out[p] = true
		}
	}
	return out
}
