package redact

import (
	"bytes"
	"encoding/base64"
	"regexp"
)

// A shape is one kind of secret that can be told from its looks.
type shape struct {
	name string
	// triggers are lower-case texts, one of which occurs in every match; they are
	// searched for first because that costs a fraction of the expression.
	triggers []string
	re       *regexp.Regexp
	group    int // the part of the match that is secret
	// keep, when set, says that a match is harmless.
	keep     func(whole, secret []byte) bool
	twoLines bool // a match may go on in the next line
	// alarm: also searched for in the finished stream, where it ends the run.
	alarm bool
}

func looksRandom(s []byte) bool {
	var up, low, dig, changes int
	var last byte
	for _, c := range s {
		var class byte
		switch {
		case c >= 'A' && c <= 'Z':
			up++
			class = 1
		case c >= 'a' && c <= 'z':
			low++
			class = 2
		case c >= '0' && c <= '9':
			dig++
			class = 3
		}
		if last != 0 && class != last {
			changes++
		}
		last = class
	}
	return up >= 2 && low >= 2 && dig >= 1 && changes*5 >= len(s)*2
}

func digitOrLong(s []byte) bool {
	return len(s) >= 24 || bytes.ContainsAny(s, "0123456789")
}

const quote = `\\*["']?`

// keyWords are what names of secrets contain.
const keyWords = `password|passwd|passphrase|passcode|pwd|secret|token|api[_-]?key|access[_-]?key|account[_-]?key|shared[_-]?key|credential|private[_-]?key|certificate[_-]?key|encryption[_-]?key|psk|client-key-data`

// harmlessKey are ends of names whose value is a name, a path or a number.
var harmlessKey = regexp.MustCompile(`(?i)(?:name|names|namespace|ref|refs|file|files|dir|path|ttl|type|count|version|controller|kind|expiration|seconds|id-?prefix|key-?id|token-?id|resource|resources|mount|lookup|audience|issuer|hash|usages?|authenticator|review|reviews|request|requests|cache|source|provider|manager|cleaner|signer|expired|enabled|auth|renewtime|failure-?threshold|revision)["'\\]*$`)

// shapes in the order they are looked for.
var shapes = []shape{
	{name: "jwt", alarm: true, triggers: []string{"eyj"}, re: regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){0,4}`),
		keep: func(w, _ []byte) bool { return len(w) < 20 }},
	{name: "jwt-base64", alarm: true, triggers: []string{"zxlk"}, re: regexp.MustCompile(`ZXlK[A-Za-z0-9+/_-]{24,}={0,2}`)},
	{name: "private-key-base64", alarm: true, triggers: []string{"ls0tls1crudjti"}, re: regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]{16,}={0,2}`),
		keep: func(w, _ []byte) bool { return !decodesToKey(w) }},
	{name: "authorization", alarm: true, triggers: []string{"authorization"},
		re:    regexp.MustCompile(`(?i)authorization` + quote + `\s*[:=]\s*` + quote + `\[?` + quote + `(?:(?:basic|bearer|digest|negotiate|token|aws4-hmac-sha256)\s+)?([^\s"'\\<>][^"'\\<>\n]{5,})`),
		group: 1, keep: func(_, s []byte) bool { return !digitOrLong(s) || bytes.HasPrefix(s, []byte("k8s.io")) }},
	{name: "bearer", alarm: true, triggers: []string{"bearer"}, re: regexp.MustCompile(`(?i)bearer[ :="'\\]+([A-Za-z0-9._~+/=-]{8,})`), group: 1,
		keep: func(_, s []byte) bool { return !digitOrLong(s) }},
	{name: "url-user", alarm: true, triggers: []string{"://"}, re: regexp.MustCompile(`://([^/\s@"'<>\\:]{0,200}(?::[^/\s@"'<>\\]{0,400})?)@`), group: 1,
		keep: func(_, s []byte) bool { return len(s) == 0 }},
	{name: "aws-key", alarm: true, triggers: []string{"akia", "asia"}, re: regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{name: "registry-auth", alarm: true, triggers: []string{`auth\"`, `auth"`, `token"`, `token\"`},
		re: regexp.MustCompile(`(?i)"(?:auth|identitytoken|registrytoken)\\*"\s*:\s*\\*"([^"\\]{4,})`), group: 1,
		keep: func(_, s []byte) bool { return !digitOrLong(s) && len(s) < 12 }},
	{name: "vendor-token", alarm: true, triggers: []string{"ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "hvs.", "sk_live_", "aiza", "ya29.", "npm_", "dop_v1_", "dckr_pat_", "age-secret-key-", "sq0atp-", "rk_live_", "pypi-"},
		re: regexp.MustCompile(`\b(?:gh[opsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abp]-[A-Za-z0-9-]{10,}|hvs\.[A-Za-z0-9_-]{16,}|[sr]k_live_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{20,}|dop_v1_[a-f0-9]{20,}|dckr_pat_[A-Za-z0-9_-]{16,}|AGE-SECRET-KEY-[A-Z0-9-]{20,}|sq0atp-[A-Za-z0-9_-]{16,}|pypi-[A-Za-z0-9_-]{20,})`)},
	{name: "signature", triggers: []string{"sig=", "signature="}, re: regexp.MustCompile(`(?i)(?:\bsig|signature)=([^&\s"'\\]{8,})`), group: 1},
	{name: "secret-data", triggers: []string{"data"}, re: regexp.MustCompile(`(?i)\b(?:string)?data\\*"?\s*:\s*\{([^{}]*)\}`), group: 1},
	{name: "byte-dump", triggers: []string{"0x"}, re: regexp.MustCompile(`(?:0x[0-9a-f]{1,2},? ?){6,}`)},
	{name: "byte-dump", triggers: []string{"["}, re: regexp.MustCompile(`\[[0-9]{1,3}(?:,? [0-9]{1,3}){7,}\]`)},
	{name: "named", triggers: keyTriggers,
		re:    regexp.MustCompile(`(?i)([\w.-]*(?:` + keyWords + `)s?[\w.-]*` + quote + `)\s*(?:=>|:=|=|:)\s*(` + quotedOrWord + `)`),
		group: 2, keep: namedHarmless},
	{name: "option", triggers: keyTriggers,
		re: regexp.MustCompile(`(?i)(--?[\w-]*(?:` + keyWords + `)[\w-]*)\s+([^\s"'-][^\s"']*)`), group: 2, keep: namedHarmless},
	{name: "named-xml", triggers: keyTriggers,
		re: regexp.MustCompile(`(?i)(<[^<>]*(?:` + keyWords + `)[^<>/]*>)([^<]{2,})<`), group: 2, keep: namedHarmless},
	{name: "name-value", triggers: keyTriggers, twoLines: true,
		re:    regexp.MustCompile(`(?i)((?:name|key)\\*"?\s*[:=]\s*\\*"?[\w.-]*(?:` + keyWords + `)[\w.-]*\\*["']?),?\s*\\*"?value\\*"?\s*[:=]\s*(` + quotedOrWord + `)`),
		group: 2},
}

const quotedOrWord = `\\*"(?:[^"\\]|\\[^"])*|'[^'\n]*|[^\s"',;&<>}\])]+`

var keyTriggers = []string{"passw", "passp", "passc", "pwd", "secret", "token", "credential", "psk", "client-key-data",
	"apikey", "api-key", "api_key", "accesskey", "access-key", "access_key", "accountkey", "account-key", "account_key",
	"sharedkey", "shared-key", "shared_key", "privatekey", "private-key", "private_key", "certificatekey", "certificate-key", "certificate_key",
	"encryptionkey", "encryption-key", "encryption_key"}

func namedHarmless(whole, secret []byte) bool {
	v := bytes.Trim(secret, `\"'`)
	if len(v) == 0 {
		return true
	}
	i := len(whole) - len(secret)
	name := bytes.TrimRight(whole[:max(i, 0)], " \t=:>")
	name = bytes.TrimPrefix(name, []byte("<"))
	lower := bytes.ToLower(name)
	if harmlessKey.Match(name) && !bytes.Contains(lower, []byte("passw")) {
		return true
	}
	switch string(bytes.ToLower(v)) {
	case "true", "false", "null", "nil", "<nil>", "none", "redacted", "removed":
		return true
	}
	if v[0] == '/' || v[0] == '[' || v[0] == '{' { // a path, or the beginning of something structured
		return true
	}
	// "token: not found" is prose; "token: 9f8e7d" is not.
	prose := bytes.HasSuffix(bytes.TrimRight(whole[:max(i, 0)], " "), []byte(":")) && secret[0] != '"' && secret[0] != '\'' && secret[0] != '\\'
	if prose && !bytes.Contains(lower, []byte("passw")) && !bytes.Contains(lower, []byte("pwd")) {
		return !digitOrLong(v)
	}
	// secret="kube-system/name" names an object.
	if i := bytes.IndexByte(v, '/'); i > 0 && (bytes.HasSuffix(lower, []byte("secret")) || bytes.HasSuffix(lower, []byte("secrets"))) && !looksRandom(v) {
		return true
	}
	return false
}

// turns counts the changes between letters and digits.
func turns(b []byte) (n int) {
	for i := 1; i < len(b); i++ {
		if (b[i] <= '9') != (b[i-1] <= '9') {
			n++
		}
	}
	return n
}

func digits(b []byte) (n int) {
	for _, c := range b {
		if c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

func isHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// decodesToKey reports whether base64 text of PEM holds anything but
// certificates, requests and public keys.
func decodesToKey(b []byte) bool {
	b = bytes.TrimRight(b, "=")
	b = b[:len(b)-len(b)%4]
	d := make([]byte, base64.RawStdEncoding.DecodedLen(len(b)))
	n, err := base64.RawStdEncoding.Decode(d, b)
	d = d[:n]
	return err != nil || bytes.Contains(d, []byte("PRIVATE KEY"))
}

// runs finds long unbroken runs of base64 or of lower-case letters and digits that
// look random. Digests and ids in hexadecimal are not secrets.
func runs(b []byte, yield func(start, end int, name string)) {
	for i := 0; i < len(b); {
		if !runByte(b[i]) {
			i++
			continue
		}
		start := i
		for i < len(b) && runByte(b[i]) {
			i++
		}
		pad := i
		for pad < len(b) && pad < i+2 && b[pad] == '=' {
			pad++
		}
		r := b[start:i]
		switch {
		case len(r) < 21:
		case (len(r) >= 32 || pad > i) && looksRandom(r) && !certificate(r):
			yield(start, pad, "base64")
		case len(r) >= 24:
			words(r, start, yield)
		}
		i = pad
	}
}

func runByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '_' || c == '-'
}

// words finds random words of lower-case letters and digits inside a run.
func words(r []byte, off int, yield func(start, end int, name string)) {
	for i := 0; i < len(r); {
		start := i
		for i < len(r) && (r[i] >= 'a' && r[i] <= 'z' || r[i] >= '0' && r[i] <= '9') {
			i++
		}
		if w := r[start:i]; len(w) >= 24 && !isHex(w) && digits(w) >= 3 && len(w)-digits(w) >= 5 && turns(w) >= 6 {
			yield(off+start, off+i, "random")
		}
		i = max(i, start+1)
	}
}

// certificate reports whether a run of base64 is public: DER of a certificate or
// of a public key begins with one of a few bytes, base64 of PEM with LS0t.
func certificate(b []byte) bool {
	return bytes.HasPrefix(b, []byte("LS0tLS1CRUdJTi")) && !decodesToKey(b)
}
