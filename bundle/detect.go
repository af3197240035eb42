package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"io"
)

// A Format is what an input is, told from its content.
type Format string

// Formats that Open reads, and some that it only names.
const (
	FormatNodeRoot  Format = "node-root" // directory laid out like "/"
	FormatNodes     Format = "nodes"     // nodes/<name>/ with one root each
	FormatArchive   Format = "archive"   // tar of a node root
	FormatBundle    Format = "coldplane" // archive written by coldplane collect
	FormatSnapshot  Format = "snapshot"  // etcd snapshot: bolt file with a SHA-256 trailer
	FormatDB        Format = "etcd-db"   // etcd backend file
	FormatDataDir   Format = "etcd-datadir"
	FormatSOS       Format = "sosreport"
	FormatSupport   Format = "troubleshoot"
	FormatGather    Format = "must-gather"
	FormatDump      Format = "cluster-info-dump"
	FormatEncrypted Format = "age"
	FormatUnknown   Format = ""
)

type fileFormat int

const (
	fileUnknown fileFormat = iota
	fileEmpty
	fileZstd
	fileGzip
	fileTar
	fileBolt
	fileAge
	fileText
)

const boltMagic = 0xED0CDAED // bbolt's meta page, version 2: go.etcd.io/bbolt internal/common

// sniff tells a file's format from its first bytes and, for a database whose
// metas are lost, from the self-describing headers of its pages.
func sniff(r io.ReaderAt, size int64) fileFormat {
	if size == 0 {
		return fileEmpty
	}
	head := make([]byte, min(size, sniffBytes))
	n, _ := r.ReadAt(head, 0)
	return sniffHead(head[:n])
}

// sniffBytes is how much of a file sniff looks at: both metas of a database
// with 64 KiB pages.
const sniffBytes = 128<<10 + 64

func sniffHead(head []byte) fileFormat {
	switch {
	case bytes.HasPrefix(head, []byte{0x28, 0xB5, 0x2F, 0xFD}):
		return fileZstd
	case bytes.HasPrefix(head, []byte{0x1F, 0x8B}):
		return fileGzip
	case bytes.HasPrefix(head, []byte("age-encryption.org/")), bytes.HasPrefix(head, []byte("-----BEGIN AGE ENCRYPTED FILE-----")):
		return fileAge
	}
	// Before the database: an archive may hold one right behind its first
	// headers, and a header's checksum is no accident.
	if len(head) >= 512 {
		if _, err := tar.NewReader(bytes.NewReader(head)).Next(); err == nil || bytes.Equal(head[257:262], []byte("ustar")) {
			return fileTar
		}
	}
	if isBolt(head) {
		return fileBolt
	}
	if isText(head) {
		return fileText
	}
	return fileUnknown
}

func isBolt(b []byte) bool {
	for ps := 1024; ps <= 65536; ps *= 2 {
		for _, off := range []int{0, ps} {
			if off+20 <= len(b) {
				m := binary.LittleEndian.Uint32(b[off+16:])
				if m == boltMagic || m == 0xEDDA0CED {
					return true
				}
			}
		}
	}
	// Both metas lost: pages that carry their own number and a known type.
	hits := 0
	for id := 2; (id+1)*4096 <= len(b); id++ {
		p := b[id*4096:]
		if binary.LittleEndian.Uint64(p) == uint64(id) {
			switch binary.LittleEndian.Uint16(p[8:]) {
			case 1, 2, 16:
				hits++
			}
		}
	}
	return hits >= 3
}

func isText(b []byte) bool {
	if len(b) > 4096 {
		b = b[:4096]
	}
	return !bytes.ContainsRune(b, 0) && bytes.IndexFunc(b, func(r rune) bool { return r < 9 }) < 0
}

// Sniff says what a file is by its content, as far as that goes without reading
// all of it: FormatDB for any bolt file, FormatArchive for a tar, compressed or
// not, FormatEncrypted, or FormatUnknown.
func Sniff(r io.ReaderAt, size int64) Format {
	switch sniff(r, size) {
	case fileBolt:
		return FormatDB
	case fileZstd, fileGzip, fileTar:
		return FormatArchive
	case fileAge:
		return FormatEncrypted
	}
	return FormatUnknown
}
