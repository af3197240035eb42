package logline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type got struct {
	Wrap, Format, Ident, Level, Caller, Message, When string
	Zoned                                             bool
}

func shown(l Line) got {
	g := got{Wrap: l.Wrap.String(), Format: l.Format.String(), Ident: string(l.Ident), Caller: string(l.Caller), Message: string(l.Message)}
	if l.Level != 0 {
		g.Level = string(l.Level)
	}
	if w := l.When(); !w.IsZero() {
		g.When, g.Zoned = w.Time.Format("2006-01-02T15:04:05.999999999"), w.Zoned
	}
	return g
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     got
	}{
		{"cri zap", `2026-11-30T15:53:49.40924071Z stderr F {"level":"warn","ts":"2026-11-30T15:53:49.409200Z","caller":"wal/wal.go:806","msg":"slow fdatasync","took":"7.4s"}`,
			got{Wrap: "cri", Format: "zap", Level: "W", Caller: "wal/wal.go:806", Message: "slow fdatasync", When: "2026-11-30T15:53:49.4092", Zoned: true}},
		{"zap of a zone", `{"level":"warn","ts":"2021-01-25T06:42:29.227+0100","caller":"a.go:1","msg":"m"}`,
			got{Wrap: "bare", Format: "zap", Level: "W", Caller: "a.go:1", Message: "m", When: "2021-01-25T05:42:29.227", Zoned: true}},
		{"cri klog takes the year from the prefix", `2022-05-05T15:59:50.000000000Z stderr F E0505 15:59:49.432822    7867 authentication.go:63] "Unable to authenticate the request" err="[invalid bearer token]"`,
			got{Wrap: "cri", Format: "klog", Level: "E", Caller: "authentication.go:63", Message: "Unable to authenticate the request", When: "2022-05-05T15:59:50", Zoned: true}},
		{"bare klog has neither year nor zone", `W1130 15:53:54.919820       1 authentication.go:398] Continuing without.`,
			got{Wrap: "bare", Format: "klog", Level: "W", Caller: "authentication.go:398", Message: "Continuing without.", When: "0000-11-30T15:53:54.91982"}},
		{"short journal", `May 01 22:42:30 cp1 kubelet[44914]: E0501 22:42:30.344597   44914 run.go:74] "command failed" err="x"`,
			got{Wrap: "short", Format: "klog", Ident: "kubelet", Level: "E", Caller: "run.go:74", Message: "command failed", When: "0000-05-01T22:42:30.344597"}},
		{"short journal of systemd", `May  1 22:42:30 cp1 systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE`,
			got{Wrap: "short", Format: "plain", Ident: "systemd", Message: "kubelet.service: Main process exited, code=exited, status=1/FAILURE", When: "0000-05-01T22:42:30"}},
		{"identifier only", `kubelet[740513]: F0101 14:32:07.026322  740513 server.go:274] failed to run Kubelet: x`,
			got{Wrap: "bare", Format: "klog", Ident: "kubelet", Level: "F", Caller: "server.go:274", Message: "failed to run Kubelet: x", When: "0000-01-01T14:32:07.026322"}},
		{"short-iso", `2026-01-02T15:04:05+0900 cp1 kernel: Out of memory: Killed process 1`,
			got{Wrap: "short-iso", Format: "plain", Ident: "kernel", Message: "Out of memory: Killed process 1", When: "2026-01-02T06:04:05", Zoned: true}},
		{"journal json", `{"__CURSOR":"s=1","__REALTIME_TIMESTAMP":"1796054029263160","SYSLOG_IDENTIFIER":"kubelet","MESSAGE":"E1130 15:53:49.000001 1 a.go:1] \"x\" err=\"y\""}`,
			got{Wrap: "journal-json", Format: "klog", Ident: "kubelet", Level: "E", Caller: "a.go:1", Message: "x", When: "2026-11-30T15:53:49.26316", Zoned: true}},
		{"journal json with bytes", `{"__REALTIME_TIMESTAMP":"1796054029263160","_TRANSPORT":"kernel","MESSAGE":[104,105]}`,
			got{Wrap: "journal-json", Format: "plain", Ident: "kernel", Message: "hi", When: "2026-11-30T15:53:49.26316", Zoned: true}},
		{"capnslog", `2019-10-09 09:02:16.180000 C | etcdserver: read wal error (walpb: crc mismatch) and cannot be repaired`,
			got{Wrap: "bare", Format: "capnslog", Level: "F", Message: "etcdserver: read wal error (walpb: crc mismatch) and cannot be repaired", When: "2019-10-09T09:02:16.18"}},
		{"klog json", `{"ts":1796054029263.16,"caller":"a/b.go:7","msg":"m","v":0,"err":"e"}`,
			got{Wrap: "bare", Format: "klog-json", Level: "E", Caller: "a/b.go:7", Message: "m", When: "2026-11-30T15:53:49.26316", Zoned: true}},
		{"containerd", `time="2026-11-30T15:56:31.394175033Z" level=error msg="StopPodSandbox for \"79\" failed" error="x"`,
			got{Wrap: "bare", Format: "logfmt", Level: "E", Message: `StopPodSandbox for "79" failed`, When: "2026-11-30T15:56:31.394175033", Zoned: true}},
		{"zap console", "2026-11-30T15:56:31.394Z\twarn\twal/wal.go:1\tslow fdatasync\t{\"took\":\"2s\"}",
			got{Wrap: "bare", Format: "zap-console", Level: "W", Caller: "wal/wal.go:1", Message: "slow fdatasync", When: "2026-11-30T15:56:31.394", Zoned: true}},
		{"plain", "panic: tocommit(216) is out of range", got{Wrap: "bare", Format: "plain", Message: "panic: tocommit(216) is out of range"}},
		{"carriage return", "plain\r", got{Wrap: "bare", Format: "plain", Message: "plain"}},
		{"empty", "", got{Wrap: "bare", Format: "plain"}},
		{"day that is none", `I1340 15:53:54.919820       1 a.go:3] x`, got{Wrap: "bare", Format: "plain", Message: `I1340 15:53:54.919820       1 a.go:3] x`}},
		{"json that is no log", `{"a":{"msg":"nested"},"msg":"own"}`, got{Wrap: "bare", Format: "plain", Message: `{"a":{"msg":"nested"},"msg":"own"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shown(Parse([]byte(c.in)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPartial(t *testing.T) {
	l := Parse([]byte("2026-01-02T03:04:05.1Z stdout P half"))
	if !l.Partial || l.Stderr || string(l.Body) != "half" {
		t.Errorf("partial %v stderr %v body %q", l.Partial, l.Stderr, l.Body)
	}
	if l := Parse([]byte("2026-01-02T03:04:05.1Z stderr F")); l.Wrap != CRI || len(l.Body) != 0 {
		t.Errorf("an empty record is a record: %v %q", l.Wrap, l.Body)
	}
}

func TestFieldsAndText(t *testing.T) {
	zap := Parse([]byte(`{"level":"warn","ts":"2026-11-30T15:53:49.4Z","msg":"m","error":"a \"b\"","request":"error text of a user","n":3,"took":"1.2s"}`))
	if g := string(zap.Field("took")); g != "1.2s" {
		t.Errorf("took %q", g)
	}
	if g := string(zap.AppendText(nil, zap.AppendPairs(nil))); g != "m\na \"b\"" {
		t.Errorf("text %q: the request is a quotation", g)
	}
	klog := Parse([]byte(`E0505 15:59:49.432822 7 a.go:6] "Failed" pod="ns/p" err="x \"y\" = z" node=cp1`))
	if g := string(klog.Field("node")); g != "cp1" {
		t.Errorf("node %q", g)
	}
	if g := string(klog.AppendText(nil, klog.AppendPairs(nil))); g != "Failed\nx \"y\" = z" {
		t.Errorf("text %q", g)
	}
}

func TestWithYear(t *testing.T) {
	ref := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"I0102 00:00:00.000000 1 a.go:1] x": "2026-01-02",
		"I1230 00:00:00.000000 1 a.go:1] x": "2025-12-30",
		"I0104 01:00:00.000000 1 a.go:1] x": "2026-01-04", // a clock or zone ahead of the reference
		"I0229 01:00:00.000000 1 a.go:1] x": "2024-02-29", // a leap day takes a leap year
	} {
		l := Parse([]byte(in))
		if g := l.When().WithYear(ref).Time.Format("2006-01-02"); g != want {
			t.Errorf("%s: %s, want %s", in, g, want)
		}
	}
}

// FuzzParse: any bytes give a Line whose slices lie inside the input or are its
// own, without panic.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`2026-11-30T15:53:49.40924071Z stderr F {"level":"warn","ts":"2026-11-30T15:53:49.409200Z","msg":"x","took":"7.4s"}`,
		`E0505 15:59:49.432822 7 a.go:6] "Failed" pod="ns/p" err="x \"y\""`, `May  1 22:42:30 cp1 systemd[1]: kubelet.service: x`,
		`2019-10-09 09:02:16.180000 C | etcdserver: x`, `time="2026-11-30T15:56:31Z" level=error msg="a" error="b"`,
		`{"__REALTIME_TIMESTAMP":"1","MESSAGE":[1,2,300]}`, "{\"msg\":\"\\u00e9\\", "2026-11-30T15:56:31.394Z\twarn\ta\tb\t{", `{"ts":1e400,"msg":"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := Parse(b)
		l.AppendText(nil, l.AppendPairs(nil))
		l.Each(func(_, _ []byte, _ bool) bool { return true })
		l.When().WithYear(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if len(l.Body) > len(b) {
			t.Fatalf("body of %d bytes out of a line of %d", len(l.Body), len(b))
		}
	})
}
