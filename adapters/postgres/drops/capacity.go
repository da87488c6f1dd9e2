package drops

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/forecast"
	"dropbell/domain/template"
)

// DropsAhead returns the openings between the instants of published drops and of their doors. A customer who
// reserves several reminders of a drop counts once: the reminder with the most bookings counts.
func (s Forecasts) DropsAhead(ctx context.Context, from, until time.Time) (list []forecast.DropAhead, err error) {
	rows := pg.Rows(ctx, s.Pool, `
		select t.id, t.name, sh.timezone, t.opens_at,
			coalesce((select max(booked) from (select sum(booked)::bigint as booked from bookings where template_id = t.id group by slot) slots), 0),
			t.claim_mode = 'gate', t.stock - t.issued - t.held, t.stock, t.issued, t.door_base, `+pg.DoorsOf+`
		from templates t join shops sh on sh.number = t.shop_number
		where t.state = 'published' and (t.opens_at between $1 and $2 or t.doors > 0 and t.opens_at between $1 and $2::timestamptz + $3 * interval '1 minute')
		order by t.opens_at, t.id`, from, until, template.MaxDoorLead)
	var d forecast.DropAhead
	var t template.Template
	_, err = pgx.ForEachRow(rows, []any{&d.TemplateID, &d.Name, &d.Timezone, &t.OpensAt, &d.Reserved, &d.Gate, &d.Left, &t.Stock, &t.Issued, &t.DoorBase, &t.Doors}, func() error {
		list = append(list, d.Openings(t, from, until)...)
		return nil
	})
	return list, pg.Translate(err)
}

// slotsAheadSQL returns the slots that are due between $1 and $2, by the indexes of each state: a
// finished slot has ended after it was due.
const slotsAheadSQL = `
	select id from slots where state = 'waiting' and due_at between $1 and $2
	union all select id from slots where state in ('firing', 'sending') and stop_reason is null and due_at between $1 and $2
	union all select id from slots where state = 'finished' and finished_at >= $1 and stop_reason is null and due_at between $1 and $2`

// SlotsAhead returns the reminders in the app of slots that are due between the instants.
func (s Forecasts) SlotsAhead(ctx context.Context, from, until time.Time) ([]forecast.SlotAhead, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[forecast.SlotAhead], `
		select s.template_id, t.name, sh.timezone, s.due_at, `+meantSQL(bookedOfSlot)+`
		from slots s join templates t on t.id = s.template_id join shops sh on sh.number = t.shop_number
			join bookings b on b.template_id = s.template_id and b.slot = s.slot and b.channel = 0
		where s.id in (`+slotsAheadSQL+`) and b.booked > 0 and t.state in ('published', 'closed')
		order by s.due_at, s.template_id`, from, until)
}
