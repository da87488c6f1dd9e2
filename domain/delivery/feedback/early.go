package feedback

import (
	"context"
	"time"
)

// An Early is a report that names a message by a serial that was not known when the report came.
// Providers may report before they answer the call that sent the message.
type Early struct {
	Serial string
	// Report has no Ref and no Address.
	Report Report
}

// EarlyStore keeps early reports until the serials of their messages are kept.
type EarlyStore interface {
	// Match returns early reports whose serials are known by now, with the references of their
	// messages. It returns at most limit reports, and only reports that came within the last time
	// given.
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
	// matchWithin is how long after its arrival a report is matched. The answer to the sending
	// call, which makes the serial known, comes within the time-out of a call. Reports for other
	// programs that use the same account are never matched.
	matchWithin = 10 * time.Minute
)

// Run stores the reports that can be matched. The first run, and the first after an error, tries
// all kept reports. It must not be called concurrently. If the process dies after storing a
// report and before forgetting it, the report is stored again, which changes nothing.
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
