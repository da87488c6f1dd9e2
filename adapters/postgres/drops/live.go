package drops

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/live"
)

// Live stores Apple's broadcast channels of drops; see [live.Store].
type Live struct{ *pg.DB }

// NewLive returns the channels of db.
func NewLive(db *pg.DB) Live { return Live{db} }

// Cover adds published drops; see [live.Store].
func (s Live) Cover(ctx context.Context, limit int) error {
	_, err := s.Pool.Exec(ctx, `insert into live_channels (template_id)
		select t.id from templates t where t.state in ('published', 'paused') and `+pg.TemplateEndsAt+` > clock_timestamp()
			and not exists (select from live_channels l where l.template_id = t.id) order by t.closes_at limit $1 on conflict do nothing`, limit)
	return pg.Translate(err)
}

// Wake makes the drop due; see [live.Store].
func (s Live) Wake(ctx context.Context, templateID int64) error {
	_, err := s.Pool.Exec(ctx, `update live_channels set next_at = clock_timestamp() where template_id = $1`, templateID)
	return pg.Translate(err)
}

// Due reports whether a drop is due; see [live.Store].
func (s Live) Due(ctx context.Context) (due bool, err error) {
	err = s.Pool.QueryRow(ctx, `select exists (select from live_channels where next_at <= statement_timestamp() and (lease_until is null or lease_until <= clock_timestamp()))`).Scan(&due)
	return due, pg.Translate(err)
}

// leaseLiveSQL leases up to @limit due drops and returns them. next_at is set to the end of
// the lease, so a leased drop is not due again before its result is recorded. A wake sets
// next_at earlier; recordLiveSQL recognises a wake by this.
var leaseLiveSQL = `
with due as (
    select template_id from live_channels where next_at <= statement_timestamp() and (lease_until is null or lease_until <= clock_timestamp())
    order by next_at limit @limit for update skip locked
), l as (
    update live_channels l set lease_token = @token, lease_until = statement_timestamp() + @lasting::interval, next_at = statement_timestamp() + @lasting::interval
    from due where l.template_id = due.template_id returning l.*
)
select ` + pg.TemplateColumns + `, clock_timestamp(), l.channel_id, l.told, coalesce(l.told_at, 'epoch'), l.ended, l.failures
from l join templates t on t.id = l.template_id join shops s on s.number = t.shop_number order by t.opens_at`

// Lease leases due drops; see [live.Store].
func (s Live) Lease(ctx context.Context, limit int, lasting time.Duration) (token string, due []live.Case, err error) {
	token = uuid.NewString()
	due, err = pgx.CollectRows(pg.Rows(ctx, s.Pool, leaseLiveSQL, pgx.StrictNamedArgs{"limit": limit, "token": token, "lasting": lasting}), func(row pgx.CollectableRow) (c live.Case, err error) {
		var told string
		if err := row.Scan(append(pg.TemplateFields(&c.Template), &c.Now, &c.Channel, &told, &c.ToldAt, &c.Ended, &c.Failures)...); err != nil || told == "" {
			return c, err
		}
		return c, json.Unmarshal([]byte(told), &c.Told)
	})
	return token, due, pg.Translate(err)
}

// recordLiveSQL stores results of drops whose lease is @token. A drop whose next_at is before
// the end of its lease was woken meanwhile, and stays due.
const recordLiveSQL = `
update live_channels l set channel_id = g.channel, told = g.told, told_at = case when g.broadcast then clock_timestamp() else l.told_at end, ended = g.ended, failures = g.failures,
    next_at = case when l.next_at < l.lease_until then l.next_at else clock_timestamp() + g.again end, lease_token = null, lease_until = null
from unnest(@ids::bigint[], @channels::text[], @told::text[], @broadcast::bool[], @ended::bool[], @failures::int[], @again::interval[])
    as g (id, channel, told, broadcast, ended, failures, again)
where l.template_id = g.id and l.lease_token = @token`

// Record stores results; see [live.Store].
func (s Live) Record(ctx context.Context, token string, results []live.Result) error {
	var ids, gone []int64
	var channels, told []string
	var broadcast, ended []bool
	var failures []int32
	var again []time.Duration
	for _, r := range results {
		if r.Remove {
			gone = append(gone, r.TemplateID)
			continue
		}
		text := ""
		if r.Told != nil {
			raw, err := json.Marshal(r.Told)
			if err != nil {
				return err
			}
			text = string(raw)
		}
		ids, channels, told, broadcast, ended = append(ids, r.TemplateID), append(channels, r.Channel), append(told, text), append(broadcast, r.Broadcast), append(ended, r.Ended)
		failures, again = append(failures, int32(r.Failures)), append(again, r.Again)
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, recordLiveSQL, pgx.StrictNamedArgs{"token": token, "ids": ids, "channels": channels, "told": told, "broadcast": broadcast,
			"ended": ended, "failures": failures, "again": again}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `delete from live_channels where template_id = any($1) and lease_token = $2`, gone, token)
		return err
	})
}

// Channel returns the drop's channel; "" if there is none yet.
func (s Live) Channel(ctx context.Context, templateID int64) (channel string, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce((select channel_id from live_channels where template_id = $1 and not ended), '')`, templateID).Scan(&channel)
	return channel, pg.Translate(err)
}
