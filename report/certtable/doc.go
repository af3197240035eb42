// Package certtable writes the expiry and trust table of certificates as text, JSON, YAML, CSV and HTML.
//
// It draws what it is given and judges nothing. Strings from evidence are made
// visible for each target at the last moment.
package certtable
