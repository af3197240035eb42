package endpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want URL
		ok   bool
	}{
		{"https://127.0.0.1:2379", URL{Scheme: "https", Host: "127.0.0.1", Port: "2379"}, true},
		{" HTTPS://ETCD1.Example.:2379/ ", URL{Scheme: "https", Host: "etcd1.example", Port: "2379"}, true},
		{"https://[::1]:2379", URL{Scheme: "https", Host: "::1", Port: "2379"}, true},
		{"https://[2001:DB8:0:0::1]:2379", URL{Scheme: "https", Host: "2001:db8::1", Port: "2379"}, true},
		{"https://etcd", URL{Scheme: "https", Host: "etcd", Port: "443"}, true},
		{"unix:///run/etcd.sock", URL{Scheme: "unix", Host: "/run/etcd.sock"}, true},
		{"127.0.0.1:2379", URL{}, false},
		{"https://", URL{}, false},
		{"", URL{}, false},
	} {
		got, ok := Parse(c.in)
		got.Raw = ""
		if !c.ok {
			got = URL{}
		}
		if ok != c.ok || got != c.want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

func TestListKeepsWhatIsNoURL(t *testing.T) {
	urls, bad := List("https://b:2379,, a:2379 ,https://a:2379,https://A:2379/")
	if diff := cmp.Diff([]string{"https://a:2379", "https://b:2379"}, Set(urls)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a:2379"}, bad); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		listen, host string
		want         bool
	}{
		{"127.0.0.1", "127.0.0.1", true}, {"0.0.0.0", "10.0.0.1", true}, {"::", "127.0.0.1", true},
		{"127.0.0.1", "localhost", true}, {"localhost", "::1", true},
		{"10.0.0.1", "127.0.0.1", false}, {"10.0.0.1", "localhost", false}, {"127.0.0.1", "127.0.0.2", false},
	} {
		if got := SameHost(c.listen, c.host); got != c.want {
			t.Errorf("SameHost(%q, %q) = %v", c.listen, c.host, got)
		}
	}
}

func TestSplitHostPort(t *testing.T) {
	for in, want := range map[string][2]string{
		"api.k8s.example:6443": {"api.k8s.example", "6443"}, "10.0.0.1": {"10.0.0.1", ""},
		"[2001:db8::1]:6443": {"2001:db8::1", "6443"}, "2001:DB8::1": {"2001:db8::1", ""}, "": {"", ""},
	} {
		h, p := SplitHostPort(in)
		if want != [2]string{h, p} {
			t.Errorf("SplitHostPort(%q) = %q, %q", in, h, p)
		}
	}
}
