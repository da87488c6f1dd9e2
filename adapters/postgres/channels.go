package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Channels keeps what operators decide about channels.
type Channels struct{ *DB }

// NewChannels returns the channel settings of db.
func NewChannels(db *DB) Channels { return Channels{db} }

// Settings returns every channel's settings in channel order.
func (s Channels) Settings(ctx context.Context) ([delivery.Channels]delivery.Setting, error) {
	var all [delivery.Channels]delivery.Setting
	rows, err := s.pool.Query(ctx, `select channel, paused, paused_reason, rate_per_second, updated_at from channel_settings order by channel`)
	if err != nil {
		return all, translate(err)
	}
	var one delivery.Setting
	_, err = pgx.ForEachRow(rows, []any{&one.Channel, &one.Paused, &one.PausedReason, &one.RatePerSecond, &one.UpdatedAt}, func() error {
		all[one.Channel] = one
		return nil
	})
	return all, translate(err)
}

// SaveSetting changes one channel, with its audit entry.
func (s Channels) SaveSetting(ctx context.Context, next delivery.Setting, e staff.Entry) error {
	return s.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update channel_settings set paused = $2, paused_reason = $3, rate_per_second = $4, updated_at = now()
			where channel = $1`, next.Channel, next.Paused, next.PausedReason, next.RatePerSecond); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// Backlog is how much of a channel waits and since when.
type Backlog struct {
	Channel delivery.Channel
	Batches int64
	People  int64
	Oldest  time.Duration
}

// Backlogs returns what is ready or running per channel.
func (s Channels) Backlogs(ctx context.Context) ([]Backlog, error) {
	rows, err := s.pool.Query(ctx, `select channel, count(*), sum(due_count - sent_count - skipped_count - expired_count - dead_count),
		greatest(now() - coalesce(min(due_at) filter (where kind <> 'campaign'), now()), interval '0') from batches where state in ('ready', 'running') group by 1 order by 1`)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Backlog])
	return list, translate(err)
}
