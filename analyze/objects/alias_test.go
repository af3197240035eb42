package objects

import corev1 "k8s.io/api/core/v1"

type (
	coreNode  = corev1.Node
	corePod   = corev1.Pod
	coreEvent = corev1.Event
)
