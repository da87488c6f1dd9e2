package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/draw"
	"dropbell/domain/reminder"
)

// mostPoints bounds the points of a curve of entries.
const mostPoints = 300

// EntryGrowth returns how many entries of the draw there were at the end of each minute, or of fewer minutes of a long draw.
func (s Draws) EntryGrowth(ctx context.Context, templateID int64) ([]reminder.Growth, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[reminder.Growth], `select minute, entries from (
			select minute, sum(sum(delta)) over (order by minute)::bigint as entries, row_number() over (order by minute desc) as back, count(*) over () as n
			from draw_growth where template_id = $1 group by minute) g
		where back % greatest(1, (n + $2 - 1) / $2) = 1 or n <= $2 order by minute`, templateID, mostPoints)
}

// Fairness is part of [draw.Fairer]. It reads from a standby if there is one.
func (s Draws) Fairness(ctx context.Context, templateID int64) (f draw.Fairness, err error) {
	f.Draw, err = s.Draw(ctx, templateID)
	if err != nil {
		return f, err
	}
	db := s.DB.Reports(ctx)
	s.DB = db
	if f.Growth, err = s.EntryGrowth(ctx, templateID); err != nil {
		return f, err
	}
	rows, err := db.Pool.Query(ctx, `select coalesce(reason, ''), count(*) from draw_entries where template_id = $1 and state = 'struck' group by 1 order by 2 desc, 1`, templateID)
	if err != nil {
		return f, pg.Translate(err)
	}
	if f.Reasons, err = pgx.CollectRows(rows, pgx.RowToStructByPos[draw.Count]); err != nil {
		return f, pg.Translate(err)
	}
	if err := db.Pool.QueryRow(ctx, `select count(*) from coupons where template_id = $1 and origin = 'draw' and returned`, templateID).Scan(&f.TakenBack); err != nil {
		return f, pg.Translate(err)
	}
	card, err := f.Draw.Card()
	if err != nil || len(card.Doors) == 0 {
		return f, err
	}
	for _, d := range card.Doors {
		f.Doors = append(f.Doors, draw.DoorShare{CardDoor: d})
	}
	rows = pg.Rows(ctx, db.Pool, `select door, count(*), count(*) filter (where state = 'won') from draw_entries where template_id = $1 group by door`, templateID)
	var place int
	var entered, won int64
	_, err = pgx.ForEachRow(rows, []any{&place, &entered, &won}, func() error {
		if place < 1 || place > len(f.Doors) {
			return errors.New("an entry came through a door that the card does not have")
		}
		f.Doors[place-1].Entered, f.Doors[place-1].Won = entered, won
		return nil
	})
	return f, pg.Translate(err)
}

// Demand is part of [draw.DeskStore].
func (s Draws) Demand(ctx context.Context, shop int64) (d draw.Demand, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*), coalesce(sum(booked) / nullif(sum(stock), 0), 0)::float8 from (
		select t.stock, coalesce((select a.booked from drop_archives a where a.template_id = t.id), (select sum(g.delta) from booking_growth g where g.template_id = t.id), 0) as booked
		from (select id, stock from templates where shop_number = $1 and state in ('published', 'paused', 'closed') and opens_at <= clock_timestamp()
			order by opens_at desc, id desc limit $2) t) x where booked > 0`, shop, draw.DemandOf).Scan(&d.Drops, &d.PerCoupon)
	return d, pg.Translate(err)
}

var _ draw.Fairer = Draws{}
