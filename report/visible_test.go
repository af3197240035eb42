package report_test

import (
	"testing"

	"coldplane/report"
)

func TestVisible(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain /etc/kubernetes", "plain /etc/kubernetes"},
		{"\x1b[31m\x07", `\x1b[31m\x07`},
		{"a\u009bb\u202ec", `a\u009bb\u202ec`},
		{"a\nb\tc\r", `a\nb\tc\x0d`},
		{"bad \xff", `bad \xff`},
		{`C:\windows \n`, `C:\windows \\n`},
		{"##vso[task.x]y ##[error]", `\x23#vso[task.x]y \x23#[error]`},
		{"::error::x and ::set-output name=a::b", `\x3a:error::x and \x3a:set-output name=a::b`},
		{"::1 and fe80::1 and ::ffff:10.0.0.1 a::b::c ## head", "::1 and fe80::1 and ::ffff:10.0.0.1 a::b::c ## head"},
		{"노드 控制面", "노드 控制面"},
	} {
		if got := report.Visible(c.in, 0); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
	if got := report.Visible("abcdef", 3); got != "abc…" {
		t.Errorf("cut: %q", got)
	}
}
