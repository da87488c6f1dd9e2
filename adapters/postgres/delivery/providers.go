package delivery

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
)

// ProviderCalls are the calls of one worker to one provider of a channel.
type ProviderCalls struct {
	Channel  delivery.Channel
	Provider int64 // 0 = the environment's
	Calls    int64
	Messages int64
	Failed   int64
	Total    time.Duration
	Slowest  time.Duration
	Error    string
}

// Calls are shown for a minute and kept a little longer.
const (
	callsShown = time.Minute
	callsKept  = 10 * time.Minute
)

// recordCallsSQL returns nothing.
const recordCallsSQL = `
insert into provider_calls (channel, worker, at, calls, messages, failed, total_ms, slowest_ms, error, provider_id)
values (@channel, @worker, clock_timestamp(), @calls, @messages, @failed, @total_ms, @slowest_ms, @error, @provider)`

// RecordCalls adds a worker's counts since its previous call, and removes counts
// that are no longer shown.
func (s Channels) RecordCalls(ctx context.Context, worker string, list []ProviderCalls) error {
	if len(list) == 0 {
		return nil
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		for _, c := range list {
			if _, err := tx.Exec(ctx, recordCallsSQL, pgx.StrictNamedArgs{
				"channel": c.Channel, "worker": worker, "calls": c.Calls, "messages": c.Messages, "failed": c.Failed,
				"total_ms": c.Total.Milliseconds(), "slowest_ms": c.Slowest.Milliseconds(), "error": c.Error, "provider": c.Provider,
			}); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `delete from provider_calls where at < clock_timestamp() - $1::interval`, callsKept)
		return err
	})
}

// Providers returns the results of the last minute's calls, over all workers.
func (s Channels) Providers(ctx context.Context) (all [delivery.Channels]delivery.ProviderHealth, err error) {
	rows := pg.Rows(ctx, s.Pool, `select channel, sum(calls), sum(messages), sum(failed), sum(total_ms) / greatest(sum(calls), 1), max(slowest_ms),
			coalesce((array_agg(error order by at desc) filter (where error <> ''))[1], '')
		from provider_calls where at > clock_timestamp() - $1::interval group by 1`, callsShown)
	var c delivery.Channel
	var h delivery.ProviderHealth
	var mean float64
	var slowest int64
	_, err = pgx.ForEachRow(rows, []any{&c, &h.Calls, &h.Messages, &h.Failed, &mean, &slowest, &h.Error}, func() error {
		h.Mean, h.Slowest = time.Duration(mean)*time.Millisecond, time.Duration(slowest)*time.Millisecond
		all[c] = h
		return nil
	})
	return all, pg.Translate(err)
}
