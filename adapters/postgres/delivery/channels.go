package delivery

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// Channels stores the operators' settings of channels.
type Channels struct{ *pg.DB }

// NewChannels returns the channel settings of db.
func NewChannels(db *pg.DB) Channels { return Channels{db} }

// Settings returns every channel's settings in channel order.
func (s Channels) Settings(ctx context.Context) ([delivery.Channels]delivery.Setting, error) {
	var all [delivery.Channels]delivery.Setting
	rows := pg.Rows(ctx, s.Pool, `select channel, paused, paused_reason, coalesce(paused_at, '0001-01-01'), paused_by,
		rate_per_second, updated_at from channel_settings order by channel`)
	var one delivery.Setting
	_, err := pgx.ForEachRow(rows, []any{&one.Channel, &one.Paused, &one.PausedReason, &one.PausedAt, &one.PausedBy, &one.RatePerSecond, &one.UpdatedAt}, func() error {
		all[one.Channel] = one
		return nil
	})
	return all, pg.Translate(err)
}

// saveSettingSQL returns nothing; no row changes if the setting was changed since.
const saveSettingSQL = `
update channel_settings set paused = @paused, paused_reason = @reason, paused_at = nullif(@at, '0001-01-01'::timestamptz),
    paused_by = @by, rate_per_second = @rate, updated_at = clock_timestamp()
where channel = @channel and updated_at = @was_updated_at`

// SaveSetting changes the setting of one channel and writes its audit entry, if
// the setting has not changed since; see [delivery.SettingStore].
func (s Channels) SaveSetting(ctx context.Context, old, next delivery.Setting, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, fault.ErrStale, saveSettingSQL, pgx.StrictNamedArgs{"channel": next.Channel, "was_updated_at": old.UpdatedAt,
			"paused": next.Paused, "reason": next.PausedReason, "at": next.PausedAt, "by": next.PausedBy, "rate": next.RatePerSecond}); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Backlogs returns the ready and running batches of each channel. Batches of
// paused campaigns, and batches whose remaining recipients are all in quiet
// hours, are left out. Quiet hours are recognised by the time of the next run,
// because no retry pause is as long. A notice that was deferred to the end of
// quiet hours is not late.
func (s Channels) Backlogs(ctx context.Context) ([]delivery.Backlog, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[delivery.Backlog], `select channel, count(*), sum(due_count - sent_count - skipped_count - expired_count - dead_count),
			greatest(now() - min(due_at), interval '0'),
			greatest(now() - coalesce(min(due_at) filter (where kind <> 'campaign' and not (kind = 'notice' and exists (
				select from exceptions e where e.batch_id = batches.id and e.reason = 'quiet_hours'))), now()), interval '0')
		from batches where state <> 'done' and not held and (kind not in ('campaign', 'notice') or next_run_at <= now() + interval '2 minutes')
		group by 1 order by 1`)
}
