package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coldplane/analyze/etcdstore/storetest"
)

const storeSpec = `
member 1f name=cp1 peer=https://10.0.0.11:2380 client=https://10.0.0.11:2379
member 2f peer=https://10.0.0.12:2380 learner
alarm NOSPACE 1f
object
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: u-1}
end
object
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {color: blue}
end
object
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {color: green}
end
object
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: canary-in-annotation}}
stringData: {}
data: {password: Y2FuYXJ5LWluLXNlY3JldA==}
end
object
apiVersion: v1
kind: ConfigMap
metadata: {name: gone, namespace: shop}
data: {color: red}
end
delete /registry/configmaps/shop/gone
trailer
`

// storeCommand runs a command line and returns its exit code and both outputs.
func storeCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &env{in: strings.NewReader(""), out: &out, err: &errs, now: func() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) },
		getenv: func(k string) string {
			if k == "COLDPLANE_SECOND_OPINION" {
				return "off" // the test binary is not coldplane
			}
			return ""
		}}
	code = run(context.Background(), e, args)
	return code, out.String(), errs.String()
}

func TestStoreCommands(t *testing.T) {
	db := filepath.Join(t.TempDir(), "snapshot.db")
	if err := storetest.Write(db, storeSpec); err != nil {
		t.Fatal(err)
	}
	unchanged(t, db)
	for _, c := range []struct {
		args []string
		code int
		want []string // on stdout, or stderr when code is not 0
		not  []string
	}{
		{[]string{"etcd", "status", db}, 0, []string{"revision  ", "NOSPACE of member 1f", "sha256", "ok", "sound"}, nil},
		{[]string{"etcd", "status", db, "-o", "json"}, 0, []string{`"trailer`, `"kvHash"`}[1:], nil},
		{[]string{"etcd", "top", db}, 0, []string{"configmaps", "LARGEST", "MOST WRITTEN"}, nil},
		{[]string{"etcd", "members", db}, 0, []string{"2f", "learner, never started", "cp1"}, nil},
		{[]string{"etcd", "history", db}, 0, []string{"/registry/configmaps/shop/gone"}, nil},
		{[]string{"get", "cm", "settings", db, "-n", "shop", "-o", "yaml"}, 0, []string{"color: green"}, []string{"blue"}},
		{[]string{"get", "cm", "settings", db, "-n", "shop", "-o", "yaml", "--rev", "3"}, 0, []string{"color: blue"}, []string{"green"}},
		{[]string{"get", "configmaps", db, "-A", "-o", "name"}, 0, []string{"configmaps/settings"}, []string{"gone"}},
		{[]string{"get", "configmaps", db, "-A", "--deleted", "-o", "yaml"}, 0, []string{"color: red"}, []string{"settings"}},
		{[]string{"get", "secrets", db, "-A", "-o", "yaml"}, 0, []string{"password", "not shown"}, []string{"Y2FuYXJ5", "canary"}},
		{[]string{"get", "cm", db, "--rev", "900"}, 2, []string{"in the future"}, nil},
		{[]string{"get", "widgets", db}, 2, []string{"no objects of type"}, nil},
		{[]string{"get", "cm", db, "-o", "xml"}, 2, []string{"unknown output format"}, nil},
		{[]string{"verify", db}, 0, []string{": intact", "all sound", "alarm        NOSPACE", "restorable   yes", "etcdutl snapshot restore"}, nil},
	} {
		code, out, errs := storeCommand(t, c.args...)
		if code != c.code {
			t.Errorf("%v: exit %d, want %d: %s", c.args, code, c.code, errs)
		}
		text := out
		if c.code != 0 {
			text = errs
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in\n%s", c.args, w, text)
			}
		}
		for _, w := range c.not {
			if strings.Contains(out, w) {
				t.Errorf("%v: %q in\n%s", c.args, w, out)
			}
		}
	}
}
