package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

func sha256Of(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{r}, make([]byte, 256<<10)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
