package drops

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
)

// Forecasts reads the data from which forecasts are computed.
type Forecasts struct{ *pg.DB }

// NewForecasts returns the forecast store of db.
func NewForecasts(db *pg.DB) Forecasts { return Forecasts{db} }

// meantSQL returns how many of booked or due reminders of template t are for users who are not held
// out. It is estimated from the share that the drop holds out, which is drawn evenly.
func meantSQL(number string) string {
	return `((` + number + `)::bigint * (100 - t.hold_out_percent) + 50) / 100`
}

// bookedOfSlot is how many of the bookings b are for slot s, which may be for some doors only.
const bookedOfSlot = `case when s.doors = 0 then b.booked else booked_by(s.template_id, s.doors, b.booked) end`

// Jobs returns the booked reminders of waiting slots, and the remaining reminders of slots
// that are being sent.
func (s Forecasts) Jobs(ctx context.Context, until time.Time) ([]forecast.Job, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[forecast.Job], `
		select s.template_id, t.name, s.slot, b.channel, s.due_at, s.opens_at, `+meantSQL(bookedOfSlot)+`, sh.timezone, sh.number, `+bookedOfSlot+`
		from slots s join templates t on t.id = s.template_id join shops sh on sh.number = t.shop_number
			join bookings b on b.template_id = s.template_id and b.slot = s.slot
		where s.state = 'waiting' and s.due_at <= $1 and b.booked > 0
		union all
		select s.template_id, t.name, s.slot, b.channel, s.due_at, s.opens_at,
			sum(greatest(0, `+meantSQL(`b.due_count`)+` - b.sent_count - b.skipped_count - b.expired_count - b.dead_count))::bigint, sh.timezone, sh.number,
			sum(b.due_count - b.sent_count - b.skipped_count - b.expired_count - b.dead_count)
		from slots s join templates t on t.id = s.template_id join shops sh on sh.number = t.shop_number
			join batches b on b.kind = 'reminder' and b.owner_id = s.id
		where s.state in ('firing', 'sending') and s.stop_reason is null and b.state <> 'done' group by s.id, t.name, b.channel, sh.timezone, sh.number
		order by 5, 1, 4`, until)
}

// loadingSlots selects, among the last ten slots of a channel, the slots that loaded the
// channel: slots with at least half as many messages as the largest. The enclosing statement
// names the channel as "which".
const loadingSlots = `(select per_second from (select per_second, messages, max(messages) over () as most from (
		select per_second, messages from channel_rates where channel = which.channel order by at desc limit 10) recent) compared
	where 2 * messages >= most) loading`

// Rates returns each channel's throughput in its last slots and the operators' limits.
func (s Forecasts) Rates(ctx context.Context) (measured [delivery.Channels]forecast.Throughput, limits [delivery.Channels]float64, err error) {
	rows := pg.Rows(ctx, s.Pool, `
		select which.channel, which.rate_per_second::float8, m.* from channel_settings which cross join lateral (
			select coalesce(percentile_cont(0.5) within group (order by per_second), 0)::float8, coalesce(min(per_second), 0)::float8,
				coalesce(max(per_second), 0)::float8, count(*) from `+loadingSlots+`) m`)
	var c delivery.Channel
	var l float64
	var m forecast.Throughput
	_, err = pgx.ForEachRow(rows, []any{&c, &l, &m.PerSecond, &m.Low, &m.High, &m.Slots}, func() error {
		measured[c], limits[c] = m, l
		return nil
	})
	return measured, limits, pg.Translate(err)
}

// androidSampled is the number of users from which the share of Android phones is estimated.
const androidSampled = 20_000

// sampledPages is the maximum number of pages of users that are read while the number of users
// is unknown: after a restore, until the table is analyzed. The pages have about 100,000
// users.
const sampledPages = 2000

// SamplePercent returns the percentage of the pages of users that contains about users rows.
func (s Forecasts) SamplePercent(ctx context.Context, users float64) (percent float64, err error) {
	err = s.Pool.QueryRow(ctx, `select least(100, 100 * case when reltuples > 0 then $1::float8 / reltuples
		else $2::float8 / greatest(pg_relation_size(oid)::float8 / current_setting('block_size')::int, 1) end)
		from pg_class where oid = 'users'::regclass`, users, float64(sampledPages)).Scan(&percent)
	return percent, pg.Translate(err)
}

// AndroidShares estimates, from a sample of pages, the share of users with an Android phone
// for each app. The cost does not depend on the number of users.
func (s Forecasts) AndroidShares(ctx context.Context) (map[string]float64, error) {
	percent, err := s.SamplePercent(ctx, androidSampled)
	if err != nil {
		return nil, err
	}
	rows := pg.Rows(ctx, s.Pool, `
		-- the apps, and the share of the sampled users who have a phone with it
		with sampled as materialized (select id, devices from users tablesample system ($1) where push <> '[]' or devices <> '[]')
		select coalesce(d ->> 'app', ''), (count(distinct id)::float8 / (select count(*) from sampled))
		from sampled, jsonb_array_elements(devices) as d where d ->> 'platform' = 'android' group by 1`, percent)
	shares := map[string]float64{}
	var app string
	var share float64
	_, err = pgx.ForEachRow(rows, []any{&app, &share}, func() error {
		shares[app] = share
		return nil
	})
	return shares, pg.Translate(err)
}

// leastSample is the least number of messages of a slot on a channel for which its throughput
// is meaningful.
const leastSample = 200

// recordRates stores the throughput of slots that finish for the first time. A slot that was
// finished before has results, and has since sent only replayed dead letters. recordRates runs
// before the results are written.
func recordRates(ctx context.Context, tx pgx.Tx, slotIDs []int64) error {
	// Results are looked up slot by slot: a join might scan all results for each batch.
	_, err := tx.Exec(ctx, `
		insert into channel_rates (channel, at, per_second, messages)
		select channel, clock_timestamp(), sum(sent_count) / greatest(extract(epoch from max(finished_at) - min(started_at)), 0.001), sum(sent_count)
		from batches where kind = 'reminder' and owner_id = any(array(select o.id from unnest($1::bigint[]) as o (id)
			where coalesce((select sum(r.sent + r.skipped + r.expired + r.dead) from slot_results r where r.slot_id = o.id), 0) = 0))
		group by owner_id, channel having sum(sent_count) >= $2
		on conflict do nothing`, slotIDs, leastSample)
	return err
}
