package signature

import "strings"

// A ConnClass says why a connection failed, and so which side must change.
type ConnClass string

// The classes. Their names appear in messages and in JSON.
const (
	ConnUnknown       ConnClass = ""
	ConnExpired       ConnClass = "certificate expired"
	ConnNotYetValid   ConnClass = "certificate not yet valid"
	ConnForeignCA     ConnClass = "certificate of a foreign CA"
	ConnNoCert        ConnClass = "no client certificate"
	ConnServerRefused ConnClass = "client distrusts the server certificate"
	ConnName          ConnClass = "name missing from the server certificate"
	ConnPlain         ConnClass = "plain text sent to a TLS port"
	ConnPeerPort      ConnClass = "client connected to the peer port"
	ConnRefused       ConnClass = "connection refused"
	ConnTimeout       ConnClass = "timeout"
	ConnNoRoute       ConnClass = "no route to host"
	ConnReset         ConnClass = "connection reset"
	ConnEOF           ConnClass = "connection closed"
	ConnProtocol      ConnClass = "no common TLS version or cipher"
)

// TLS reports whether the class is a fault of certificates or protocol rather
// than of the network.
func (c ConnClass) TLS() bool {
	switch c {
	case ConnExpired, ConnNotYetValid, ConnForeignCA, ConnNoCert, ConnServerRefused, ConnName, ConnPlain, ConnPeerPort, ConnProtocol:
		return true
	}
	return false
}

// Noise reports whether a single occurrence says nothing: probes and load
// balancers open and close connections all day.
func (c ConnClass) Noise() bool { return c == ConnEOF || c == ConnReset || c == ConnPlain }

// connTexts is searched in order: the specific texts come before the general
// ones they appear together with. What each text means was measured against
// etcd 3.6.14 and grpc-go with Go's TLS stack.
//
// Two texts mislead. A Go client withholds a certificate that no acceptable CA
// issued, so "didn't provide a certificate" may be a foreign CA; only the files
// can tell. And an alert "expired certificate" also stands for not yet valid.
var connTexts = [...]struct {
	text  string
	class ConnClass
}{
	{"frame header looked like an HTTP/1.1 header", ConnPeerPort},
	{"is before 2", ConnNotYetValid}, // "current time T1 is before T2"
	{"has expired or is not yet valid", ConnExpired},
	{"remote error: tls: expired certificate", ConnExpired},
	{"certificate signed by unknown authority", ConnForeignCA},
	{"unknown certificate authority", ConnForeignCA},
	{"didn't provide a certificate", ConnNoCert},
	{"remote error: tls: certificate required", ConnNoCert},
	{"x509: certificate is valid for", ConnName},
	{"is not valid for any names", ConnName},
	{"cannot validate certificate for", ConnName},
	{"remote error: tls: bad certificate", ConnServerRefused},
	{"remote error: tls: unknown certificate", ConnServerRefused},
	{"first record does not look like a TLS handshake", ConnPlain},
	{"server gave HTTP response to HTTPS client", ConnPlain},
	{"client sent an HTTP request to an HTTPS server", ConnPlain},
	{"tls: protocol version not supported", ConnProtocol},
	{"tls: no cipher suite supported", ConnProtocol},
	{"remote error: tls: handshake failure", ConnProtocol},
	{"connection refused", ConnRefused},
	{"no route to host", ConnNoRoute},
	{"network is unreachable", ConnNoRoute},
	{"i/o timeout", ConnTimeout},
	{"context deadline exceeded", ConnTimeout},
	{"Client.Timeout exceeded", ConnTimeout},
	{"TLS handshake timeout", ConnTimeout},
	{"connection reset by peer", ConnReset},
	{"broken pipe", ConnReset},
	{"use of closed network connection", ConnReset},
	{"EOF", ConnEOF},
}

// ConnError classifies the error text of a failed connection.
func ConnError(text string) ConnClass {
	for _, t := range connTexts {
		if strings.Contains(text, t.text) {
			if t.class == ConnNotYetValid && !strings.Contains(text, "not yet valid") {
				continue
			}
			return t.class
		}
	}
	return ConnUnknown
}
