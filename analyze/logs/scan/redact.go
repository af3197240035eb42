package scan

import (
	"regexp"
	"strings"
	"sync"
)

// A secret is one kind of secret that programs print.
type secret struct {
	words []string // one of them, in small letters, is in every text with such a secret
	re    *regexp.Regexp
	by    string
}

// secrets are bearer and bootstrap tokens, JSON web tokens, passwords in URLs,
// PEM bodies, query strings of webhooks. Built at the first log, because many
// commands read none.
var secrets = sync.OnceValue(func() []secret {
	return []secret{
		{[]string{"eyj"}, regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`), "[token removed]"},
		{[]string{"bearer ", "basic "}, regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9._~+/-]{16,}=*`), "$1 [removed]"},
		{[]string{"authorization", "password", "passwd", "client-secret", "secret-key"},
			regexp.MustCompile(`(?i)\b(authorization|password|passwd|client-secret|secret-key)(["']?\s*[:=]\s*["']?)[^\s"',}\[]{4,}`), "$1$2[removed]"},
		{nil, regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), "[bootstrap token removed]"},
		{[]string{"://"}, regexp.MustCompile(`(://)[^/@\s:"]{1,64}:[^/@\s"]{1,256}@`), "$1[removed]@"},
		{[]string{"private key"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END[^-]*-----)?`), "[private key removed]"},
		{[]string{"token=", "key=", "sig=", "signature=", "password=", "code="}, regexp.MustCompile(`([?&](?:token|access_token|key|sig|signature|password|code)=)[^&\s"]+`), "$1[removed]"},
	}
})

// may says that a text can hold the secret; lower is the text in small letters.
func (p *secret) may(lower string) bool {
	for _, w := range p.words {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return p.words == nil && maybeToken(lower)
}

// maybeToken says that a text has a point with sixteen letters or digits behind it.
func maybeToken(lower string) bool {
	run := -1 // letters and digits since the last point, -1 before it
	for i := range len(lower) {
		switch c := lower[i]; {
		case c == '.':
			run = 0
		case run < 0:
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			if run++; run == 16 {
				return true
			}
		default:
			run = -1
		}
	}
	return false
}

// Redact removes what looks like a secret from a piece of a log line.
func Redact(s string) string {
	lower := strings.ToLower(s)
	for i := range secrets() {
		if p := &secrets()[i]; p.may(lower) {
			s = p.re.ReplaceAllString(s, p.by)
		}
	}
	return s
}
