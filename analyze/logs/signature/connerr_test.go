package signature

import "testing"

func TestConnError(t *testing.T) {
	for text, want := range map[string]ConnClass{
		`tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-01-02T00:00:00Z is after 2026-01-01T00:00:00Z`:  ConnExpired,
		`tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2025-01-02T00:00:00Z is before 2026-01-01T00:00:00Z`: ConnNotYetValid,
		`connection error: desc = "error reading server preface: remote error: tls: expired certificate"`:                                                        ConnExpired,
		`tls: client didn't provide a certificate`:                                                                                   ConnNoCert,
		`remote error: tls: certificate required`:                                                                                    ConnNoCert,
		`remote error: tls: bad certificate`:                                                                                         ConnServerRefused,
		`authentication handshake failed: x509: certificate signed by unknown authority`:                                             ConnForeignCA,
		`remote error: tls: unknown certificate authority`:                                                                           ConnForeignCA,
		`x509: certificate is valid for 10.0.0.1, not 10.0.0.2`:                                                                      ConnName,
		`x509: certificate is not valid for any names, but wanted to match cp1`:                                                      ConnName,
		`tls: first record does not look like a TLS handshake`:                                                                       ConnPlain,
		`http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header`: ConnPeerPort,
		`dial tcp 127.0.0.1:2379: connect: connection refused`:                                                                       ConnRefused,
		`dial tcp 10.0.0.2:2380: i/o timeout`:                                                                                        ConnTimeout,
		`dial tcp 10.0.0.2:2380: connect: no route to host`:                                                                          ConnNoRoute,
		`EOF`:                        ConnEOF,
		`everything is fine`:         ConnUnknown,
		`the sun is before 2 clouds`: ConnUnknown, // words of a class without its cause
	} {
		if got := ConnError(text); got != want {
			t.Errorf("%s:\n got %q, want %q", text, got, want)
		}
	}
	if ConnRefused.TLS() || !ConnExpired.TLS() || !ConnEOF.Noise() || ConnExpired.Noise() {
		t.Error("TLS or Noise")
	}
}
