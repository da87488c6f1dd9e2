package drops

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
)

// The range of a template's user ids is divided into contactParts parts of equal width. At
// most contactRows reservations are read from the beginning of each part. If the ids at the
// beginning of a part are dense, the part would stand for too many of the bookings. Such a
// part is divided into contactSplit parts again, at most contactRounds times.
const (
	contactParts  = 20
	contactRows   = 50
	contactSplit  = 8
	contactRounds = 22 // until a part has one id: 20 × 8^20 > 2^63
)

// A contactPart is a range of user ids of one template, with the counts of its first
// reservations.
type contactPart struct {
	template, low, high int64
	read, last          int64
	forecast.Contacts
}

// stands returns the number of reservations that each read reservation stands for, assuming
// that the whole part is as dense as the range that was read.
func (p contactPart) stands() float64 {
	if p.read < contactRows {
		return 1
	}
	return (float64(p.high-p.low) + 1) / float64(p.last-p.low+1)
}

// split divides the part; parts beyond its last id are left out.
func (p contactPart) split(n int64) (list []contactPart) {
	width := max(1, (p.high-p.low)/n+1)
	for low := p.low; ; low += width {
		if p.high-low < width {
			return append(list, contactPart{template: p.template, low: low, high: p.high})
		}
		list = append(list, contactPart{template: p.template, low: low, high: low + width - 1})
	}
}

// contactEdgesSQL returns the first and last user of each template with reservations.
const contactEdgesSQL = `
select t.id, e.first, e.last from unnest(@templates::bigint[]) as t (id), lateral (
    select (select min(user_id) from reservations where template_id = t.id) as first, (select max(user_id) from reservations where template_id = t.id) as last) e
where e.first is not null`

// contactsSQL returns for each part and channel how many of the read reservations have booked
// the channel, and how many of these users can be reached. A user can be reached if the user
// has a contact, as the channel's batches look it up, and has not opted out. It also returns
// the number of reservations read and the last user id.
var contactsSQL = `
with sample as (
    select p.n, r.user_id, r.slots, count(*) over part as read, max(r.user_id) over part as last
    from unnest(@templates::bigint[], @lows::bigint[], @highs::bigint[]) with ordinality as p (template_id, low, high, n) cross join lateral (
        select user_id, slots from reservations where template_id = p.template_id and user_id between p.low and p.high order by user_id limit @rows::int) r
    window part as (partition by p.n)
), judged as (
    select s.n, s.read, s.last, c.channel, coalesce(u.opt_outs, 0) & (1 << c.channel) = 0 and coalesce(case c.channel
            when 1 then u.email <> '' and not exists (select from suppressions x where x.address = lower(u.email) and x.released_at is null)
            when 2 then u.phone <> '' and (u.phone_verified_at is not null or not @verified::boolean)
            when 3 then u.push <> '[]' or u.devices <> '[]'
            else true end, false) as reached
    from sample s left join users u on u.id = s.user_id join ` + channelsSQL + ` as c (channel) on s.slots & ` + channelBitsSQL("c.channel") + ` <> 0
)
select n, channel, count(*)::float8, (count(*) filter (where reached))::float8, read, last from judged group by n, channel, read, last`

// Contacts estimates, for each template, how many of its bookings have a contact. The cost
// does not grow with the number of bookings. verified says whether text messages are sent to
// verified numbers only.
func (s Forecasts) Contacts(ctx context.Context, templates []int64, verified bool) (map[int64]forecast.Contacts, error) {
	parts, err := s.contactParts(ctx, templates)
	all, known := map[int64]forecast.Contacts{}, map[int64]float64{} // known: for how many bookings the parts stand that are done
	for round := 1; err == nil && len(parts) > 0; round++ {
		if err = s.readParts(ctx, parts, verified); err != nil {
			return nil, err
		}
		total := map[int64]float64{}
		for id, n := range known {
			total[id] = n
		}
		for _, p := range parts {
			total[p.template] += p.stands() * float64(p.read)
		}
		var next []contactPart
		for _, p := range parts {
			n := p.stands() * float64(p.read)
			if p.read == contactRows && n > 2*total[p.template]/contactParts && round < contactRounds {
				next = append(next, p.split(contactSplit)...)
				continue
			}
			known[p.template] += n
			sum := all[p.template]
			for c := range sum {
				sum[c].Booked, sum[c].Reached = sum[c].Booked+p.stands()*p.Contacts[c].Booked, sum[c].Reached+p.stands()*p.Contacts[c].Reached
			}
			all[p.template] = sum
		}
		parts = next
	}
	return all, err
}

// Verified is [Forecasts.Contacts] for text messages to verified numbers only.
func (s Forecasts) Verified(ctx context.Context, templates []int64) (map[int64]forecast.Contacts, error) {
	return s.Contacts(ctx, templates, true)
}

// contactParts divides the range of user ids of each template into parts.
func (s Forecasts) contactParts(ctx context.Context, templates []int64) (parts []contactPart, err error) {
	rows := pg.Rows(ctx, s.Pool, contactEdgesSQL, pgx.StrictNamedArgs{"templates": templates})
	var p contactPart
	_, err = pgx.ForEachRow(rows, []any{&p.template, &p.low, &p.high}, func() error {
		parts = append(parts, p.split(contactParts)...)
		return nil
	})
	return parts, pg.Translate(err)
}

// readParts reads the first reservations of each part.
func (s Forecasts) readParts(ctx context.Context, parts []contactPart, verified bool) error {
	templates, lows, highs := make([]int64, len(parts)), make([]int64, len(parts)), make([]int64, len(parts))
	for i, p := range parts {
		templates[i], lows[i], highs[i] = p.template, p.low, p.high
	}
	rows := pg.Rows(ctx, s.Pool, contactsSQL, pgx.StrictNamedArgs{"templates": templates, "lows": lows, "highs": highs, "rows": contactRows, "verified": verified})
	var n, read, last int64
	var c delivery.Channel
	var booked, reached float64
	_, err := pgx.ForEachRow(rows, []any{&n, &c, &booked, &reached, &read, &last}, func() error {
		p := &parts[n-1]
		p.read, p.last = read, last
		p.Contacts[c].Booked, p.Contacts[c].Reached = booked, reached
		return nil
	})
	return pg.Translate(err)
}
