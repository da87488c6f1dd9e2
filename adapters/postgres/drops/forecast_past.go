package drops

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/template"
)

// keepSQL stores the forecasts of waiting slots and replaces earlier forecasts.
const keepSQL = `
insert into slot_forecasts (slot_id, channel, opens_at, made_at, booked, messages, missed, per_second, finish_at)
select s.id, f.channel, s.opens_at, clock_timestamp(), f.booked, f.messages, f.missed, f.rate, f.finish_at
from unnest(@templates::bigint[], @slots::smallint[], @channels::smallint[], @due::timestamptz[], @booked::bigint[], @messages::bigint[], @missed::bigint[],
        @rates::float8[], @finish::timestamptz[]) as f (template_id, slot, channel, due_at, booked, messages, missed, rate, finish_at)
    join slots s on s.template_id = f.template_id and s.slot = f.slot and s.due_at = f.due_at
where s.state = 'waiting' and s.due_at > clock_timestamp()
on conflict (slot_id, channel) do update set opens_at = excluded.opens_at, made_at = excluded.made_at, booked = excluded.booked, messages = excluded.messages,
    missed = excluded.missed, per_second = excluded.per_second, finish_at = excluded.finish_at`

// Keep stores the forecasts of slots that wait; see [forecast.PastForecasts].
func (s Forecasts) Keep(ctx context.Context, list []forecast.Prognosis) error {
	n := len(list)
	templates, slots, channels, due := make([]int64, n), make([]int16, n), make([]int16, n), make([]time.Time, n)
	booked, messages, missed, rates, finish := make([]int64, n), make([]int64, n), make([]int64, n), make([]float64, n), make([]time.Time, n)
	for i, p := range list {
		templates[i], slots[i], channels[i], due[i] = p.TemplateID, int16(p.Slot), int16(p.Channel), p.DueAt
		booked[i], messages[i], missed[i], rates[i], finish[i] = p.Booked, p.Messages, p.Missed, p.Rate.PerSecond, p.FinishAt
	}
	_, err := s.Pool.Exec(ctx, keepSQL, pgx.StrictNamedArgs{"templates": templates, "slots": slots, "channels": channels, "due": due,
		"booked": booked, "messages": messages, "missed": missed, "rates": rates, "finish": finish})
	return pg.Translate(err)
}

// PastForecasts returns the forecasts of the template's present opening, made before its slots fired.
func (s Forecasts) PastForecasts(ctx context.Context, templateID int64) ([]forecast.PastForecast, error) {
	rows := pg.Rows(ctx, s.Pool, `
		select s.id, s.slot, f.channel, s.due_at, s.opens_at, f.made_at, f.booked, f.messages, f.missed, f.per_second, f.finish_at
		from slots_of($1) s join templates t on t.id = s.template_id and `+pg.OfOpening+` join slot_forecasts_of($1) f on f.slot_id = s.id
		order by s.due_at, f.channel`, templateID)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p forecast.PastForecast, err error) {
		err = row.Scan(&p.SlotID, &p.Slot, &p.Channel, &p.DueAt, &p.OpensAt, &p.MadeAt, &p.Booked, &p.Messages, &p.Missed, &p.PerSecond, &p.FinishAt)
		return p, err
	})
	return list, pg.Translate(err)
}

// errorsSQL returns the forecast errors of the last drops, computed like [forecast.ErrorOf].
// It reads only the latest @rows forecasts; @drops drops have at most as many.
const errorsSQL = `
select sum(abs(f.in_time - r.sent))::float8 / greatest(1, sum(greatest(f.in_time, r.sent)))::float8
from (select slot_id, channel, opens_at, messages - missed as in_time from slot_forecasts where opens_at < statement_timestamp()
        order by opens_at desc, slot_id limit @rows) f
    join slots s on s.id = f.slot_id and s.state = 'finished' join slot_results r on r.slot_id = f.slot_id and r.channel = f.channel
group by s.template_id, f.opens_at having sum(greatest(f.in_time, r.sent)) > 0 order by f.opens_at desc, s.template_id limit @drops`

// Errors returns the errors of the last drops; see [forecast.PastForecasts].
func (s Forecasts) Errors(ctx context.Context, limit int) ([]float64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[float64], errorsSQL, pgx.StrictNamedArgs{"drops": limit, "rows": 2 * limit * template.Slots * delivery.Channels})
}
