package pg

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

// Recorded is the record of one recipient in a batch and its exceptions.
type Recorded struct {
	Reached           bool // has a sent mark, which takes precedence
	Exception, Reason string
	Rest, RestReason  string // of all other recipients of the batch
}

// Outcome returns the recipient's outcome, and the reason if there is one.
func (r Recorded) Outcome() (o delivery.Outcome, reason string) {
	switch {
	case r.Reached && r.Exception != "":
		return delivery.Recovered, r.Reason
	case r.Reached:
		return delivery.Sent, ""
	case r.Exception != "":
		return delivery.Outcome(r.Exception), r.Reason
	case r.Rest != "":
		return delivery.Outcome(r.Rest), r.RestReason
	}
	return delivery.InFlight, ""
}

// SpanColumns are the columns of a batch b for the time span in which its
// messages were sent. The time of a single success is not stored. Recipients that
// waited for the end of quiet hours or failed first have a time of their own,
// which must not extend the span.
const SpanColumns = `b.started_at, b.finished_at, greatest(b.due_at, b.planned_at), b.late,
	(select array_agg(r.last_at) from exceptions r where r.batch_id = b.id and r.outcome = 'recovered')`

// SendSpan holds [SpanColumns].
type SendSpan struct {
	Started, Finished *time.Time
	Planned           time.Time
	Late              pgtype.Array[*int32]
	Recovered         []time.Time
}

// Fields are the destinations of [SpanColumns].
func (s *SendSpan) Fields() []any {
	return []any{&s.Started, &s.Finished, &s.Planned, &s.Late, &s.Recovered}
}

// Tell sets the time bounds of o, if o has no exact time.
func (s *SendSpan) Tell(o *campaign.Outcome) {
	o.NotBefore, o.NotAfter = s.Started, s.Finished
	if o.Outcome != delivery.Sent || !s.Late.Valid || len(s.Late.Dims) == 0 {
		return
	}
	counted := delivery.Lateness{}
	for i, n := range s.Late.Elements {
		if n != nil {
			counted[i+int(s.Late.Dims[0].LowerBound)] = int64(*n)
		}
	}
	others := make([]time.Duration, len(s.Recovered))
	for i, at := range s.Recovered {
		others[i] = at.Sub(s.Planned)
	}
	if upTo, bounded := counted.Latest(others); bounded {
		if end := s.Planned.Add(upTo); s.Finished == nil || end.Before(*s.Finished) {
			o.NotAfter = &end
		}
	}
}

// BatchContent is the content of campaign c in batch b. In a test of variants it
// is the batch's variant alone, provided that the campaign still has this
// variant.
const BatchContent = `case when jsonb_typeof(c.content -> 'variants' -> b.variant::int) = 'object'
        then jsonb_build_object('variants', jsonb_build_array(jsonb_set(c.content -> 'variants' -> b.variant::int, '{percent}', '100'))) else c.content end`

// SameOutcome reports whether the outcome o is counted under wanted.
func SameOutcome(o, wanted delivery.Outcome) bool {
	switch wanted {
	case delivery.Sent:
		return o == delivery.Sent || o == delivery.Recovered
	case delivery.Dead:
		return o == delivery.Dead || o == delivery.Discarded
	case delivery.InFlight:
		return !o.Final()
	}
	return o == wanted
}

// CountBatch adds a batch to sum. A recipient with a sent mark counts as sent,
// even if an exception row exists; the row's outcome is then "recovered".
func CountBatch(sum *delivery.Counts, due, sent int64, rest string, rows map[delivery.Outcome]int64) {
	c := delivery.Counts{Reserved: due, Sent: sent, Skipped: rows[delivery.Skipped], Expired: rows[delivery.Expired],
		Dead: rows[delivery.Dead] + rows[delivery.Discarded]}
	left := due - c.Sent - c.Skipped - c.Expired - c.Dead
	switch delivery.Outcome(rest) {
	case delivery.Skipped:
		c.Skipped += left
	case delivery.Expired:
		c.Expired += left
	default:
		c.InFlight = left
	}
	*sum = sum.Plus(c)
}
