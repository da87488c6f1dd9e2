package delivery

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
)

// benefitOfDoubt is how long a worker whose lease has expired may still extend
// it. It must exceed the pause between two attempts of a checkpoint.
const benefitOfDoubt = 2 * time.Second

// takeBackSQL takes silent batches back in two steps. When the database was away
// for longer than a lease, every lease has expired at the same moment, and the
// first sweep would take batches from workers that are alive and wait to record
// their results: their recipients would be reached again. So the first sweep
// only stores, in next_run_at, until when the worker may still extend its lease;
// an extension clears it.
//
// $1 is benefitOfDoubt. A batch that is taken back counts as overdue, so that
// workers are woken for it at once.
const takeBackSQL = `
with silent as (
    select id, next_run_at > lease_until as noted, next_run_at <= clock_timestamp() as enough from batches
    where state = 'running' and lease_until < clock_timestamp()
    order by lease_until limit 1000 for update skip locked
), noted as (
    update batches b set next_run_at = clock_timestamp() + $1::interval from silent s where b.id = s.id and not s.noted
)
update batches b set state = 'ready', lease_token = null, lease_until = null, next_run_at = clock_timestamp() - $1::interval
from silent s where b.id = s.id and s.noted and s.enough`

// TakeBack makes batches whose worker fell silent ready again and returns how
// many. It has to be called again and again: a batch is given up at the first
// call two seconds or more after the one that found its lease run out.
func (s Batches) TakeBack(ctx context.Context) (int, error) {
	tag, err := s.Pool.Exec(ctx, takeBackSQL, benefitOfDoubt)
	return int(tag.RowsAffected()), pg.Translate(err)
}

// BatchesWait asks for batches that are not done.
const BatchesWait pg.Question = `select from batches where state <> 'done' order by due_at, id limit 1`

// Overdue returns channels that have a batch ready for longer than grace.
func (s Batches) Overdue(ctx context.Context, grace time.Duration) ([]delivery.Channel, error) {
	rows, err := s.Pool.Query(ctx, `select c.channel from channel_settings c where exists (
		select from batches b where b.channel = c.channel and b.state = 'ready' and not b.held and b.next_run_at < clock_timestamp() - $1::interval)`, grace)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[delivery.Channel])
	return list, pg.Translate(err)
}
