package objects

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// An Event is the part of an Event that questions use.
type Event struct {
	Namespace, Name        string
	Type, Reason           string
	Kind, Object, ObjectNS string // what it is about
	Component, Host        string
	Message                string // at most 512 bytes
	Count                  int32
	First, Last            time.Time
}

const maxEventMessage = 512

// Events are the stored Events, slimmed. At most 20,000 are kept; List.Total has
// their number.
func (s *Set) Events() List[Event] {
	return once(s, "events", func() List[Event] {
		return Each(s, "events", "", func(v []byte) (*Event, error) {
			var e corev1.Event
			if err := decode(v, &e); err != nil {
				return nil, err
			}
			return slim(&e), nil
		}, nil)
	})
}

func slim(e *corev1.Event) *Event {
	o := &Event{Namespace: e.Namespace, Name: e.Name, Type: e.Type, Reason: e.Reason, Kind: e.InvolvedObject.Kind, Object: e.InvolvedObject.Name,
		ObjectNS: e.InvolvedObject.Namespace, Component: e.Source.Component, Host: e.Source.Host, Message: e.Message, Count: max(e.Count, 1),
		First: e.FirstTimestamp.UTC(), Last: e.LastTimestamp.UTC()}
	if o.Component == "" {
		o.Component = e.ReportingController
	}
	if len(o.Message) > maxEventMessage {
		o.Message = o.Message[:maxEventMessage]
	}
	if e.Series != nil {
		o.Count = max(o.Count, e.Series.Count)
		o.Last = e.Series.LastObservedTime.UTC()
	}
	if e.FirstTimestamp.IsZero() {
		o.First = e.EventTime.UTC()
		if e.EventTime.IsZero() {
			o.First = e.CreationTimestamp.UTC()
		}
	}
	if o.Last.IsZero() || o.Last.Before(o.First) {
		o.Last = o.First
	}
	return o
}
