// Package report is the model of what an analysis says: findings, results,
// gaps, verdict, inventory. It computes what every format shows alike (order,
// counts, ids) and prints nothing; each format is a package below it.
//
// The JSON form is the stable interface (apiVersion coldplane/v1): fields are
// added, never renamed or removed; readers must tolerate unknown fields and
// enum values.
package report
