// Package storetest writes etcd database files from a short readable text, for
// tests. Nothing outside tests may import it.
//
// A spec is a list of lines; # begins a comment.
//
//	version 3.6                      etcd minor whose buckets and keys are written (3.4 … 3.7; default 3.6)
//	pagesize 4096
//	freelist                         store the free list, as bbolt does by default and etcd does not
//	trailer                          append the SHA-256 that `snapshot save` appends
//	member ID name=cp1 peer=URL[,URL] client=URL [learner]
//	removed ID
//	alarm NOSPACE|CORRUPT ID
//	meta consistent_index=10 term=2 voters=ID,ID learners=ID finished=REV scheduled=REV storageVersion=3.6.0 clusterVersion=3.6.0 downgrade=3.5.0
//	lease ID ttl=60 [remaining=30] [count=N]
//	auth enabled [user=root] [role=root]
//	put KEY [rev=N] [size=N | value=TEXT] [gvk=apps/v1/Deployment | json=GROUP/V/KIND | enc=aescbc:key1] [lease=ID] [count=N] [times=N]
//	object [rev=N] [lease=ID] [times=N] [key=KEY]     YAML on the next lines, up to a line "end"
//	delete KEY [rev=N]
//	bump REV                         the marker of `snapshot restore --bump-revision`
//	compact REV                      compact as etcd does
//	free N                           leave about N free pages
//
// Every put, object and delete makes a revision: the next one, or rev=. Objects
// of k8s.io/api are stored as the API server stores them, in protobuf and under
// its key; others as JSON under /registry/GROUP/RESOURCE.
package storetest
