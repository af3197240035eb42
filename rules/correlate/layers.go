package correlate

import (
	"strings"

	"coldplane/report"
)

// A layer orders causes: a finding may explain only findings of its own layer
// or a higher one.
type layer int

const (
	layerHost    layer = iota // power, network, addresses
	layerMachine              // disk, memory, clock
	layerFiles                // runtime, kubelet, files on disk
	layerEtcd                 // the etcd process
	layerData                 // quorum, alarms, data
	layerAPI                  // API server, endpoint
	layerControl              // controllers, webhooks, aggregation
	layerObjects              // objects, node status, user traffic
)

// layers gives a rule's layer by the longest matching prefix of its id.
var layers = map[string]layer{
	"NOD": layerMachine, "NOD112": layerHost, "NOD113": layerHost, "NOD105": layerFiles, "NOD106": layerFiles, "NOD107": layerFiles, "NOD110": layerHost,
	"STA": layerFiles, "STA302": layerEtcd, "DIR": layerFiles, "DIR105": layerEtcd, "PKI": layerFiles, "EXT": layerFiles,
	"QRM": layerData, "QRM106": layerMachine, "QRM107": layerEtcd, "QRM108": layerEtcd, "CAP": layerData, "RST": layerData, "RST101": layerFiles, "RST103": layerFiles, "RST107": layerFiles,
	"HAV1": layerAPI, "HAV2": layerObjects, "HAV3": layerControl, "HAV4": layerObjects,
	"UPG": layerFiles, "ADM": layerControl, "ADM2": layerControl, "ADM202": layerObjects, "ADM3": layerData, "ADM4": layerFiles,
}

func layerOf(f *report.Finding) layer {
	if f.Rule == "STA302" && !strings.Contains(f.Subject, "etcd") {
		if strings.Contains(f.Subject, "apiserver") {
			return layerAPI
		}
		return layerControl
	}
	if f.Rule == "QRM107" && strings.Contains(f.Message, "silent") {
		return layerData // a lost member, not a lost connection
	}
	for n := len(f.Rule); n >= 3; n-- {
		if l, ok := layers[f.Rule[:n]]; ok {
			return l
		}
	}
	return layerObjects
}
