// Package endpoint reads the URLs and addresses that etcd and the API server
// are given, in the forms their flags accept, so that facts and rules compare
// what is meant and not how it is written.
package endpoint

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// A URL is one listen or client URL.
type URL struct {
	Raw    string // as written
	Scheme string // "http", "https", "unix", "unixs"; lower case
	Host   string // canonical address, or a lower-case name
	Port   string // "" only for unix sockets
}

// Parse reads one URL. ok is false when it is none with a scheme and a host.
func Parse(s string) (u URL, ok bool) {
	s = strings.TrimSpace(s)
	p, err := url.Parse(s)
	if err != nil || p.Scheme == "" {
		return URL{Raw: s}, false
	}
	u = URL{Raw: s, Scheme: strings.ToLower(p.Scheme)}
	if u.Unix() {
		u.Host = p.Host + p.Path
		return u, u.Host != ""
	}
	u.Host, u.Port = Host(p.Hostname()), p.Port()
	if u.Port == "" {
		switch u.Scheme {
		case "http":
			u.Port = "80"
		case "https":
			u.Port = "443"
		}
	}
	return u, u.Host != "" && u.Port != ""
}

// List reads a comma-separated list and returns the URLs and what is none.
func List(s string) (urls []URL, bad []string) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if u, ok := Parse(part); ok {
			urls = append(urls, u)
		} else {
			bad = append(bad, part)
		}
	}
	return urls, bad
}

// Host gives an address one spelling and lowers a name.
func Host(s string) string {
	s = strings.Trim(strings.TrimSpace(s), "[]")
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(s), ".")
}

// SplitHostPort splits "host:port", "[v6]:port" or a bare host.
func SplitHostPort(s string) (host, port string) {
	s = strings.TrimSpace(s)
	if h, p, err := net.SplitHostPort(s); err == nil {
		return Host(h), p
	}
	return Host(s), ""
}

// Unix reports whether the URL is a socket file.
func (u URL) Unix() bool { return u.Scheme == "unix" || u.Scheme == "unixs" }

// String is the URL in canonical form.
func (u URL) String() string {
	if u.Unix() {
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Host, u.Port)
}

// Loopback reports whether the host is the machine itself.
func (u URL) Loopback() bool { return Loopback(u.Host) }

// Wildcard reports whether the host stands for every address of the machine.
func (u URL) Wildcard() bool { return Wildcard(u.Host) }

// Loopback reports whether a host is the machine itself.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// Wildcard reports whether a listen host stands for every address.
func Wildcard(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

// IsIP reports whether a host is an address and not a name.
func IsIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// SameHost reports whether a client that dials host reaches a server that
// listens on listen of the same machine.
func SameHost(listen, host string) bool {
	switch {
	case listen == host, Wildcard(listen):
		return true
	case host == "localhost":
		return listen == "127.0.0.1" || listen == "::1"
	case listen == "localhost":
		return host == "127.0.0.1" || host == "::1"
	}
	return false
}

// Set returns the canonical URLs, sorted, each once.
func Set(urls []URL) []string {
	var out []string
	for _, u := range urls {
		out = append(out, u.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}
