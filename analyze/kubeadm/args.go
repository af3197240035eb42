package kubeadm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"coldplane/bundle/decode/yamldoc"
)

// An Arg is one extra argument of a component.
type Arg struct {
	Name, Value string
	Merge       string // v1: "Append" or "Prepend" to kubeadm's value; "" replaces it
	Pointer     string // below extraArgs: "/0/value" (v1beta4) or "/name" (v1beta3)
}

// Args are extraArgs: a map in v1beta3, a list in v1beta4 where a name may
// occur more than once. A map is sorted by name.
type Args []Arg

// UnmarshalJSON reads both forms.
func (a *Args) UnmarshalJSON(b []byte) error {
	*a = nil
	if s := strings.TrimSpace(string(b)); strings.HasPrefix(s, "[") {
		var l []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
			Merge string `json:"mergeMethod"`
		}
		if err := json.Unmarshal(b, &l); err != nil {
			return err
		}
		for i, e := range l {
			*a = append(*a, Arg{e.Name, e.Value, e.Merge, fmt.Sprintf("/%d/value", i)})
		}
		return nil
	}
	m := map[string]string{}
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	for k, v := range m {
		*a = append(*a, Arg{Name: k, Value: v, Pointer: "/" + yamldoc.Escape(k)})
	}
	slices.SortFunc(*a, func(x, y Arg) int { return strings.Compare(x.Name, y.Name) })
	return nil
}

// Get returns the last argument of a name.
func (a Args) Get(name string) (Arg, bool) {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i].Name == name {
			return a[i], true
		}
	}
	return Arg{}, false
}
