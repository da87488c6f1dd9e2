package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

// recorded is what a batch and its exceptions say about one recipient.
type recorded struct {
	reached           bool // has a sent mark, which wins over everything else
	exception, reason string
	rest, restReason  string // what became of everybody else in the batch
}

func (r recorded) outcome() (o delivery.Outcome, reason string) {
	switch {
	case r.reached && r.exception != "":
		return delivery.Recovered, r.reason
	case r.reached:
		return delivery.Sent, ""
	case r.exception != "":
		return delivery.Outcome(r.exception), r.reason
	case r.rest != "":
		return delivery.Outcome(r.rest), r.restReason
	}
	return delivery.InFlight, ""
}

// spanColumns are what a batch b says about when it sent: per success nothing
// is stored, so that the span is told in which they all lie. Whoever slept or
// failed first has an instant of their own, and must not stretch it.
const spanColumns = `b.started_at, b.finished_at, greatest(b.due_at, b.planned_at), b.late,
	(select array_agg(r.last_at) from exceptions r where r.batch_id = b.id and r.outcome = 'recovered')`

// sendSpan is what [spanColumns] hold.
type sendSpan struct {
	started, finished *time.Time
	planned           time.Time
	late              pgtype.Array[*int32]
	recovered         []time.Time
}

func (s *sendSpan) fields() []any {
	return []any{&s.started, &s.finished, &s.planned, &s.late, &s.recovered}
}

// tell sets between which instants o came about, if it has no instant itself.
func (s *sendSpan) tell(o *campaign.Outcome) {
	o.NotBefore, o.NotAfter = s.started, s.finished
	if o.Outcome != delivery.Sent || !s.late.Valid || len(s.late.Dims) == 0 {
		return
	}
	counted := delivery.Lateness{}
	for i, n := range s.late.Elements {
		if n != nil {
			counted[i+int(s.late.Dims[0].LowerBound)] = int64(*n)
		}
	}
	others := make([]time.Duration, len(s.recovered))
	for i, at := range s.recovered {
		others[i] = at.Sub(s.planned)
	}
	if upTo, bounded := counted.Latest(others); bounded {
		if end := s.planned.Add(upTo); s.finished == nil || end.Before(*s.finished) {
			o.NotAfter = &end
		}
	}
}

// contentSQL is what campaign c says in batch b: one version alone in the test
// of a version that there still is.
const contentSQL = `case when jsonb_typeof(c.content -> 'variants' -> b.variant::int) = 'object'
        then jsonb_build_object('variants', jsonb_build_array(jsonb_set(c.content -> 'variants' -> b.variant::int, '{percent}', '100'))) else c.content end`

// alike reports whether somebody with the outcome is counted under wanted.
func alike(o, wanted delivery.Outcome) bool {
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

// countBatch adds a batch to the sheet. A sent mark wins over an exception
// row, whose outcome is then "recovered".
func countBatch(sum *delivery.Counts, due, sent int64, rest string, rows map[delivery.Outcome]int64) {
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
