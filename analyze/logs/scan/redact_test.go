package scan

import "testing"

// FuzzRedact: looking for the words first changes nothing, however a text is made.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{
		"Authorization: Bearer abcdefghijklmnop0123", "PASSWORD = hunter22", "join --token ab12cd.0123456789abcdef now",
		"x.ab12cd.0123456789abcdef.y", "https://user:secret@host/path?Token=1", "GET /hook?key=abc&sig=d",
		"-----BEGIN EC PRIVATE KEY-----abc", "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJr.c2ln", "\u212Aey \xff Basic QUJDREVGR0hJSktMTU5P",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := s
		for _, p := range secrets() {
			want = p.re.ReplaceAllString(want, p.by)
		}
		if got := Redact(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	})
}
