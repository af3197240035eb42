package scan

import "regexp"

// Secrets that programs print: bearer and bootstrap tokens, JSON web tokens,
// passwords in URLs, PEM bodies, query strings of webhooks.
var secrets = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`), "[token removed]"},
	{regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9._~+/-]{16,}=*`), "$1 [removed]"},
	{regexp.MustCompile(`(?i)\b(authorization|password|passwd|client-secret|secret-key)(["']?\s*[:=]\s*["']?)[^\s"',}\[]{4,}`), "$1$2[removed]"},
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), "[bootstrap token removed]"},
	{regexp.MustCompile(`(://)[^/@\s:"]{1,64}:[^/@\s"]{1,256}@`), "$1[removed]@"},
	{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END[^-]*-----)?`), "[private key removed]"},
	{regexp.MustCompile(`([?&](?:token|access_token|key|sig|signature|password|code)=)[^&\s"]+`), "$1[removed]"},
}

// Redact removes what looks like a secret from a piece of a log line.
func Redact(s string) string {
	for _, p := range secrets {
		s = p.re.ReplaceAllString(s, p.by)
	}
	return s
}
