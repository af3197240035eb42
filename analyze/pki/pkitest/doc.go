// Package pkitest fills a kubeadm tree written as text with real certificates, for tests only.
//
// Make finds every node of a tree (files below etc/kubernetes, or below
// nodes/NAME/etc/kubernetes) and replaces placeholders of certificates, keys
// and kubeconfigs by what kubeadm would have made: names and addresses are
// read from the node's manifests. Keys are P-256, derived from names, and all
// dates and serial numbers are fixed, so that a tree is the same every time
// it is made.
//
// A file named ANYTHING!pki holds changes, one a line:
//
//	at 2026-04-01T00:00:00Z         when everything was made (this is the default)
//	life 365d                       of leaves; ca-life 3650d of CAs
//	keys index|files|redacted       keys as fingerprints in KEYS.json (default), as key files, as markers
//	[NODE:]NAME FIELD=VALUE ...     change one certificate or kubeconfig, on one node or on all
//
// NAME is a path below pki without .crt ("apiserver", "etcd/server", "ca",
// "sa"), a kubeconfig ("admin.conf"), "kubelet-client-current.pem",
// "kubelet.crt" or "root/.kube/config", which is only made when named. Fields:
//
//	from=TIME to=TIME               dates; a CA's kubeconfigs and leaves are not changed with it
//	cn=TEXT o=A,B                   subject
//	san=A,B  san+=A,B  san-=A,B     alternative names
//	usage=server,client|none|ca     extended key usage; ca makes it a CA certificate
//	ca=NAME                         issued by another CA: a known one, or a new one of the right CA's name
//	via=NAME                        issued by a new intermediate CA, which follows in the file
//	key=NAME                        the certificate holds another key
//	beside=NAME                     another key lies beside it
//	alg=rsa1024|rsa2048|ed25519     kind of key
//	sig=sha1                        signature (with an RSA CA)
//	add=NAME                        of a CA: a further certificate in the file, "old" or any known CA
//	first=NAME                      the same, before its own
//	serial=negative                 a certificate that Go refuses
//	raw=garbage|empty|marker|cut    what stands in the file instead
//	absent=cert|key|both            not made
//	server=URL                      of a kubeconfig
//	cadata=NAME                     of a kubeconfig: another CA in it
//	same=NAME                       of root/.kube/config: the same certificate
//	inline=yes                      kubelet.conf holds its certificate itself
//
// In specs of databases (files named PATH!etcd) {{pem NAME}} becomes a CA's
// certificate as a quoted string and {{b64 NAME}} the same in base64; Make
// must run before the generator that builds the database.
package pkitest
