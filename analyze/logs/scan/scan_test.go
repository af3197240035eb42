package scan

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"coldplane/analyze/logs/signature"
)

func scanner(tb testing.TB) *Scanner {
	tb.Helper()
	s, err := New(signature.Table())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func scanText(tb testing.TB, log string, o Options) *Result {
	tb.Helper()
	r, err := scanner(tb).Scan(tb.Context(), strings.NewReader(log), o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func utc(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestFieldsTimesAndPlaces(t *testing.T) {
	log := "2026-01-02T03:04:05.5Z stderr F {\"level\":\"info\",\"ts\":\"2026-01-02T03:04:05.400Z\",\"caller\":\"x.go:1\",\"msg\":\"quiet\"}\n" +
		"2026-01-02T03:04:07.5Z stderr F {\"level\":\"warn\",\"ts\":\"2026-01-02T03:04:07.400Z\",\"caller\":\"wal/wal.go:806\",\"msg\":\"slow fdatasync\",\"took\":\"7.454439372s\",\"expected-duration\":\"1s\"}\n" +
		"2026-01-02T03:05:07.5Z stderr F {\"level\":\"warn\",\"ts\":\"2026-01-02T03:05:07.400Z\",\"caller\":\"wal/wal.go:806\",\"msg\":\"slow fdatasync\",\"took\":\"1.2s\",\"expected-duration\":\"1s\"}\n"
	r := scanText(t, log, Options{Program: signature.Etcd})
	st := r.Stat("E05")
	if st == nil || st.Count != 2 || len(st.Hits) != 2 {
		t.Fatalf("E05: %+v", st)
	}
	h := st.Hits[0]
	if h.Line != 2 || h.Offset != int64(strings.IndexByte(log, '\n')+1) || !h.Time.Equal(utc("2026-01-02T03:04:07.4Z")) {
		t.Errorf("line %d offset %d time %v", h.Line, h.Offset, h.Time)
	}
	if v := st.Value(h, "took"); v != "7.454439372s" {
		t.Errorf("took %q", v)
	}
	if st.Measured.N != 2 || st.Measured.Max < 7*time.Second || st.Measured.Quantile(0.5) > 1400*time.Millisecond || st.Measured.Above(2*time.Second) != 1 {
		t.Errorf("measured %+v", st.Measured)
	}
	if len(st.Episodes) != 2 || len(r.Activity) != 2 {
		t.Errorf("episodes %v, activity %v: 60 s lie between", st.Episodes, r.Activity)
	}
	if r.Lines != 3 || r.Bytes != int64(len(log)) || r.Wrap != "cri" || len(r.Tail) != 3 || r.Tail[2].Number != 3 {
		t.Errorf("lines %d bytes %d wrap %s tail %+v", r.Lines, r.Bytes, r.Wrap, r.Tail)
	}
}

// TestZoneAndYear: local times are placed by what the stream itself tells.
func TestZoneAndYear(t *testing.T) {
	log := `Jan 25 06:42:36 cp1 etcd[2]: {"level":"warn","ts":"2021-01-25T06:42:36.000+0100","caller":"wal/wal.go:806","msg":"slow fdatasync","took":"7.4s"}
Jan 25 06:42:41 cp1 kube-controller-manager[3]: E0125 06:42:39.880363 3 leaderelection.go:325] error retrieving resource lock kube-system/kube-controller-manager: timeout
Jan 25 06:42:42 cp1 nginx[3]: error retrieving resource lock is what somebody else says
`
	r := scanText(t, log, Options{})
	st := r.Stat("C02")
	if st == nil || st.Count != 1 {
		t.Fatalf("C02: %+v", st)
	}
	if want := utc("2021-01-25T05:42:39.880363Z"); !st.Hits[0].Time.Equal(want) {
		t.Errorf("C02 at %v, want %v", st.Hits[0].Time, want)
	}
	if st.Program != signature.ControllerManager || r.ZoneAssumed || !r.YearGuessed {
		t.Errorf("program %v, assumed %v, guessed %v", st.Program, r.ZoneAssumed, r.YearGuessed)
	}
	r = scanText(t, "I0102 03:04:05.000000 1 a.go:1] \"Loaded serving cert\"\n", Options{Program: signature.APIServer})
	if !r.NoYear || !r.First.IsZero() || r.Stat("A13") == nil {
		t.Errorf("without a reference the year is unknown, the text is not: %+v", r)
	}
	r = scanText(t, "I1231 23:04:05.000000 1 a.go:1] x\nI0102 03:04:05.000000 1 a.go:1] y\n",
		Options{Program: signature.APIServer, Ref: utc("2026-01-03T00:00:00Z"), Zone: 9 * time.Hour, ZoneKnown: true})
	if !r.First.Equal(utc("2025-12-31T14:04:05Z")) || !r.Last.Equal(utc("2026-01-01T18:04:05Z")) {
		t.Errorf("new year: %v to %v", r.First, r.Last)
	}
}

func TestPartialRecords(t *testing.T) {
	log := "2026-01-02T03:04:05.1Z stderr P {\"level\":\"warn\",\"ts\":\"2026-01-02T03:04:05.1Z\",\"msg\":\"slow fda\n" +
		"2026-01-02T03:04:05.1Z stdout F other\n" +
		"2026-01-02T03:04:05.1Z stderr P tasync\",\"took\":\n" +
		"2026-01-02T03:04:05.1Z stderr F \"2s\"}\n" +
		"2026-01-02T03:04:06.1Z stderr F {\"level\":\"warn\",\"ts\":\"2026-01-02T03:04:06.1Z\",\"msg\":\"slow fdatasync\",\"took\":\"3s\"}\n"
	r := scanText(t, log, Options{Program: signature.Etcd})
	st := r.Stat("E05")
	if st == nil || st.Count != 2 || st.Hits[0].Line != 1 || st.Hits[1].Line != 5 || r.Partials != 1 {
		t.Fatalf("%+v, %d partials", st, r.Partials)
	}
	if st.Measured.Max != 3*time.Second || st.Value(st.Hits[0], "took") != "2s" {
		t.Errorf("took %q", st.Value(st.Hits[0], "took"))
	}
}

func TestGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprintln(z, `{"level":"warn","ts":"2026-01-02T03:04:06.1Z","msg":"slow fdatasync","took":"3s"}`)
	z.Close()
	r, err := scanner(t).Scan(t.Context(), bytes.NewReader(b.Bytes()), Options{Program: signature.Etcd})
	if err != nil || r.Stat("E05") == nil || r.Broken != "" {
		t.Errorf("%+v %v", r, err)
	}
	r, err = scanner(t).Scan(t.Context(), bytes.NewReader(b.Bytes()[:b.Len()-9]), Options{Program: signature.Etcd})
	if err != nil || r.Broken == "" {
		t.Errorf("a cut gzip stream is not reported: %+v %v", r, err)
	}
}

func TestJournalForms(t *testing.T) {
	json := `{"__REALTIME_TIMESTAMP":"1796054029263160","SYSLOG_IDENTIFIER":"kubelet","MESSAGE":"E1130 15:53:49.000001 1 a.go:1] \"Node became not ready\" node=\"cp1\""}
{"__REALTIME_TIMESTAMP":"1796054030263160","_TRANSPORT":"kernel","MESSAGE":[` + strings.Trim(strings.ReplaceAll(fmt.Sprint([]byte("EXT4-fs error (device sda1): \xff")), " ", ","), "[]") + `]}
`
	r := scanText(t, json, Options{})
	if st := r.Stat("K28"); st == nil || st.Program != signature.Kubelet {
		t.Errorf("K28: %+v", st)
	}
	if st := r.Stat("X04"); st == nil || st.Value(st.Hits[0], "device") == "" && !strings.Contains(st.Samples[0].Message, "sda1") {
		t.Errorf("X04: %+v", st)
	}
	export := "__REALTIME_TIMESTAMP=1796054029263160\nSYSLOG_IDENTIFIER=kubelet\nMESSAGE=E1130 15:53:49.000001 1 a.go:1] \"Node became not ready\" node=\"cp1\"\n\n"
	r = scanText(t, export, Options{})
	if st := r.Stat("K28"); st == nil || !st.Hits[0].Time.Equal(time.UnixMicro(1796054029263160)) || r.Wrap != "journal-export" {
		t.Errorf("export: %+v", r)
	}
	if _, err := scanner(t).Scan(t.Context(), strings.NewReader("LPKSHHRH\x00\x00"), Options{}); !errors.Is(err, ErrBinaryJournal) {
		t.Errorf("binary journal: %v", err)
	}
}

func TestCrashKeepsContext(t *testing.T) {
	r := scanText(t, "panic: something odd\n\ngoroutine 1 [running]:\nmain.main()\n", Options{Program: signature.Etcd})
	st := r.Stat("X20")
	if st == nil || !strings.Contains(st.Samples[0].Excerpt, "something odd") {
		t.Errorf("%+v", st)
	}
}

func TestClockJumpsBack(t *testing.T) {
	r := scanText(t, "2026-01-02T03:10:00Z stderr F a\n2026-01-02T03:04:00Z stderr F b\n2026-01-02T03:04:01Z stderr F c\n", Options{})
	if len(r.Back) != 1 || r.Back[0].By != 6*time.Minute || r.Back[0].Line != 2 {
		t.Errorf("%+v", r.Back)
	}
}

// slowJunk yields n bytes without a line break.
type slowJunk struct{ n int64 }

func (j *slowJunk) Read(b []byte) (int, error) {
	if j.n <= 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), j.n))
	for i := range b[:n] {
		b[i] = byte(i * 7)
		if b[i] == '\n' {
			b[i] = 0
		}
	}
	j.n -= int64(n)
	return n, nil
}

// TestHugeLine: a line of 100 MB costs its head, and what follows is found.
func TestHugeLine(t *testing.T) {
	text := "\n{\"level\":\"warn\",\"ts\":\"2026-01-02T03:04:06.1Z\",\"msg\":\"slow fdatasync\",\"took\":\"3s\"}\n"
	r, err := scanner(t).Scan(t.Context(), io.MultiReader(strings.NewReader("start "), &slowJunk{100 << 20}, strings.NewReader(text)), Options{Program: signature.Etcd})
	if err != nil {
		t.Fatal(err)
	}
	if st := r.Stat("E05"); st == nil || st.Hits[0].Line != 2 {
		t.Errorf("E05 %+v", st)
	}
	if r.Long != 1 || r.Cut < 99<<20 || r.Lines != 2 || r.NULs == 0 {
		t.Errorf("long %d cut %d lines %d NULs %d", r.Long, r.Cut, r.Lines, r.NULs)
	}
}

func TestLimit(t *testing.T) {
	r := scanText(t, strings.Repeat("a line\n", 200000), Options{Limit: 300 << 10})
	if !r.Limited || r.Bytes > 600<<10 {
		t.Errorf("limited %v after %d bytes", r.Limited, r.Bytes)
	}
}

func TestManyHitsStayBounded(t *testing.T) {
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "2026-01-02T%02d:%02d:%02d.1Z stderr F {\"level\":\"warn\",\"ts\":\"2026-01-02T%02d:%02d:%02d.1Z\",\"msg\":\"prober detected unhealthy status\",\"remote-peer-id\":\"%x\"}\n",
			i/3600, i/60%60, i%60, i/3600, i/60%60, i%60, i)
	}
	st := scanText(t, b.String(), Options{Program: signature.Etcd}).Stat("E10")
	if st.Count != 20000 || len(st.Hits) != 2*keepHits || st.Dropped != 20000-2*keepHits || len(st.Values["remote-peer-id"]) != keepValues || len(st.Samples) != 6 {
		t.Errorf("count %d hits %d dropped %d values %d samples %d", st.Count, len(st.Hits), st.Dropped, len(st.Values["remote-peer-id"]), len(st.Samples))
	}
	if st.Hits[len(st.Hits)-1].Line != 20000 || st.Samples[5].Number != 20000 || st.Minute.Count != 60 {
		t.Errorf("last hit line %d, sample %d, busiest minute %d", st.Hits[len(st.Hits)-1].Line, st.Samples[5].Number, st.Minute.Count)
	}
	sum := 0
	for _, s := range st.Slots {
		sum += s.Count
	}
	if sum != 20000 {
		t.Errorf("slots hold %d", sum)
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		`Authorization: Bearer abcdefghijklmnopqrst.u`:      `Authorization: [removed]`,
		`join --token abcdef.0123456789abcdef now`:          `join --token [bootstrap token removed] now`,
		`https://user:hunter22@host/x`:                      `https://[removed]@host/x`,
		`POST https://hook/x?token=abc&y=1`:                 `POST https://hook/x?token=[removed]&y=1`,
		`eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.sig-x1`:   `[token removed]`,
		`err="[invalid bearer token, square/go-jose: bad]"`: `err="[invalid bearer token, square/go-jose: bad]"`,
		`--authorization-mode=Node,RBAC`:                    `--authorization-mode=Node,RBAC`,
	} {
		got := Redact(in)
		if strings.Contains(want, "Authorization") {
			if strings.Contains(got, "abcdefghij") {
				t.Errorf("%s: %s", in, got)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

// FuzzScan: any bytes, in any program's log, end in a Result whose counts and
// places lie inside the stream.
func FuzzScan(f *testing.F) {
	f.Add([]byte("2026-01-02T03:04:05.1Z stderr P a\n2026-01-02T03:04:05.1Z stderr F slow fdatasync\n"), uint32(1))
	f.Add([]byte("__CURSOR=x\nMESSAGE\n\x05\x00\x00\x00\x00\x00\x00\x00hello\n\n"), uint32(0))
	f.Add([]byte("\x1f\x8b\x08\x00"), uint32(0))
	f.Add([]byte("{\"__REALTIME_TIMESTAMP\":\"1\",\"MESSAGE\":[1,2"), uint32(4))
	f.Add([]byte("{\n\t\"__REALTIME_TIMESTAMP\" : \"1\",\n\t\"MESSAGE\" : [\n1,\n2\n"), uint32(4))
	f.Add([]byte("Jan 01 00:00:00 a kernel: Out of memory: Killed process 1 (etcd)\r\n\x00\x00"), uint32(0))
	s := scanner(f)
	f.Fuzz(func(t *testing.T, b []byte, by uint32) {
		r, err := s.Scan(t.Context(), bytes.NewReader(b), Options{Program: signature.Emitter(by) & signature.Any, Limit: 1 << 20, Ref: utc("2026-01-03T00:00:00Z")})
		if err != nil {
			return
		}
		for _, st := range r.Stats {
			if st.Count < 1 || len(st.Hits) == 0 || st.Count != len(st.Hits)+st.Dropped {
				t.Fatalf("%s: count %d, hits %d, dropped %d", st.Sig.ID, st.Count, len(st.Hits), st.Dropped)
			}
			for _, h := range st.Hits {
				if h.Line < 1 || h.Offset < 0 {
					t.Fatalf("%s at line %d offset %d", st.Sig.ID, h.Line, h.Offset)
				}
			}
		}
	})
}
