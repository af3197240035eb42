package main

import (
	"coldplane/analyze/logs/scan"
	"coldplane/analyze/pki"
	"coldplane/bundle/decode/kubevalue"
	"coldplane/bundle/decode/spki"
	"coldplane/bundle/decode/walframe"
	"coldplane/bundle/decode/yamldoc"
)

// fixedLimits are the bounds of the decoders.
func fixedLimits() []limit {
	return []limit{
		{name: "yaml-bytes", unit: size, def: yamldoc.MaxBytes, what: "one YAML file; kubelet reads no more of a manifest"},
		{name: "yaml-depth", def: yamldoc.MaxDepth, what: "nesting of a YAML document"},
		{name: "yaml-documents", def: yamldoc.MaxDocs, what: "documents of one YAML file"},
		{name: "yaml-nodes", def: yamldoc.MaxNodes, what: "keys and values of one YAML file"},
		{name: "yaml-aliases", def: 0, what: "aliases, anchors and merge keys: none is followed"},
		{name: "pem-bytes", unit: size, def: spki.MaxBytes, what: "one file of certificates or keys"},
		{name: "pem-blocks", def: spki.MaxBlocks, what: "blocks of one such file"},
		{name: "pki-files", def: pki.MaxFiles, what: "such files of one node"},
		{name: "log-bytes", unit: size, def: scan.MaxBytes, what: "one log"},
		{name: "log-line", unit: size, def: scan.MaxLine, what: "one line of a log; the rest is counted"},
		{name: "stored-value", unit: size, def: kubevalue.MaxValue, what: "one value of the store; etcd takes 1.5 MiB by default"},
		{name: "proto-depth", def: kubevalue.MaxDepth, what: "nesting of a stored protobuf value"},
		{name: "json-depth", def: kubevalue.MaxJSONDepth, what: "nesting of a stored JSON value"},
		{name: "raft-snapshot", unit: size, def: walframe.MaxSnapBytes, what: "one .snap file"},
	}
}
