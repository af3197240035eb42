package rules

import (
	"regexp"
	"strings"
	"testing"

	"coldplane/analyze"
)

func TestCatalogueIsValid(t *testing.T) {
	if err := analyze.Validate(All()); err != nil {
		t.Fatal(err)
	}
}

// Every family of the catalogue has a name on the catalogue page.
func TestEveryFamilyIsNamed(t *testing.T) {
	page := Markdown(All())
	for _, r := range All() {
		if !strings.Contains(page, "### "+r.ID+" ") {
			t.Errorf("%s is missing from the catalogue page", r.ID)
		}
	}
}

func TestSelect(t *testing.T) {
	all := All()
	got, err := Select(all, []string{"DIR", "-DIR102"})
	if err != nil || len(got) == 0 {
		t.Fatalf("%d rules, %v", len(got), err)
	}
	for _, r := range got {
		if r.Family() != "DIR" || r.ID == "DIR102" {
			t.Errorf("%s was selected", r.ID)
		}
	}
	if _, err := Select(all, []string{"ZZZ"}); err == nil {
		t.Error("an unknown prefix was accepted")
	}
}

// Commands people paste at 3 a.m. must not delete member data or skip the
// first safe step.
func TestFixesHoldNoDestructiveCommand(t *testing.T) {
	bad := regexp.MustCompile(`rm -rf? .*(member|/var/lib/etcd|wal|snap)|--force-new-cluster\b.*\$`)
	for _, r := range All() {
		if bad.MatchString(r.Doc.Fix) {
			t.Errorf("%s: %s", r.ID, r.Doc.Fix)
		}
	}
}
