package feedback

import "context"

// An Early is a report that names a message by a serial which was not known when the
// report came: providers may report before they answer the call that sent the message.
type Early struct {
	Serial string
	// Report has no Ref and no Address.
	Report Report
}

// EarlyStore keeps early reports until the serials of their messages are kept.
type EarlyStore interface {
	// Match returns at most so many early reports whose serials are known by now, with the
	// references of their messages.
	Match(ctx context.Context, limit int) ([]Matched, error)
	// Forget removes them.
	Forget(ctx context.Context, list []Matched) error
}

// A Matched is an early report with the reference of its message.
type Matched struct {
	Early
	Reference string
}

// A Matcher stores early reports as soon as their messages are known.
type Matcher struct {
	Store   EarlyStore
	Refs    Refs
	Reports Taker
}

// matchAtOnce is how many reports are stored by one transaction.
const matchAtOnce = 1000

// Run stores what can be matched. A report that is stored twice, since the process died
// before it was forgotten, changes nothing the second time.
func (m *Matcher) Run(ctx context.Context) error {
	for {
		list, err := m.Store.Match(ctx, matchAtOnce)
		if err != nil || len(list) == 0 {
			return err
		}
		var reports []Report
		for _, e := range list {
			if ref, ok := m.Refs.Parse(e.Reference); ok {
				r := e.Report
				r.Ref = ref
				reports = append(reports, r)
			}
		}
		if err := m.Reports.Take(ctx, reports); err != nil {
			return err
		}
		if err := m.Store.Forget(ctx, list); err != nil || len(list) < matchAtOnce {
			return err
		}
	}
}
