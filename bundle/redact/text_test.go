package redact

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// secretShapes are secrets the way they turn up in logs, messages and
// configuration. %s is the secret; the harmless part around it must stay.
func secretShapes(r *rand.Rand) []struct{ name, text, secret string } {
	alnum := func(n int) string {
		const set = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		b := make([]byte, n)
		for i := range b {
			b[i] = set[r.IntN(len(set))]
		}
		b[n/3], b[n/2], b[n-1] = '7', 'Q', 'k'
		return string(b)
	}
	lower := func(n int) string { return strings.ToLower(alnum(n)) }
	hex := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "0123456789abcdef"[r.IntN(16)]
		}
		return string(b)
	}
	b64 := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	jwt := "eyJhbGciOiJSUzI1NiIsImtpZCI6Ik" + alnum(20) + "." + "eyJpc3MiOiJrdWJl" + alnum(60) + "." + alnum(86)
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + b64(48) + "\n" + b64(48) + "\n" + b64(20) + "\n-----END RSA PRIVATE KEY-----"
	body := strings.Split(key, "\n")[1]
	s := func(name, format, secret string) struct{ name, text, secret string } {
		return struct{ name, text, secret string }{name, fmt.Sprintf(format, secret), secret}
	}
	pw := "Hunter2" + alnum(9)
	return []struct{ name, text, secret string }{
		s("bearer header klog", `I0102 03:04:05.678901       1 round_trippers.go:466] curl -v -XGET  -H "Authorization: Bearer %s" 'https://10.0.0.1:6443/api'`, jwt),
		s("bearer opaque", `Authorization: Bearer %s`, alnum(40)),
		s("basic header", `Authorization: Basic %s`, b64(18)),
		s("authorization json", `{"headers":{"Authorization":["Bearer %s"]}}`, alnum(32)),
		s("authorization escaped", `"{\"Authorization\":\"Bearer %s\"}"`, alnum(32)),
		s("proxy-authorization", `Proxy-Authorization: Basic %s`, b64(15)),
		s("jwt alone", `token review failed for %s`, jwt),
		s("jwt base64", `data: %s`, base64.StdEncoding.EncodeToString([]byte(jwt))),
		s("jwt first half of a split line", `token is %s`, jwt[:60]),
		s("bootstrap token", `kubeadm join 10.0.0.1:6443 --token %s --discovery-token-ca-cert-hash sha256:ab`, lower(6)+"."+lower(16)),
		s("bootstrap token alone", `invalid token: %s was not found`, lower(6)+"."+lower(16)),
		s("certificate key", `kubeadm join --control-plane --certificate-key %s`, hex(64)),
		s("certificateKey yaml", "certificateKey: %s", hex(64)),
		s("url password", `dial https://admin:%s@vcenter.example/sdk: refused`, pw),
		s("url token", `fetch https://%s@git.example/repo.git`, alnum(30)),
		s("proxy env", `HTTP_PROXY=http://proxyuser:%s@proxy.example:3128`, pw),
		s("dsn", `postgres://app:%s@db.example:5432/app?sslmode=disable`, pw),
		s("amqp", `amqp://guest:%s@mq:5672/`, pw),
		s("redis without user", `redis://:%s@redis:6379/0`, pw),
		s("aws id", `using %s for S3`, "AKIA"+strings.ToUpper(alnum(16))),
		s("aws secret", `aws_secret_access_key=%s`, alnum(40)),
		s("aws secret yaml", `secretAccessKey: %s`, alnum(40)),
		s("aws sigv4", `https://s3.example/x?X-Amz-Signature=%s&x=1`, hex(64)),
		s("azure sas", `https://acct.blob.example/c?sv=2020&sig=%s&se=2026`, strings.ReplaceAll(b64(32), "+", "%2B")),
		s("azure account key", `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%s;EndpointSuffix=x`, b64(64)),
		s("google api key", `key %s rejected`, "AIza"+alnum(35)),
		s("github token", `remote: %s`, "ghp_"+alnum(36)),
		s("github fine-grained", `use %s`, "github_pat_"+alnum(60)),
		s("gitlab token", `PRIVATE-TOKEN %s`, "glpat-"+alnum(20)),
		s("slack token", `hook %s`, "xoxb-998877665544-"+alnum(24)),
		s("vault token", `renew %s`, "hvs."+alnum(24)),
		s("npm token", `//registry/:_authToken=%s`, "npm_"+alnum(36)),
		s("docker hub token", `login with %s`, "dckr_pat_"+alnum(27)),
		s("stripe", `charge with %s`, "sk_live_"+alnum(24)),
		s("age identity", `identity %s`, "AGE-SECRET-KEY-1"+strings.ToUpper(alnum(58))),
		s("docker config auth", `{"auths":{"r.example":{"auth":"%s"}}}`, b64(24)),
		s("docker config escaped", `"{\"auths\":{\"r.example\":{\"auth\":\"%s\"}}}"`, b64(24)),
		s("identitytoken", `"identitytoken": "%s"`, alnum(40)),
		s("password equals", `starting with password=%s user=x`, pw),
		s("password colon", `password: %s`, pw),
		s("password quoted with spaces", `password="%s"`, pw+" and more "+pw),
		s("passwd", `passwd=%s`, pw),
		s("password short and plain", `db password: %s`, "hunter"),
		s("pwd", `PWD_DB='%s'`, pw),
		s("client_secret form", `grant_type=x&client_secret=%s&scope=y`, alnum(24)),
		s("oidc client secret flag", `--oidc-client-secret=%s`, alnum(24)),
		s("password option", `mysqldump --password %s --all`, pw),
		s("token option", `helm --kube-token %s`, alnum(24)),
		s("env in crictl", `{"key":"DB_PASSWORD","value":"%s"}`, pw),
		s("env yaml", "- name: DB_PASSWORD\n  value: %s", pw),
		s("env go", `EnvVar{Name:DB_PASSWORD,Value:%s,}`, pw),
		s("api key json", `{"api_key": "%s"}`, alnum(24)),
		s("apikey header", `X-Api-Key: %s`, alnum(24)),
		s("access token json", `{"access_token":"%s","expires_in":3600}`, alnum(40)),
		s("refresh token", `"refresh_token": "%s"`, alnum(40)),
		s("secret json escaped", `"{\"clientSecret\":\"%s\"}"`, alnum(24)),
		s("xml password", `<ns:password>%s</ns:password>`, pw),
		s("logfmt token", `level=info token=%s msg=x`, alnum(24)),
		s("go map", `map[password:%s user:x]`, pw),
		s("credential", `credentials="%s"`, pw),
		s("psk", `psk=%s`, alnum(24)),
		s("encryption key yaml", "secret: %s", b64(32)),
		s("private key pem", "writing key\n%s\ndone", body+"\n"+strings.Split(key, "\n")[2]),
		s("pem with lines", strings.Replace(key, body, "%s", 1), body),
		s("pem without end", "-----BEGIN EC PRIVATE KEY-----\n%s\n", b64(48)),
		s("pem escaped", `{"key":"-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n"}`, b64(48)),
		s("pem openssh", "-----BEGIN OPENSSH PRIVATE KEY-----\n%s\n-----END OPENSSH PRIVATE KEY-----", b64(48)),
		s("pem encrypted", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,ABCD\n\n%s\n-----END RSA PRIVATE KEY-----", b64(48)),
		s("pem in base64", `tls.key: %s`, base64.StdEncoding.EncodeToString([]byte(key))),
		s("pem lines in cri log", "2026-01-01T00:00:00.1Z stderr F -----BEGIN PRIVATE KEY-----\n2026-01-01T00:00:00.2Z stderr F %s\n", b64(48)),
		s("kubeconfig key", "    client-key-data: %s", base64.StdEncoding.EncodeToString([]byte(key))),
		s("kubeconfig token", "    token: %s", jwt),
		s("secret dump json", `{"kind":"Secret","data":{"password":"%s"}}`, b64(12)),
		s("secret dump go bytes", `&v1.Secret{Data:map[string][]uint8{"p":[]uint8{%s}}}`, "0x68, 0x75, 0x6e, 0x74, 0x65, 0x72, 0x32"),
		s("secret dump decimal", `Data:map[p:[%s]]`, "104 117 110 116 101 114 50 104 117"),
		s("aes key base64", `key1 %s`, b64(32)),
		s("aes 128 key base64", `key1 %s`, b64(16)),
		s("random lower case", `session %s opened`, lower(32)),
		s("signature", `signature=%s`, hex(40)),
		s("ssh url", `ssh://git:%s@host/x`, pw),
		s("kube-vip bgp password", "bgp_peerpassword=%s", pw),
		s("snmp community as secret", "secret=%s", alnum(14)),
	}
}

func TestShapesAreMasked(t *testing.T) {
	shapes := secretShapes(rand.New(rand.NewPCG(5, 6)))
	if len(shapes) < 60 {
		t.Fatalf("%d shapes", len(shapes))
	}
	for _, s := range shapes {
		for _, form := range []struct{ name, pre, post string }{
			{"alone", "", ""},
			{"in a line", "2026-01-01T00:00:00.123456789Z stderr F ", " tail of the line"},
			{"among lines", "first line\n", "\nlast line"},
		} {
			b := []byte(form.pre + s.text + form.post)
			n := len(b)
			Text(b)
			if len(b) != n {
				t.Errorf("%s: length changed", s.name)
			}
			if leaks(b, s.secret) {
				t.Errorf("%s, %s: left: %s", s.name, form.name, b)
			}
			if !bytes.HasPrefix(b, []byte(form.pre)) || !bytes.HasSuffix(b, []byte(form.post)) && form.name == "among lines" {
				t.Errorf("%s, %s: harmless text is gone: %s", s.name, form.name, b)
			}
		}
	}
}

// leaks reports whether any eight consecutive characters of a secret are left.
func leaks(b []byte, secret string) bool {
	n := min(8, len(secret))
	for i := 0; i+n <= len(secret); i++ {
		if w := secret[i : i+n]; !Masked([]byte(w)) && strings.Trim(w, "-\n =,x0") != "" && bytes.Contains(b, []byte(w)) && !strings.Contains(w, "PRIVATE") && !strings.Contains(w, "-----") {
			return true
		}
	}
	return false
}

// Lines of real programs that hold no secret and are evidence.
func TestHarmlessLinesStay(t *testing.T) {
	for _, l := range []string{
		`{"level":"warn","ts":"2026-01-01T00:00:00.000Z","caller":"etcdserver/util.go:170","msg":"apply request took too long","took":"1.2s","expected-duration":"100ms","prefix":"read-only range ","request":"key:\"/registry/secrets/kube-system/bootstrap-token-abcdef\" ","response":"range_response_count:1 size:612"}`,
		`E0102 03:04:05.678901       1 authentication.go:63] "Unable to authenticate the request" err="[x509: certificate has expired or is not yet valid: current time 2026-01-01T00:00:00Z is after 2025-01-01T00:00:00Z, verifying certificate SN=2912, SKID=, AKID=AB:CD failed]"`,
		`I0102 03:04:05.678901       1 controller.go:615] quota admission added evaluator for: secrets`,
		`W0102 03:04:05.678901       1 reflector.go:539] failed to list *v1.Secret: secrets is forbidden: User "system:node:cp1" cannot list resource "secrets" in API group "" at the cluster scope`,
		`MountVolume.SetUp failed for volume "kube-api-access-abcde" : secret "default-token-abcde" not found`,
		`{"level":"info","msg":"raft.node: 8e9e05c52164694d elected leader 8e9e05c52164694d at term 2"}`,
		`containerd: time="2026-01-01T00:00:00Z" level=info msg="CreateContainer within sandbox \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\" for &ContainerMetadata{Name:etcd,Attempt:3,} returns container id \"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\""`,
		`Pulling image "registry.k8s.io/kube-apiserver@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`,
		`"Generated new token" tokenID="abcdef"`,
		`invalid bearer token, service account token has expired`,
		`open /etc/kubernetes/pki/etcd/server.key: no such file or directory`,
		`--service-account-signing-key-file=/etc/kubernetes/pki/sa.key --tls-private-key-file=/etc/kubernetes/pki/apiserver.key`,
		`error: failed to load key pair tls: private key does not match public key`,
		`Event(v1.ObjectReference{Kind:"Pod", Namespace:"kube-system", Name:"etcd-cp1", UID:"0db570d6-a6ba-4a17-ceb9-095cd7f58098"}): type: 'Normal' reason: 'Pulled'`,
		`node01.17a2b3c4d5e6f708`,
		`goroutine 1 [running]: k8s.io/kubernetes/cmd/kube-apiserver/app.CreateServerChain(0xc000b7c000, 0xc00011e0c0)`,
		`/go/src/k8s.io/kubernetes/vendor/k8s.io/client-go/tools/cache/sharedIndexInformerFactory.go:1234`,
	} {
		b := []byte(l)
		if n := Text(b); string(b) != l {
			t.Errorf("%v\n was %s\n  is %s", n, l, b)
		}
	}
}

func TestScanner(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	secret := "s3cr3t-" + canary(r)
	for _, c := range []struct {
		name, text string
		hit        bool
	}{
		{"clean", "apiVersion: v1\nkind: Pod\n", false},
		{"the value itself", "x " + secret + " y", true},
		{"in base64", "x " + base64.StdEncoding.EncodeToString([]byte(secret)) + " y", true},
		{"a key", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n", true},
		{"a masked key", "-----BEGIN PRIVATE KEY-----\nxxxxxxx11xxxxx\n", false},
		{"a certificate", "-----BEGIN CERTIFICATE-----\nMIIDBTCCAe2gAwIBAgIIMa8vZYHPyuYwDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE\n-----END CERTIFICATE-----\n", false},
		{"far behind", strings.Repeat("some text\n", 100_000) + secret, true},
		{"across pieces", strings.Repeat("y", 256<<10-10) + secret + "zz", true},
	} {
		s := NewScanner()
		s.Secret([]byte(secret))
		s.Begin("the/entry")
		for b := []byte(c.text); len(b) > 0; {
			n := min(len(b), 64<<10)
			if _, err := s.Write(b[:n]); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		err := s.End()
		if (err != nil) != c.hit {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "the/entry")) {
			t.Errorf("%s: the message is %q", c.name, err)
		}
	}
}

// Contract: any text keeps its length, and a second pass changes nothing.
func FuzzText(f *testing.F) {
	for _, s := range secretShapes(rand.New(rand.NewPCG(1, 1))) {
		f.Add([]byte(s.text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		b := bytes.Clone(in)
		Text(b)
		if len(b) != len(in) {
			t.Fatal("length changed")
		}
		Manifest(bytes.Clone(in))
		Kubeconfig(bytes.Clone(in))
		Config(bytes.Clone(in))
		Arguments(bytes.Clone(in))
		RuntimeConfig(bytes.Clone(in))
	})
}
