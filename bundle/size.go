package bundle

import "fmt"

// sizeDetail words a size over a limit.
func sizeDetail(size, limit int64) string {
	return fmt.Sprintf("%s, more than the limit of %s", FormatBytes(size), FormatBytes(limit))
}

// FormatBytes writes a size with a binary unit, e.g. "1.5 MiB".
func FormatBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, units := float64(n), []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := -1
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if f >= 100 || f == float64(int64(f)) {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
