// Package analyzetest runs rules over small clusters written as txtar.
//
// Every rule has a script RULE.txtar (lower case) beside its Go file. A
// section without a slash in its name is a case and holds its directives, one
// a line; sections CASE/PATH are files of the case's input:
//
//	base single                      start from a healthy kubeadm tree: single, ha, external
//	as-of 2026-06-01T00:00:00Z       default: 2026-06-01T00:00:00Z; "none" leaves it to the evidence
//	target v1.38.0                   pre-upgrade audit
//	set CAP102.high=0.5              a parameter
//	edit PATH "old" => "new"         replace text that must be there
//	rm PATTERN                       remove files that must be there; a directory with all below it
//	mkdir PATH
//	symlink PATH TARGET
//	mtime PATH TIME
//	mode PATH 0644
//	want RULE SEVERITY [NODE:]PATH "line" "message"   a finding: its first evidence, the text of the line it
//	                                 points at and its message match the regular expressions (each may be left out)
//	want RULE OUTCOME [NODE] [REASON]  pass, not-applicable, unknown; REASON is of one of the gaps
//
// In a file, a comment `# want RULE "message"` on a line asks for a finding
// whose first evidence is that line. Files named PATH!KIND are turned into
// PATH by a Generator (certificates, databases), so that binary evidence is
// readable text in the script.
//
// Only the script's rule is asked. Findings nobody wants fail the test, and so
// does a script without a failing, a passing and an unknown case.
package analyzetest
