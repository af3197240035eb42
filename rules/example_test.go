package rules_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"coldplane/bundle"
	"coldplane/report"
	"coldplane/report/formats"
	"coldplane/rules"
)

// Analyze the sample cluster and look at the answer.
func ExampleEvaluate() {
	ctx := context.Background()
	set, err := bundle.Open(ctx, []string{"../testdata/incident"}, bundle.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()

	var o rules.Options
	o.AsOf = time.Date(2026, 5, 12, 9, 30, 0, 0, time.UTC)
	r, err := rules.Evaluate(ctx, set, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("verdict:", r.Verdict.State)
	for _, f := range r.Findings {
		if f.Rule == "DIR102" {
			fmt.Printf("%s %s on %s\n", f.Severity, f.Rule, f.Node)
			fmt.Println(f.Evidence[0].Place(), f.Evidence[0].Excerpt)
		}
	}
	// Output:
	// verdict: cause
	// critical DIR102 on cp1
	// nodes/cp1/etc/kubernetes/manifests/etcd.yaml:91 hostPath: /var/lib/etcd-restored
}

// Ask a few rules only and write the answer in any of the formats.
func ExampleSelect() {
	ctx := context.Background()
	set, err := bundle.Open(ctx, []string{"../testdata/incident"}, bundle.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()

	picked, err := rules.Select(rules.All(), []string{"DIR102"})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := rules.Evaluate(ctx, set, rules.Options{Rules: picked})
	if err != nil {
		fmt.Println(err)
		return
	}
	var b strings.Builder
	if err := formats.All()["csv"](&b, r, report.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range strings.Split(b.String(), "\r\n")[:2] {
		fmt.Fprintln(os.Stdout, strings.Join(strings.Split(line, ",")[:4], ","))
	}
	// Output:
	// "severity","confidence","rule","node"
	// "critical","certain","DIR102","cp1"
}
