package redact

import "strings"

// skeletonWords stay in a text that cannot be parsed: the words of manifests.
const skeletonWords = `apiVersion kind metadata name namespace labels annotations spec containers initContainers image imagePullPolicy command args env value valueFrom ports
containerPort hostPort protocol resources requests limits cpu memory livenessProbe readinessProbe startupProbe httpGet host path port scheme exec tcpSocket grpc
initialDelaySeconds periodSeconds timeoutSeconds failureThreshold successThreshold volumeMounts mountPath readOnly subPath volumes hostPath type hostNetwork hostPID
priorityClassName priority restartPolicy dnsPolicy tolerations securityContext seccompProfile terminationGracePeriodSeconds status Pod v1 component tier control-plane
kube-apiserver kube-controller-manager kube-scheduler kube-proxy kube-system etcd kubernetes pki etc var lib usr share local ca crt key pem conf yaml log audit manifests
apiserver server client peer healthcheck front-proxy sa pub ssl certs ca-certificates DirectoryOrCreate FileOrCreate Directory File RuntimeDefault system-node-critical
system-cluster-critical HTTPS HTTP TCP UDP IfNotPresent Always Never registry k8s io livez readyz healthz health creationTimestamp null true false data-dir kubeconfig admin
super-admin controller-manager scheduler kubelet config Policy rules level Metadata Request RequestResponse None apiServer extraArgs Config List ConfigMap ClusterConfiguration`

// Skeleton masks a text whose structure is not known, in place: of letters and
// digits only the words of manifests and the names of flags stay. Punctuation,
// indentation and length stay, and with them most of what makes a text invalid.
func Skeleton(b []byte) {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(skeletonWords) {
		words[w] = true
	}
	f := newFlagSet()
	for i := 0; i < len(b); {
		if !letter(b[i]) {
			if b[i] >= '0' && b[i] <= '9' {
				b[i] = '1'
			}
			if b[i] >= 0x80 {
				b[i] = 'x'
			}
			i++
			continue
		}
		start := i
		for i < len(b) && (letter(b[i]) || b[i] >= '0' && b[i] <= '9' || b[i] == '-' && i+1 < len(b) && letter(b[i+1])) {
			i++
		}
		flag := start >= 2 && b[start-1] == '-' && b[start-2] == '-' && f.exact[string(b[start:i])]
		if !words[string(b[start:i])] && !flag {
			mask(b[start:i])
		}
	}
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
