package work

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/task"
	"dropbell/domain/timer"
)

// Timers lists the work that is due at a later instant; see [timer.Store].
type Timers struct{ *pg.DB }

// NewTimers returns the timers of db.
func NewTimers(db *pg.DB) Timers { return Timers{db} }

// pendingTimers are the kinds of timers with the functions that make their tasks. Each statement
// returns the id, instant and order of the next timers after instant $1 and id $2. Sweeps handle
// timers that are due already.
var pendingTimers = [...]struct {
	sql  string
	task func(id int64, at time.Time) task.Task
}{
	{`select s.id, ` + pg.SlotDueAt + `, s.due_at from slots s where s.state = 'waiting' and s.due_at > clock_timestamp()
		and (s.due_at, s.id) > ($1, $2) order by s.due_at, s.id limit $3`,
		task.Fire},
	{`select id, starts_at, starts_at from campaigns where state = 'scheduled' and starts_at > clock_timestamp()
		and (starts_at, id) > ($1, $2) order by starts_at, id limit $3`,
		task.Start},
}

// Pending returns the next timers: slots and campaigns' starts.
func (s Timers) Pending(ctx context.Context, after timer.Position, limit int) ([]task.Task, timer.Position, error) {
	for ; after.Kind < len(pendingTimers); after = (timer.Position{Kind: after.Kind + 1}) {
		list, next, err := s.pending(ctx, after, limit)
		if err != nil || len(list) > 0 {
			return list, next, err
		}
	}
	return nil, after, nil
}

func (s Timers) pending(ctx context.Context, after timer.Position, limit int) ([]task.Task, timer.Position, error) {
	kind := pendingTimers[after.Kind]
	rows := pg.Rows(ctx, s.Pool, kind.sql, time.UnixMicro(after.At), after.ID, limit)
	var list []task.Task
	var at, place time.Time
	_, err := pgx.ForEachRow(rows, []any{&after.ID, &at, &place}, func() error {
		list, after.At = append(list, kind.task(after.ID, at)), place.UnixMicro()
		return nil
	})
	return list, after, pg.Translate(err)
}
