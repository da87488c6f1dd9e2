package drops_test

import (
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// TestForecastSaysHowSureItIs: users without a contact do not count as messages. One past slot is
// marked as little data; several past slots give a range. The errors of past drops are shown on
// each page with a forecast.
func TestForecastSaysHowSureItIs(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into bookings values ($1, 1, 3, 4000)`, d.ID)
	g.Exec(`insert into reservations (template_id, user_id, slots) select $1, n, 1::bigint << 36 from generate_series(100001, 100400) n`, d.ID)
	g.Exec(`insert into users (id, devices) select n, '[{"platform":"ios"}]' from generate_series(100001, 100040) n`)
	g.Exec(`insert into channel_rates values (3, now(), 1, 1000)`)
	b.Get("/forecast").Is(200).Has("100 of 400 reminders would miss their opening", "of 4,000 reserved", "1 per second, the median of recent reminder times",
		"from 1 past reminder time only", "Past reminder times make 0 to 250 missed reminders likely").HasNot("The forecasts of the last")
	g.Exec(`insert into channel_rates select 3, now() + n * interval '1 second', n, 1000 from generate_series(2, 3) n`)
	b.Get("/forecast").Is(200).Has("2 per second, the median of recent reminder times", "between 1 and 3 in 3 past reminder times", "Past reminder times make 0 to 100 missed reminders likely", "400 reminders, all in time")
	g.Exec(`update slots set opens_at = now(), state = 'finished', finished_at = now() where template_id = $1 and slot = 2`, d.ID)
	g.Exec(`insert into slot_results (slot_id, channel, reserved, sent, skipped) select id, 3, 4000, 380, 3620 from slots where template_id = $1 and slot = 2`, d.ID)
	g.Exec(`insert into slot_forecasts select id, 3, opens_at, now(), 4000, 400, 0, 2, now() from slots where template_id = $1 and slot = 2`, d.ID)
	const said = "The forecasts of the last drop were off by 5%"
	b.Get("/forecast").Is(200).Has(said)
	b.Get("/").Is(200).Has(said)
	b.Get(shell.TemplateURL(d.ID) + "?tab=reminders").Is(200).Has(said)
	page := shell.TemplateURL(d.ID) + "/report"
	b.Get(page).Is(200).HasNot("Forecast and outcome")
	g.Exec(`update slots set opens_at = t.opens_at from templates t where t.id = template_id`)
	b.Get(page).Is(200).Has("Forecast and outcome", "10 min before", "The forecasts of this drop were off by 5%")
}
