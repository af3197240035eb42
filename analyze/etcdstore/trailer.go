package etcdstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"

	"coldplane/bundle/redact"
)

// A Trailer is the SHA-256 that `etcdctl snapshot save` appends to the file.
type Trailer uint8

const (
	TrailerNone      Trailer = iota // a raw copy of a data directory's db
	TrailerUnchecked                // there is one, nobody compared it
	TrailerOK
	TrailerMismatch
	TrailerUnreadable
)

func (t Trailer) String() string {
	return [...]string{"none", "unchecked", "ok", "mismatch", "unreadable"}[t]
}

const trailerLen = sha256.Size

// trailerOf recognises a trailer by the file's length, as etcdutl does: pages
// are a multiple of 512 bytes, the trailer adds 32.
func trailerOf(size int64) Trailer {
	if size%512 == trailerLen {
		return TrailerUnchecked
	}
	return TrailerNone
}

func (t Trailer) len() int64 {
	if t == TrailerNone {
		return 0
	}
	return trailerLen
}

// checkTrailer hashes the first n bytes and compares with the 32 behind them.
func checkTrailer(ctx context.Context, r io.ReaderAt, n int64) Trailer {
	var want [trailerLen]byte
	if got, _ := r.ReadAt(want[:], n); got < trailerLen {
		return TrailerUnreadable
	}
	switch string(want[:]) { // a scrubbed copy says what the original's was
	case redact.TrailerWasGood:
		return TrailerOK
	case redact.TrailerWasWrong:
		return TrailerMismatch
	}
	h := sha256.New()
	buf := make([]byte, 256<<10)
	for off := int64(0); off < n; {
		if ctx.Err() != nil {
			return TrailerUnchecked
		}
		m := min(int64(len(buf)), n-off)
		got, err := r.ReadAt(buf[:m], off)
		if int64(got) < m && err != nil {
			return TrailerUnreadable
		}
		h.Write(buf[:m])
		off += m
	}
	if !bytes.Equal(h.Sum(nil), want[:]) {
		return TrailerMismatch
	}
	return TrailerOK
}
