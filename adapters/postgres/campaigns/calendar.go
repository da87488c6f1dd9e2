package campaigns

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/template"
)

// Zones returns the zones of the shops; see [campaign.CalendarStore].
func (s Campaigns) Zones(ctx context.Context, shops []int64) ([]string, error) {
	s.DB = s.Reports(ctx)
	return pg.Collect(ctx, s.Pool, pgx.RowTo[string], `select distinct timezone from shops where $1::bigint[] is null or number = any($1) order by 1`, orAll(shops))
}

// orAll makes no shops in particular null.
func orAll(shops []int64) []int64 {
	if len(shops) == 0 {
		return nil
	}
	return shops
}

// spansSQL are days in zones: $1 the day, $2 the zone, $3 and $4 its ends.
const spansSQL = ` from unnest($1::int[], $2::text[], $3::timestamptz[], $4::timestamptz[]) as s (day, zone, from_at, to_at) cross join lateral `

// shopSQL restricts column to the shops $5. A single shop is compared by =, so that its own
// index returns the rows in their order.
func shopSQL(column string, shops []int64) (string, any) {
	if len(shops) == 1 {
		return column + ` = $5::bigint`, shops[0]
	}
	return `($5::bigint[] is null or ` + column + ` = any($5))`, orAll(shops)
}

// Planned returns the entries within the spans; see [campaign.CalendarStore]. Each span is an
// index range of which at most limit rows are read.
func (s Campaigns) Planned(ctx context.Context, spans []campaign.Span, shops []int64, limit int) ([]campaign.PlannedOn, error) {
	s.DB = s.Reports(ctx)
	n := len(spans)
	days, zones, from, to := make([]int32, n), make([]string, n), make([]time.Time, n), make([]time.Time, n)
	for i, sp := range spans {
		days[i], zones[i], from[i], to[i] = int32(sp.Day), sp.Zone, sp.From, sp.To
	}
	where, only := shopSQL("c.shop_number", shops)
	rows, err := s.Pool.Query(ctx, `select s.day, f.*`+spansSQL+`(
			select c.id, c.name, c.starts_at, s.zone, coalesce(h.name, ''), c.state, c.approval_asked_at is not null and c.state = 'draft', c.channel, c.ends_at
			from campaigns c left join shops h on h.number = c.shop_number
			where c.starts_at >= s.from_at and c.starts_at < s.to_at and coalesce(h.timezone, '') = s.zone and `+where+`
			order by c.starts_at, c.id limit $6) f`, days, zones, from, to, only, limit)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p campaign.PlannedOn, err error) {
		return p, row.Scan(&p.Day, &p.ID, &p.Name, &p.At, &p.Zone, &p.ShopName, &p.State, &p.Awaiting, &p.Channel, &p.EndsAt)
	})
	if err != nil {
		return nil, pg.Translate(err)
	}
	where, only = shopSQL("t.shop_number", shops)
	rows = pg.Rows(ctx, s.Pool, `select s.day, f.*`+spansSQL+`(
			select t.id, t.name, t.opens_at, s.zone, h.name, t.state, t.closes_at, t.valid_until, t.issued + t.held, t.stock,
				t.opening_mode, t.entry_minutes, t.published_at, clock_timestamp()
			from templates t join shops h on h.number = t.shop_number
			where t.opens_at >= s.from_at and t.opens_at < s.to_at and t.state <> 'cancelled' and h.timezone = s.zone and `+where+`
			order by t.opens_at, t.id limit $6) f`, days, zones, from, to, only, limit)
	drops, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p campaign.PlannedOn, err error) {
		var t template.Template
		var now time.Time
		err = row.Scan(&p.Day, &p.ID, &p.Name, &p.At, &p.Zone, &p.ShopName, &t.Stored, &t.ClosesAt, &t.ValidUntil, &t.Issued, &t.Stock, &t.OpeningMode, &t.EntryMinutes, &t.PublishedAt, &now)
		t.OpensAt = p.At
		p.Drop, p.DropState = true, t.Stage(now)
		return p, err
	})
	return append(list, drops...), pg.Translate(err)
}
