package drops

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
)

// smsDays returns the days on which text messages about the drop are still to be sent. For
// each day it returns the number of messages of this drop and of all drops.
var smsDays = `
with days as (
	select (s.due_at at time zone 'utc')::date as day, sum(` + meantSQL(bookedOfSlot) + `) as messages
	from slots s join bookings b on b.template_id = s.template_id and b.slot = s.slot and b.channel = @channel join templates t on t.id = s.template_id
	where s.template_id = @id and s.state = 'waiting' and b.booked > 0 group by 1
)
select d.day, d.messages::bigint, (select sum(` + meantSQL(bookedOfSlot) + `)
	from slots s join bookings b on b.template_id = s.template_id and b.slot = s.slot and b.channel = @channel join templates t on t.id = s.template_id
	where s.state = 'waiting' and s.due_at >= d.day::timestamp at time zone 'utc' and s.due_at < (d.day + 1)::timestamp at time zone 'utc')::bigint
from days d order by d.day`

// smsReaders returns some of the users who have reserved SMS reminders that are still to be
// sent. It takes users after each of ten places, spread evenly between the first and the last
// user id. At each place it reads a limited number of reservations, however few of them are by
// SMS.
var smsReaders = `
with pending as (select coalesce(bit_or(` + bitSQL("slot", "@channel::int") + `), 0) as bits from slots where template_id = @id and state = 'waiting'),
bounds as (select min(user_id) as first, max(user_id) as last from reservations where template_id = @id),
places as (select distinct first + (last - first) / 10 * n as place from bounds, generate_series(0, 9) n where first is not null),
picked as (
	select distinct r.user_id, r.slots & p.bits as bits from pending p, places, lateral (
		select near.user_id, near.slots from (select user_id, slots from reservations where template_id = @id and user_id >= place order by user_id limit @read::int) near
		where near.slots & p.bits <> 0 order by near.user_id limit greatest(1, @readers::int / 10)
	) r
)
select case when u.opt_outs & (1 << @channel::int) = 0 then coalesce(u.phone, '') else '' end, coalesce(u.name, ''), coalesce(u.locale, ''), coalesce(u.timezone, ''),
	u.phone_verified_at is not null, length(replace((picked.bits)::bit(64)::text, '0', ''))::bigint
from picked left join users u on u.id = picked.user_id order by picked.user_id`

// readPerReader is the maximum number of reservations that are read for each reader of the
// sample.
const readPerReader = 25

// TextSample reads the data from which the cost of SMS reminders is estimated; see
// [forecast.TextCostStore].
func (s Forecasts) TextSample(ctx context.Context, templateID int64, readers int) (t forecast.TextSample, err error) {
	args := pgx.NamedArgs{"id": templateID, "channel": int16(delivery.SMS), "readers": readers, "read": max(1, readers*readPerReader/10)}
	rows, err := s.Pool.Query(ctx, smsDays, args)
	if err != nil {
		return t, pg.Translate(err)
	}
	if t.Days, err = pgx.CollectRows(rows, pgx.RowToStructByPos[forecast.TextDay]); err != nil || len(t.Days) == 0 {
		return t, pg.Translate(err)
	}
	if rows, err = s.Pool.Query(ctx, smsReaders, args); err != nil {
		return t, pg.Translate(err)
	}
	if t.Readers, err = pgx.CollectRows(rows, pgx.RowToStructByPos[forecast.TextReader]); err != nil {
		return t, pg.Translate(err)
	}
	err = s.Pool.QueryRow(ctx, `select d.day, coalesce(s.parts, 0), coalesce(s.micros, 0), coalesce((select parts from sms_spent_drops where template_id = $1), 0)
		from (select (clock_timestamp() at time zone 'utc')::date as day) d left join sms_spent s on s.day = d.day`, templateID).
		Scan(&t.Today, &t.SpentToday.Parts, &t.SpentToday.Micros, &t.SpentDrop)
	for i := range t.Days {
		t.Days[i].Day = t.Days[i].Day.In(time.UTC)
	}
	t.Today = t.Today.In(time.UTC)
	return t, pg.Translate(err)
}
