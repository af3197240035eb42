package releases

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

// A Version is a release number of Kubernetes, etcd or a container runtime.
type Version struct {
	Major, Minor, Patch int
	Pre                 string // "alpha.1", "rc.0"; "" for a release
}

var versionText = regexp.MustCompile(`^v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:-(\d+)$|-?((?:alpha|beta|rc)[0-9A-Za-z.]*))?`)

// Parse reads a version or an image tag: v1.34.2, 3.6.6-0, v1.34.0-rc.1,
// v1.30.3+vendor.1, v1.28.15-eks-abc. What follows the number is a build of
// the same release unless it says alpha, beta or rc.
func Parse(s string) (Version, bool) {
	m := versionText.FindStringSubmatch(s)
	if m == nil {
		return Version{}, false
	}
	n := func(s string) int { i, _ := strconv.Atoi(s); return i }
	return Version{n(m[1]), n(m[2]), n(m[3]), m[5]}, true
}

// Compare orders versions; a pre-release comes before its release.
func (v Version) Compare(w Version) int {
	pre := func(s string) int {
		if s == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch),
		cmp.Compare(pre(v.Pre), pre(w.Pre)), cmp.Compare(v.Pre, w.Pre))
}

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool { return v.Compare(w) < 0 }

// AtLeast reports whether v is major.minor.patch or newer.
func (v Version) AtLeast(major, minor, patch int) bool {
	return v.Compare(Version{Major: major, Minor: minor, Patch: patch}) >= 0
}

// IsZero reports whether the version is unset.
func (v Version) IsZero() bool { return v == Version{} }

func (v Version) String() string {
	s := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Pre != "" {
		s += "-" + v.Pre
	}
	return s
}

// MinorString is "1.34".
func (v Version) MinorString() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
