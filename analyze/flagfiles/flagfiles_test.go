package flagfiles

import "testing"

func TestSumGoesByMeaning(t *testing.T) {
	a, _ := sum([]byte("kind: Policy\nrules:\n- level: None   # comment\n"))
	b, _ := sum([]byte("{\"rules\": [{\"level\": \"None\"}], \"kind\": \"Policy\"}"))
	c, _ := sum([]byte("kind: Policy\nrules:\n- level: Metadata\n"))
	if a != b {
		t.Error("spelling changes the sum")
	}
	if a == c {
		t.Error("another level has the same sum")
	}
	if d, _ := sum([]byte("not: [yaml")); d == "" {
		t.Error("what is no YAML has no sum")
	}
}

func TestRedaction(t *testing.T) {
	for s, want := range map[string]bool{
		"keys:\n- secret: REDACTED\n": true, "keys:\n- secret: <removed>\n": true, "keys:\n- secret: '****'\n": true,
		"keys:\n- secret: c2VjcmV0\n": false, "kind: x\n": false,
	} {
		if _, got := sum([]byte(s)); got != want {
			t.Errorf("%q: redacted %v", s, got)
		}
	}
}
