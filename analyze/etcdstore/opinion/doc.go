// Package opinion asks bbolt's and etcd's own code about a database file.
//
// Both are made for files that are whole and may be written: on a damaged file
// they panic, fault or loop, and etcd's backend changes what it opens. So they
// run in a child process with limits (Ask starts it, Child is what it does), on a
// file that our page reader found clean, opened read-only, behind an adapter that
// drops every write. The child's death says something about the file and nothing
// about us.
package opinion
