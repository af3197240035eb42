package html

import (
	"reflect"
	"strings"

	"coldplane/report"
)

// maxText is the most runes of one string that the page shows.
const maxText = 2000

// clean returns a copy of the report whose every string is visible: html/template
// keeps markup out, but it lets control and bidi characters through. Commands
// keep their line breaks.
func clean(r *report.Report) *report.Report {
	typed := *r
	typed.Facts = map[string]any{}
	for k, v := range r.Facts {
		typed.Facts[k] = v
	}
	// Facts of a saved report are maps; give the known ones their types first.
	fact[report.Banner](&typed, report.FactBanner)
	fact[report.Matrix](&typed, report.FactMatrix)
	fact[[]report.Member](&typed, report.FactMembers)
	fact[report.Quorum](&typed, report.FactQuorum)
	fact[[]report.Store](&typed, report.FactStore)
	fact[[]report.Certificate](&typed, report.FactCertificates)
	fact[[]report.Version](&typed, report.FactVersions)
	fact[[]report.NodeInventory](&typed, report.FactInventory)
	fact[report.Topology](&typed, report.FactTopology)
	fact[report.Incident](&typed, report.FactIncident)
	return visible(reflect.ValueOf(&typed), "").Interface().(*report.Report)
}

func fact[T any](r *report.Report, key string) {
	if v, ok := report.Fact[T](r, key); ok {
		r.Facts[key] = v
	} else {
		delete(r.Facts, key)
	}
}

// visible copies a value with its strings made visible. Unexported fields
// (inside time.Time) are kept as they are.
func visible(v reflect.Value, field string) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		out := reflect.New(v.Type()).Elem()
		if field == "Command" {
			lines := strings.Split(v.String(), "\n")
			for i, l := range lines {
				lines[i] = report.Visible(l, maxText)
			}
			out.SetString(strings.Join(lines, "\n"))
			return out
		}
		out.SetString(report.Visible(v.String(), maxText))
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(visible(v.Elem(), field))
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		out.Set(visible(v.Elem(), field))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(visible(v.Index(i), field))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMap(v.Type())
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(it.Key(), visible(it.Value(), field))
		}
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				out.Field(i).Set(visible(v.Field(i), f.Name))
			}
		}
		return out
	}
	return v
}
