package report

import (
	"cmp"
	"slices"
)

// A Question is one row of the matrix seen as a table.
type Question struct {
	Plane string // PlaneOfControl, PlaneOfUsers
	Name  string
}

// Grid turns the matrix into a table: the subjects (nodes sorted, the cluster
// last), the questions (control before user traffic, else as they come) and
// what is known where they meet, nil when it was not asked there. The last of
// several rows about the same wins.
func (m Matrix) Grid() (subjects []string, questions []Question, cell func(Question, string) *MatrixRow) {
	type key struct {
		q Question
		s string
	}
	at := map[key]*MatrixRow{}
	for i := range m.Rows {
		r := &m.Rows[i]
		q := Question{r.Plane, r.Name}
		if !slices.Contains(questions, q) {
			questions = append(questions, q)
		}
		if !slices.Contains(subjects, r.Subject) {
			subjects = append(subjects, r.Subject)
		}
		at[key{q, r.Subject}] = r
	}
	slices.SortFunc(subjects, func(a, b string) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a, b))
	})
	slices.SortStableFunc(questions, func(a, b Question) int { return cmp.Compare(a.Plane, b.Plane) })
	return subjects, questions, func(q Question, s string) *MatrixRow { return at[key{q, s}] }
}

func last(subject string) int {
	if subject == SubjectAll {
		return 1
	}
	return 0
}
