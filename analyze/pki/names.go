package pki

import (
	"crypto/x509"
	"net"
	"slices"
	"strings"
)

// Covers reports whether a certificate is good for a host as Go's TLS client
// sees it: by its alternative names only, never by its common name.
func Covers(c *x509.Certificate, host string) bool {
	host = strings.TrimSuffix(host, ".")
	if host == "" {
		return true
	}
	return c.VerifyHostname(host) == nil
}

// Names lists a certificate's alternative names as text, sorted: DNS names
// first, then addresses.
func Names(c *x509.Certificate) []string {
	dns := slices.Clone(c.DNSNames)
	slices.Sort(dns)
	var ips []string
	for _, ip := range c.IPAddresses {
		ips = append(ips, ip.String())
	}
	slices.Sort(ips)
	return append(dns, ips...)
}

// IsLoopback reports whether a host is the machine itself.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// FirstAddress returns the address kubeadm gives to the Service "kubernetes":
// the first of the first service subnet; "" when the list is not readable.
func FirstAddress(subnets string) string {
	s, _, _ := strings.Cut(subnets, ",")
	_, n, err := net.ParseCIDR(strings.TrimSpace(s))
	if err != nil {
		return ""
	}
	ip := slices.Clone(n.IP)
	for i := len(ip) - 1; i >= 0; i-- {
		if ip[i]++; ip[i] != 0 {
			break
		}
	}
	if !n.Contains(ip) {
		return ""
	}
	return ip.String()
}
