package redact

import (
	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certv1 "k8s.io/api/certificates/v1"
	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func under(prefix string, names ...string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + "." + n
	}
	return out
}

func join(lists ...[]string) (out []string) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// conditions without their messages, which quote what failed.
func conditions(prefix string) []string {
	return under(prefix, "type", "status", "reason", "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime", "observedGeneration")
}

var containerPaths = []string{"name", "image", "imagePullPolicy", "ports", "resources", "restartPolicy", "volumeMounts.name", "volumeMounts.mountPath", "volumeMounts.readOnly", "env.name"}

var containerStatusPaths = []string{"name", "ready", "restartCount", "started", "image", "imageID", "containerID",
	"state.waiting.reason", "state.running", "state.terminated.reason", "state.terminated.exitCode", "state.terminated.signal", "state.terminated.startedAt", "state.terminated.finishedAt", "state.terminated.containerID",
	"lastState.waiting.reason", "lastState.running", "lastState.terminated.reason", "lastState.terminated.exitCode", "lastState.terminated.signal", "lastState.terminated.startedAt", "lastState.terminated.finishedAt", "lastState.terminated.containerID"}

func podSpec(prefix string) []string {
	return join(
		under(prefix, "nodeName", "serviceAccountName", "serviceAccount", "priorityClassName", "priority", "hostNetwork", "hostPID", "dnsPolicy", "schedulerName", "restartPolicy",
			"terminationGracePeriodSeconds", "nodeSelector", "tolerations", "runtimeClassName", "preemptionPolicy", "volumes.name", "topologySpreadConstraints", "readinessGates"),
		under(prefix+".containers", containerPaths...),
		under(prefix+".initContainers", containerPaths...),
	)
}

var podPaths = join(podSpec("spec"),
	under("status", "phase", "reason", "hostIP", "hostIPs", "podIP", "podIPs", "startTime", "qosClass", "nominatedNodeName", "observedGeneration"),
	conditions("status.conditions"),
	under("status.containerStatuses", containerStatusPaths...),
	under("status.initContainerStatuses", containerStatusPaths...),
)

// systemPodPaths are what pods of kube-system keep more than others: what they
// were started with, by the flags' allow-list, and why they do not run.
var systemPodPaths = join(podPaths,
	[]string{"spec.containers.command|flags", "spec.containers.args|flags", "spec.initContainers.command|flags", "spec.initContainers.args|flags",
		"spec.volumes.hostPath", "spec.containers.livenessProbe", "spec.containers.readinessProbe", "spec.containers.startupProbe",
		"status.message|text", "status.conditions.message|text",
		"status.containerStatuses.state.waiting.message|text", "status.containerStatuses.lastState.waiting.message|text"})

func workload(spec, status []string) []string {
	return join(spec, under("spec", "replicas", "selector", "minReadySeconds", "revisionHistoryLimit", "paused", "progressDeadlineSeconds", "template.metadata.labels"),
		podSpec("spec.template.spec"), status, conditions("status.conditions"))
}

var eventPaths = []string{"reason", "type", "count", "firstTimestamp", "lastTimestamp", "eventTime", "series", "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
	"involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "source", "reportingComponent", "reportingInstance", "action", "related",
	"regarding", "reportingController", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount"}

var webhookPaths = []string{"name", "clientConfig.service", "clientConfig.caBundle", "clientConfig.url|url", "rules", "failurePolicy", "matchPolicy", "namespaceSelector", "objectSelector",
	"sideEffects", "timeoutSeconds", "admissionReviewVersions", "reinvocationPolicy", "matchConditions"}

var crdPaths = join(under("spec", "group", "names", "scope", "preserveUnknownFields", "conversion.strategy", "conversion.webhook.clientConfig.service",
	"conversion.webhook.clientConfig.caBundle", "conversion.webhook.conversionReviewVersions", "conversion.webhookClientConfig.service", "conversion.webhookClientConfig.caBundle",
	"version", "versions.name", "versions.served", "versions.storage", "versions.deprecated", "versions.deprecationWarning", "versions.subresources"),
	under("status", "conditions", "acceptedNames", "storedVersions"))

func typ[T any]() reflect.Type { return reflect.TypeFor[T]() }

// kinds are the lists, by apiVersion and kind. Kinds that are not here keep their
// metadata and the numbers and booleans at the top of their message.
func kinds() map[string]kindPolicy {
	return map[string]kindPolicy{
		"v1/Secret":    {typ[corev1.Secret](), []string{"type", "data{}", "stringData{}", "immutable"}},
		"v1/ConfigMap": {typ[corev1.ConfigMap](), []string{"data{}", "binaryData{}", "immutable"}},
		"v1/Node": {typ[corev1.Node](), join([]string{"spec.podCIDR", "spec.podCIDRs", "spec.providerID", "spec.taints", "spec.unschedulable"},
			[]string{"status.capacity", "status.allocatable", "status.phase", "status.addresses", "status.nodeInfo", "status.daemonEndpoints", "status.conditions.message|text"}, conditions("status.conditions"))},
		"v1/Namespace":      {typ[corev1.Namespace](), []string{"spec", "status"}},
		"v1/Pod":            {typ[corev1.Pod](), podPaths},
		"v1/Service":        {typ[corev1.Service](), []string{"spec", "status"}},
		"v1/Endpoints":      {typ[corev1.Endpoints](), []string{"subsets"}},
		"v1/ServiceAccount": {typ[corev1.ServiceAccount](), []string{"secrets", "imagePullSecrets", "automountServiceAccountToken"}},
		"v1/Event":          {typ[corev1.Event](), eventPaths},
		"v1/PersistentVolume": {typ[corev1.PersistentVolume](), join(under("spec", "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "volumeMode", "csi.driver"),
			[]string{"status.phase", "status.reason"})},
		"v1/PersistentVolumeClaim": {typ[corev1.PersistentVolumeClaim](), join(under("spec", "accessModes", "resources", "volumeName", "storageClassName", "volumeMode"), []string{"status.phase", "status.capacity", "status.accessModes"})},
		"v1/RangeAllocation":       {typ[corev1.RangeAllocation](), []string{"range", "data"}},
		"v1/ResourceQuota":         {typ[corev1.ResourceQuota](), []string{"spec.hard", "status"}},
		"v1/LimitRange":            {typ[corev1.LimitRange](), []string{"spec"}},

		"apps/v1/Deployment": {typ[appsv1.Deployment](), workload([]string{"spec.strategy"}, under("status", "observedGeneration", "replicas"))},
		"apps/v1/ReplicaSet": {typ[appsv1.ReplicaSet](), workload(nil, under("status", "replicas"))},
		"apps/v1/StatefulSet": {typ[appsv1.StatefulSet](), workload([]string{"spec.serviceName", "spec.podManagementPolicy", "spec.updateStrategy"},
			under("status", "currentRevision", "updateRevision"))},
		"apps/v1/DaemonSet":          {typ[appsv1.DaemonSet](), workload([]string{"spec.updateStrategy"}, under("status", "currentNumberScheduled"))},
		"apps/v1/ControllerRevision": {typ[appsv1.ControllerRevision](), []string{"revision"}},

		"batch/v1/Job": {typ[batchv1.Job](), join(under("spec", "ttlSecondsAfterFinished", "selector", "completionMode", "template.metadata.labels"), podSpec("spec.template.spec"),
			under("status", "startTime", "completionTime", "active"), conditions("status.conditions"))},
		"batch/v1/CronJob": {typ[batchv1.CronJob](), join(under("spec", "schedule", "timeZone", "concurrencyPolicy", "suspend", "successfulJobsHistoryLimit"), under("status", "lastScheduleTime", "lastSuccessfulTime", "active"))},

		"coordination.k8s.io/v1/Lease":                               {typ[coordv1.Lease](), []string{"spec"}},
		"discovery.k8s.io/v1/EndpointSlice":                          {typ[discoveryv1.EndpointSlice](), []string{"addressType", "endpoints", "ports"}},
		"events.k8s.io/v1/Event":                                     {typ[eventsv1.Event](), eventPaths},
		"policy/v1/PodDisruptionBudget":                              {typ[policyv1.PodDisruptionBudget](), join([]string{"spec", "status.disruptedPods"}, conditions("status.conditions"))},
		"scheduling.k8s.io/v1/PriorityClass":                         {typ[schedulingv1.PriorityClass](), []string{"value", "globalDefault", "preemptionPolicy"}},
		"node.k8s.io/v1/RuntimeClass":                                {typ[nodev1.RuntimeClass](), []string{"handler"}},
		"networking.k8s.io/v1/IPAddress":                             {typ[networkingv1.IPAddress](), []string{"spec"}},
		"networking.k8s.io/v1/ServiceCIDR":                           {typ[networkingv1.ServiceCIDR](), join([]string{"spec"}, conditions("status.conditions"))},
		"rbac.authorization.k8s.io/v1/Role":                          {typ[rbacv1.Role](), []string{"rules"}},
		"rbac.authorization.k8s.io/v1/ClusterRole":                   {typ[rbacv1.ClusterRole](), []string{"rules", "aggregationRule"}},
		"rbac.authorization.k8s.io/v1/RoleBinding":                   {typ[rbacv1.RoleBinding](), []string{"subjects", "roleRef"}},
		"rbac.authorization.k8s.io/v1/ClusterRoleBinding":            {typ[rbacv1.ClusterRoleBinding](), []string{"subjects", "roleRef"}},
		"flowcontrol.apiserver.k8s.io/v1/FlowSchema":                 {typ[flowv1.FlowSchema](), join([]string{"spec"}, conditions("status.conditions"))},
		"flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": {typ[flowv1.PriorityLevelConfiguration](), join([]string{"spec"}, conditions("status.conditions"))},
		"certificates.k8s.io/v1/CertificateSigningRequest": {typ[certv1.CertificateSigningRequest](), join(under("spec", "request", "signerName", "expirationSeconds", "usages", "username", "groups"),
			[]string{"status.certificate"}, conditions("status.conditions"))},
		"storage.k8s.io/v1/StorageClass":     {typ[storagev1.StorageClass](), []string{"provisioner", "parameters{}", "reclaimPolicy", "volumeBindingMode", "allowVolumeExpansion"}},
		"storage.k8s.io/v1/CSINode":          {typ[storagev1.CSINode](), []string{"spec"}},
		"storage.k8s.io/v1/CSIDriver":        {typ[storagev1.CSIDriver](), []string{"spec"}},
		"storage.k8s.io/v1/VolumeAttachment": {typ[storagev1.VolumeAttachment](), []string{"spec.attacher", "spec.nodeName", "spec.source.persistentVolumeName", "status.attached"}},

		"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration":   {typ[admissionv1.ValidatingWebhookConfiguration](), under("webhooks", webhookPaths...)},
		"admissionregistration.k8s.io/v1/MutatingWebhookConfiguration":     {typ[admissionv1.MutatingWebhookConfiguration](), under("webhooks", webhookPaths...)},
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy":        {typ[admissionv1.ValidatingAdmissionPolicy](), under("spec", "failurePolicy", "matchConstraints", "paramKind")},
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": {typ[admissionv1.ValidatingAdmissionPolicyBinding](), under("spec", "policyName", "matchResources", "validationActions")},

		"apiregistration.k8s.io/v1/APIService":                  {nil, []string{"spec", "status"}},
		"apiextensions.k8s.io/v1/CustomResourceDefinition":      {nil, crdPaths},
		"apiextensions.k8s.io/v1beta1/CustomResourceDefinition": {nil, crdPaths},
	}
}

// systemConfigMaps are kept by name, in kube-system and kube-public, after a look
// at their texts.
var systemConfigMaps = map[string]bool{
	"kube-system/kubeadm-config": true, "kube-system/kube-proxy": true, "kube-system/coredns": true, "kube-system/extension-apiserver-authentication": true,
	"kube-public/cluster-info": true,
}

// bootstrapKeys are the keys of a bootstrap token's Secret that say what it may
// do and until when.
var bootstrapKeys = map[string]bool{
	"expiration": true, "usage-bootstrap-authentication": true, "usage-bootstrap-signing": true, "auth-extra-groups": true,
}
