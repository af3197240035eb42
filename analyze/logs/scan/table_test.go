package scan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"coldplane/analyze/logs/signature"
)

// native writes a text as one of the programs prints it: in the message, or in
// the error field for texts that count there too.
func native(by signature.Emitter, in signature.Place, text string) (line string, program signature.Emitter) {
	quoted, _ := json.Marshal(text)
	const at = "2026-01-02T03:04:05.123456Z"
	switch {
	case by&signature.Etcd != 0:
		if in == signature.Text {
			return fmt.Sprintf(`{"level":"warn","ts":"%s","caller":"a/b.go:1","msg":"m","error":%s}`, at, quoted), signature.Etcd
		}
		return fmt.Sprintf(`{"level":"warn","ts":"%s","caller":"a/b.go:1","msg":%s}`, at, quoted), signature.Etcd
	case by&(signature.APIServer|signature.ControllerManager|signature.Scheduler|signature.Kubelet) != 0:
		p := by & -by
		for p&(signature.APIServer|signature.ControllerManager|signature.Scheduler|signature.Kubelet) == 0 {
			by &^= p
			p = by & -by
		}
		if in == signature.Text {
			return fmt.Sprintf(`2026-01-02T03:04:05.1Z stderr F E0102 03:04:05.000001       1 a.go:1] "m" err=%s`, quoted), p
		}
		return fmt.Sprintf(`2026-01-02T03:04:05.1Z stderr F E0102 03:04:05.000001       1 a.go:1] %s`, quoted), p
	case by&signature.Containerd != 0:
		if in == signature.Text {
			return fmt.Sprintf(`time="%s" level=error msg="m" error=%s`, at, quoted), signature.Containerd
		}
		return fmt.Sprintf(`time="%s" level=error msg=%s`, at, quoted), signature.Containerd
	}
	p := by & -by
	if p == signature.Kubeadm || p == signature.Events || p == signature.VIP {
		return text, p
	}
	return fmt.Sprintf("Jan 02 03:04:05 cp1 %s[7]: %s", strings.ReplaceAll(p.String(), "timesync", "chronyd"), text), p
}

func count(t *testing.T, s *Scanner, log string, by signature.Emitter, id string) int {
	t.Helper()
	r, err := s.Scan(t.Context(), strings.NewReader(log), Options{Program: by})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, st := range r.Stats {
		if st.Sig.ID == id {
			n += st.Count
		}
	}
	return n
}

// TestEverySignature shows each text found where its program prints it, and
// not found from another program, in a quoted request, or one byte off.
func TestEverySignature(t *testing.T) {
	s := scanner(t)
	for _, sig := range signature.Table() {
		for _, form := range sig.Texts {
			text := strings.ReplaceAll(form, signature.Gap, "some part")
			line, by := native(sig.By, sig.In, text)
			if n := count(t, s, line+"\n", by, sig.ID); n != 1 {
				t.Errorf("%s: found %d times in its own line %s", sig.ID, n, line)
			}
			off := []byte(text)
			off[len(off)/2] ^= 1
			another := slices.ContainsFunc(sig.Texts, func(o string) bool { return o != form && strings.Contains(string(off), o) })
			if !another && !strings.Contains(form, signature.Gap) {
				wrong, by := native(sig.By, sig.In, string(off))
				if n := count(t, s, wrong+"\n", by, sig.ID); n != 0 {
					t.Errorf("%s: found in %s, which is one byte off", sig.ID, wrong)
				}
			}
			for other := signature.Etcd; other < signature.Any; other <<= 1 {
				if other&sig.By == 0 {
					if n := count(t, s, line+"\n", other, sig.ID); n != 0 && signatureIdent(line) == "" {
						t.Errorf("%s: counted for %v, which does not print it", sig.ID, other)
					}
					break
				}
			}
			quoted, _ := json.Marshal("key:" + text)
			echo := fmt.Sprintf(`{"level":"warn","ts":"2026-01-02T03:04:05.1Z","caller":"a.go:1","msg":"m","request":%s}`, quoted)
			if n := count(t, s, echo+"\n", sig.By&-sig.By, sig.ID); n != 0 {
				t.Errorf("%s: counted in a quoted request", sig.ID)
			}
		}
	}
}

func signatureIdent(line string) string {
	if strings.HasPrefix(line, "Jan ") {
		return "named in the line"
	}
	return ""
}
