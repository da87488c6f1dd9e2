package feedback

import (
	"context"
	"time"
)

// An Early is a report that names a message by a serial which was not known when the
// report came: providers may report before they answer the call that sent the message.
type Early struct {
	Serial string
	// Report has no Ref and no Address.
	Report Report
}

// EarlyStore keeps early reports until the serials of their messages are kept.
type EarlyStore interface {
	// Match returns at most so many early reports that were kept within the last time given
	// and whose serials are known by now, with the references of their messages.
	Match(ctx context.Context, within time.Duration, limit int) ([]Matched, error)
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
	// caughtUp says that the last run has looked at everything that it had to.
	caughtUp bool
}

const (
	// matchAtOnce is how many reports are stored by one transaction.
	matchAtOnce = 1000
	// EarlyKept is how long early reports are kept.
	EarlyKept = time.Hour
	// matchWithin is how long after it came a report is looked at: the answer that it is
	// waiting for comes within the time-out of a call. Those of other programs that use the
	// same account are never matched.
	matchWithin = 10 * time.Minute
)

// Run stores what can be matched; the first run, and the first after an error, looks at
// everything that is kept. It must not be called twice at a time. A report that is stored twice, since the process died
// before it was forgotten, changes nothing the second time.
func (m *Matcher) Run(ctx context.Context) error {
	within := matchWithin
	if !m.caughtUp {
		within = EarlyKept
	}
	err := m.match(ctx, within)
	m.caughtUp = err == nil
	return err
}

func (m *Matcher) match(ctx context.Context, within time.Duration) error {
	for {
		list, err := m.Store.Match(ctx, within, matchAtOnce)
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
