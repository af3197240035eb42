// Package archive is the format of coldplane's own bundles: writing, publishing and checking them.
//
// A bundle is a tar stream, usually zstd-compressed, optionally inside age
// encryption. Its first entry is HEADER, its last is MANIFEST, and nothing
// follows. Both ways are streams: writing needs no seek and no temporary file,
// checking needs no memory beyond the list of entries.
//
// The package knows nothing of what is collected or analyzed. It imports
// nothing of ours; bundle and collect import it.
package archive
