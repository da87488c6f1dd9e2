package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

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
