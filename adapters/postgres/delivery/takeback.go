package delivery

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
)

// benefitOfDoubt is how long a worker may still extend an expired lease. It must
// exceed the pause between two attempts of a checkpoint.
const benefitOfDoubt = 2 * time.Second

// takeBackSQL takes back batches with expired leases in two steps. If the
// database was away for longer than a lease, all leases expire at the same
// moment. A sweep in one step would then take batches from live workers that wait
// to record their results, and their recipients would get a second message. So
// the first sweep only stores, in next_run_at, the time until which the worker
// may still extend its lease. An extension clears this time.
//
// statement_timestamp bounds the index of leases, which clock_timestamp does not (ADR 110).
//
// $1 is benefitOfDoubt. A batch that is taken back counts as overdue, so that
// workers are woken for it at once.
const takeBackSQL = `
with silent as (
    select id, next_run_at > lease_until as noted, next_run_at <= clock_timestamp() as enough from batches
    where state = 'running' and lease_until < statement_timestamp()
    order by lease_until limit 1000 for update skip locked
), noted as (
    update batches b set next_run_at = clock_timestamp() + $1::interval from silent s where b.id = s.id and not s.noted
)
update batches b set state = 'ready', lease_token = null, lease_until = null, next_run_at = clock_timestamp() - $1::interval
from silent s where b.id = s.id and s.noted and s.enough`

// TakeBack makes batches whose lease has expired ready again and returns their
// number. It must be called repeatedly: the first call notes an expired lease,
// and a call at least two seconds later takes the batch back.
func (s Batches) TakeBack(ctx context.Context) (int, error) {
	tag, err := s.Pool.Exec(ctx, takeBackSQL, benefitOfDoubt)
	return int(tag.RowsAffected()), pg.Translate(err)
}

// BatchesWait asks for batches that are not done.
const BatchesWait pg.Question = `select from batches where state <> 'done' order by due_at, id limit 1`

// Overdue returns channels that have a batch ready for longer than grace.
func (s Batches) Overdue(ctx context.Context, grace time.Duration) ([]delivery.Channel, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[delivery.Channel], `select c.channel from channel_settings c where exists (
		select from batches b where b.channel = c.channel and b.state = 'ready' and not b.held and b.next_run_at < clock_timestamp() - $1::interval)`, grace)
}
