package pki

import (
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// Signatures of log texts about credentials, by their ids in the catalogue of
// texts.
const (
	textExpired       = "S01" // x509: certificate has expired or is not yet valid
	textNoLease       = "C02" // the lease cannot be read
	textClientExpired = "K12"
	textClientSilent  = "K13"
	textBootstrapOld  = "K15"
	textNotSigned     = "K52"
)

// expiryLine is a log line that names the very date a certificate ended, or
// begins, on any node: the other side of the connection may have logged it.
func expiryLine(p *analyze.Pass, nodes []*bundle.Node, at time.Time) (analyze.Evidence, bool) {
	for _, n := range nodes {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		hits := l.Hits(0, textExpired)
		for i := len(hits) - 1; i >= 0; i-- {
			if boundary(hits[i].Value("when")).Equal(at) {
				return analyze.Context(hits[i].Ref(), hits[i].Excerpt()), true
			}
		}
	}
	return analyze.Evidence{}, false
}

// boundary is the second time of "current time A is after B".
func boundary(when string) time.Time {
	i := strings.LastIndexByte(when, ' ')
	t, err := time.Parse(time.RFC3339, strings.TrimSpace(when[i+1:]))
	if err != nil {
		return time.Time{}
	}
	return t
}

// refused is a line in which a component says after its start that it is not
// let in any more.
func refused(p *analyze.Pass, component string, since time.Time) (analyze.Evidence, bool) {
	by := map[string]signature.Emitter{staticpod.ControllerManager: signature.ControllerManager, staticpod.Scheduler: signature.Scheduler}[component]
	l, err := logs.OnNode.Try(p, p.Node())
	if err != nil || by == 0 {
		return analyze.Evidence{}, false
	}
	hits := l.Hits(by, textExpired, textNoLease)
	for i := len(hits) - 1; i >= 0; i-- {
		h := hits[i]
		if h.Stat.Sig.ID == textNoLease && !strings.Contains(h.Value("err")+h.Excerpt(), "Unauthorized") {
			continue
		}
		if h.Time.After(since) {
			return analyze.Context(h.Ref(), h.Excerpt()), true
		}
	}
	return analyze.Evidence{}, false
}

// kubeletLine is the newest line of the kubelet about its own credential.
func kubeletLine(p *analyze.Pass) (analyze.Evidence, bool) {
	l, err := logs.OnNode.Try(p, p.Node())
	if err != nil {
		return analyze.Evidence{}, false
	}
	at, ok := l.Last(signature.Kubelet, textClientExpired, textClientSilent, textBootstrapOld, textNotSigned)
	if !ok {
		return analyze.Evidence{}, false
	}
	return analyze.Context(at.Ref(), at.Excerpt()), true
}
