package cap

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP112", Name: "garbage-left-behind", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Garbage left behind",
		Why:   "Finished pods and jobs, node leases without a node and pending signing requests are never read again. In numbers they weigh on etcd and on every list.",
		Fix:   "Set ttlSecondsAfterFinished on Jobs and history limits on CronJobs, check --terminated-pod-gc-threshold and that the controller-manager leads; delete what is left.",
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "pods", Default: 12500, Unit: "pods", Source: "kube-controller-manager --terminated-pod-gc-threshold"},
		{Name: "jobs", Default: 5000, Unit: "jobs", Source: "an order above a usual history"},
		{Name: "few", Default: 100, Unit: "objects", Source: "below this nothing is said"},
		{Name: "csr", Default: 24, Unit: "hours", Source: "the controller-manager removes pending requests after 24 h"},
		{Name: "tokens", Default: 1, Unit: "hours", Source: "the controller-manager's token cleaner removes a token when it expires"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   garbage,
})

func garbage(p *analyze.Pass) error {
	s, ok := objects.Cluster.In(p)
	if !ok {
		return nil
	}
	now := time.Time{}
	if last, ok := s.LastWrite(); ok {
		now = last.Time
	}
	say := func(subject string, n int, sev report.Severity, ref bundle.Ref, what string) {
		p.Report(analyze.Finding{Node: s.DB.File.Node, Subject: subject, Severity: sev, Message: fmt.Sprintf("%d %s", n, what),
			Evidence: []analyze.Evidence{analyze.See(ref, "for example")}})
	}
	few := int(p.Param("few"))

	done := s.FinishedPods()
	if n := len(done.Items); float64(n) > p.Param("pods") {
		say("finished pods", n, report.Medium, done.Items[0].Ref, "pods are finished and still stored, more than the controller-manager's threshold")
	} else if n > 10*few {
		say("finished pods", n, report.Low, done.Items[0].Ref, "pods are finished and still stored")
	}
	var jobs []objects.Object[batchv1.Job]
	for _, j := range s.Jobs().Items {
		for _, c := range j.Value.Status.Conditions {
			if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue && j.Value.Spec.TTLSecondsAfterFinished == nil {
				jobs = append(jobs, j)
				break
			}
		}
	}
	if n := len(jobs); float64(n) > p.Param("jobs") {
		say("finished jobs", n, report.Medium, jobs[0].Ref, "finished Jobs without ttlSecondsAfterFinished")
	} else if n > few {
		say("finished jobs", n, report.Low, jobs[0].Ref, "finished Jobs without ttlSecondsAfterFinished")
	}
	if nodes := s.Nodes(); nodes.Complete() && len(nodes.Items) > 0 {
		known := map[string]bool{}
		for _, n := range nodes.Items {
			known[n.Value.Name] = true
		}
		orphans := 0
		var ref bundle.Ref
		for _, l := range s.Leases().Items {
			if l.Value.Namespace == "kube-node-lease" && !known[l.Value.Name] {
				orphans++
				ref = l.Ref
			}
		}
		if orphans > few {
			say("node leases", orphans, report.Low, ref, "node leases without a Node object")
		}
	}
	pending := 0
	var ref bundle.Ref
	for _, c := range s.CSRs().Items {
		if len(c.Value.Status.Conditions) == 0 && len(c.Value.Status.Certificate) == 0 && !now.IsZero() && now.Sub(c.Value.CreationTimestamp.Time).Hours() > p.Param("csr") {
			pending++
			ref = c.Ref
		}
	}
	if pending > 0 {
		say("signing requests", pending, report.Low, ref, "certificate signing requests are pending for more than a day")
	}
	expired := 0
	for _, t := range s.BootstrapTokens().Items {
		if !t.Value.Expires.IsZero() && !now.IsZero() && now.Sub(t.Value.Expires).Hours() > p.Param("tokens") {
			expired++
			ref = t.Ref
		}
	}
	if expired > 0 {
		say("bootstrap tokens", expired, report.Low, ref, "bootstrap tokens have expired and were not removed: the controller-manager's token cleaner does not run")
	}
	if n, ref := oldReplicaSets(s); n > few {
		say("old ReplicaSets", n, report.Low, ref, "ReplicaSets without pods are more than their Deployments' revisionHistoryLimit keeps")
	}
	return nil
}

// oldReplicaSets counts the empty ReplicaSets beyond what their Deployments keep
// for rollbacks: 10 unless they say otherwise (apps/v1 defaults).
func oldReplicaSets(s *objects.Set) (n int, ref bundle.Ref) {
	type owner struct{ namespace, name string }
	keep := map[owner]int{}
	for _, d := range s.Deployments().Items {
		limit := 10
		if l := d.Value.Spec.RevisionHistoryLimit; l != nil {
			limit = int(*l)
		}
		keep[owner{d.Value.Namespace, d.Value.Name}] = limit
	}
	for _, r := range s.ReplicaSets().Items {
		if r.Value.Spec.Replicas == nil || *r.Value.Spec.Replicas != 0 || r.Value.Status.Replicas != 0 {
			continue
		}
		for _, o := range r.Value.OwnerReferences {
			k := owner{r.Value.Namespace, o.Name}
			left, ok := keep[k]
			if o.Kind != "Deployment" || !ok {
				continue
			}
			if keep[k]--; left <= 0 {
				n++
				ref = r.Ref
			}
		}
	}
	return n, ref
}
