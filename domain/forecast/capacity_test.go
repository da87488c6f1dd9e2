package forecast_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// each is a process with one core, and one request for each customer who reserved.
var each = forecast.Process{WebCores: 1, WorkerCores: 1, PerReservation: 1}

// evening is the instant at which the capacity is asked: 19:45 in Berlin.
var evening = time.Date(2026, 11, 20, 18, 45, 0, 0, time.UTC)

// opening is a drop that opens at 20:00 in Berlin.
func opening(id, reserved int64, after time.Duration) forecast.DropAhead {
	return forecast.DropAhead{TemplateID: id, Name: "Moon cakes", Timezone: "Europe/Berlin", OpensAt: evening.Add(15*time.Minute + after), Reserved: reserved}
}

// TestCapacity: the processes that are wanted, and the reasons in words.
func TestCapacity(t *testing.T) {
	gate := opening(7, 310_000, 0)
	gate.Gate, gate.Left = true, 100_000
	slot := func(n int64, after time.Duration) forecast.SlotAhead {
		return forecast.SlotAhead{TemplateID: 42, Timezone: "Europe/Berlin", DueAt: evening.Add(after), Messages: n}
	}
	mails := forecast.ChannelForecast{Channel: delivery.Email, Rate: forecast.Rate{PerSecond: 500_000}, Jobs: []forecast.Prognosis{{
		Job: forecast.Job{TemplateID: 42, Channel: delivery.Email, ShopTimezone: "Europe/Berlin", Messages: 1_000_000}, StartAt: evening.Add(time.Minute), FinishAt: evening.Add(2 * time.Minute)}}}
	campaign := func(n, perSecond int64, c delivery.Channel) forecast.CampaignAhead {
		return forecast.CampaignAhead{ID: 9, Timezone: "Europe/Berlin", Channel: c, StartsAt: evening.Add(5 * time.Minute), PerSecond: perSecond, Messages: n}
	}
	for _, c := range []struct {
		name                        string
		ahead                       forecast.Ahead
		process                     forecast.Process
		now                         time.Time
		web, worker, delivery, gate int
		reasons                     []string
	}{
		{name: "no drop: two of each, so that one may fail", web: 2, worker: 2, delivery: 2, gate: 2},
		{name: "one drop: 31,000 claims/s of 40 µs are 1.24 cores, 2.07 at a load of 0.6", ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(42, 310_000, 0)}},
			web: 3, worker: 2, delivery: 2, gate: 2, reasons: []string{"drop 42 opens at 20:00, 310,000 expected"}},
		{name: "processes of two cores", ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(42, 3_100_000, 0)}}, process: forecast.Process{WebCores: 2, WorkerCores: 2, PerReservation: 1},
			web: 11, worker: 2, delivery: 2, gate: 2, reasons: []string{"drop 42 opens at 20:00, 3,100,000 expected"}},
		{name: "half as many again as reserved", ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(42, 310_000, 0)}}, process: forecast.Process{WebCores: 1, WorkerCores: 1, PerReservation: 1.5},
			web: 4, worker: 2, delivery: 2, gate: 2, reasons: []string{"drop 42 opens at 20:00, 465,000 expected"}},
		{name: "nobody reserved", ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(42, 0, 0)}}, web: 2, worker: 2, delivery: 2, gate: 2},
		{name: "a second too far away", ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(42, 310_000, time.Second)}}, web: 2, worker: 2, delivery: 2, gate: 2},
		{name: "four at one instant add up", ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(1, 310_000, 0), opening(2, 310_000, 0), opening(3, 310_000, 0), opening(4, 310_000, 0)}},
			web: 9, worker: 2, delivery: 2, gate: 2, reasons: []string{"drop 1 opens at 20:00, 310,000 expected", "drop 2 opens at 20:00, 310,000 expected",
				"drop 3 opens at 20:00, 310,000 expected", "drop 4 opens at 20:00, 310,000 expected"}},
		{name: "four in turn do not", ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(1, 310_000, -9*time.Minute), opening(2, 310_000, -6*time.Minute), opening(3, 310_000, -3*time.Minute), opening(4, 310_000, 0)}},
			web: 3, worker: 2, delivery: 2, gate: 2, reasons: []string{"drop 1 opens at 19:51, 310,000 expected", "drop 2 opens at 19:54, 310,000 expected",
				"drop 3 opens at 19:57, 310,000 expected", "drop 4 opens at 20:00, 310,000 expected"}},
		{name: "59 s after the opening", now: evening.Add(15*time.Minute + 59*time.Second), ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(42, 310_000, 0)}},
			web: 3, worker: 2, delivery: 2, gate: 2, reasons: []string{"drop 42 opens at 20:00, 310,000 expected"}},
		{name: "a minute after the opening", now: evening.Add(16 * time.Minute), ahead: forecast.Ahead{Drops: []forecast.DropAhead{opening(42, 310_000, 0)}}, web: 2, worker: 2, delivery: 2, gate: 2},
		{name: "behind the gate: only accepted claims are written, 10,000/s of 27 µs", ahead: forecast.Ahead{Drops: []forecast.DropAhead{gate}},
			web: 3, worker: 2, delivery: 2, gate: 2, reasons: []string{"drop 7 opens at 20:00, 310,000 expected", "drop 7 opens at 20:00, 310,000 expected"}},
		{name: "10,000,000 reminders: 1.9 cores of delivery for ten seconds, 33,333 pages/s of web for five minutes", ahead: forecast.Ahead{Slots: []forecast.SlotAhead{slot(10_000_000, 10*time.Minute)}},
			web: 14, worker: 4, delivery: 4, gate: 2, reasons: []string{"10,000,000 reminders of drop 42 by app are due at 19:55", "10,000,000 reminders of drop 42 by app are due at 19:55"}},
		{name: "four minutes after the reminders their readers still come", ahead: forecast.Ahead{Slots: []forecast.SlotAhead{slot(10_000_000, -4*time.Minute)}},
			web: 14, worker: 2, delivery: 2, gate: 2, reasons: []string{"10,000,000 reminders of drop 42 by app are due at 19:41"}},
		{name: "a provider's rate bounds mails: 500,000/s of 6.1 µs", ahead: forecast.Ahead{Channels: []forecast.ChannelForecast{mails}},
			web: 2, worker: 6, delivery: 6, gate: 2, reasons: []string{"1,000,000 reminders of drop 42 by email are due at 19:46"}},
		{name: "a campaign in the app goes out like reminders", ahead: forecast.Ahead{Campaigns: []forecast.CampaignAhead{campaign(1_000_000, 0, delivery.App)}},
			web: 2, worker: 2, delivery: 2, gate: 2, reasons: []string{"campaign 9 starts at 19:50, 1,000,000 messages by app", "campaign 9 starts at 19:50, 1,000,000 messages by app"}},
		{name: "a campaign with a rate: readers come as fast as its messages", ahead: forecast.Ahead{Campaigns: []forecast.CampaignAhead{campaign(20_000_000, 10_000, delivery.App)}},
			web: 5, worker: 2, delivery: 2, gate: 2, reasons: []string{"campaign 9 starts at 19:50, 20,000,000 messages by app", "campaign 9 starts at 19:50, 20,000,000 messages by app"}},
		{name: "a campaign by mail at the channel's rate", ahead: forecast.Ahead{Campaigns: []forecast.CampaignAhead{campaign(1_000_000, 0, delivery.Email)}, Channels: []forecast.ChannelForecast{{Channel: delivery.Email, Rate: forecast.Rate{PerSecond: 300_000}}}},
			web: 2, worker: 4, delivery: 4, gate: 2, reasons: []string{"campaign 9 starts at 19:50, 1,000,000 messages by email"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.process == (forecast.Process{}) {
				c.process = each
			}
			if c.now.IsZero() {
				c.now = evening
			}
			got := forecast.CapacityFor(c.ahead, c.process, c.now)
			if got.Web != c.web || got.Worker != c.worker || got.Delivery != c.delivery || got.Gate != c.gate || !got.Until.Equal(c.now.Add(15*time.Minute)) {
				t.Errorf("web %d, worker %d, delivery %d, gate %d until %s", got.Web, got.Worker, got.Delivery, got.Gate, got.Until)
			}
			var reasons []string
			for _, l := range got.Loads {
				reasons = append(reasons, l.Text())
			}
			if d := cmp.Diff(c.reasons, reasons); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCostsAreThoseOfScale: the costs are the figures of docs/scale.md.
func TestCostsAreThoseOfScale(t *testing.T) {
	document, err := os.ReadFile("../../docs/scale.md")
	musttest.OK(t, err)
	source, err := os.ReadFile("capacity.go")
	musttest.OK(t, err)
	for name, c := range map[string]struct{ row, cell string }{
		`claimCost +=  ?40 \* time\.Microsecond`:     {"| a claim over HTTP, 1,024 waiting |", "| 40 "},
		`pageCost +=  ?244 \* time\.Microsecond`:     {"| a page of the inbox |", "| 244 "},
		`gateCost +=  ?27 \* time\.Microsecond`:      {"role `gate`, and PostgreSQL, together", "at most 27:"},
		`reminderCost +=  ?1900 \* time\.Nanosecond`: {"| a reminder over the app channel, from due to recorded |", "at most 1.9:"},
		`messageCost +=  ?6100 \* time\.Nanosecond`:  {"| a webhook message, as a reminder |", "| 6.1 "},
		`planned +=  ?0\.6`:                          {"| load `L` that a core is planned for |", "| 0.6 |"},
	} {
		if !regexp.MustCompile(name).Match(source) {
			t.Errorf("capacity.go has no line %s", name)
		}
		found := false
		for line := range strings.Lines(string(document)) {
			found = found || strings.Contains(line, c.row) && strings.Contains(line, c.cell)
		}
		if !found {
			t.Errorf("docs/scale.md has no row %q with %q", c.row, c.cell)
		}
	}
}

// aheadStore returns drops and slots, or an error.
type aheadStore struct{ err error }

func (s aheadStore) DropsAhead(context.Context, time.Time, time.Time) ([]forecast.DropAhead, error) {
	return []forecast.DropAhead{opening(42, 310_000, 0)}, s.err
}

func (s aheadStore) SlotsAhead(_ context.Context, from, until time.Time) ([]forecast.SlotAhead, error) {
	return []forecast.SlotAhead{{TemplateID: 42, DueAt: evening, Messages: until.Sub(from).Milliseconds()}}, nil
}

// TestCapacities: the loads of the last five and the next fifteen minutes are read, and an error of
// a store is no capacity of two.
func TestCapacities(t *testing.T) {
	s := &forecast.Capacities{Store: aheadStore{}, Forecaster: &forecast.Forecaster{Store: emptyForecast{}, Now: func() time.Time { return evening }}, Now: func() time.Time { return evening },
		Campaigns: func(context.Context, time.Time, time.Time) ([]forecast.CampaignAhead, error) { return nil, nil }}
	c, err := s.Capacity(t.Context(), each)
	if err != nil || c.Web != 3 || len(c.Loads) != 3 || c.Loads[1].Expected != 1_200_000 {
		t.Errorf("%+v, %v", c, err)
	}
	away := errors.New("away")
	s.Store = aheadStore{away}
	if _, err := s.Capacity(t.Context(), each); !errors.Is(err, away) {
		t.Error(err)
	}
}

// emptyForecast has no reminders.
type emptyForecast struct{ forecast.ForecastStore }

func (emptyForecast) Jobs(context.Context, time.Time) ([]forecast.Job, error) { return nil, nil }

func (emptyForecast) Rates(context.Context) (m [delivery.Channels]forecast.Throughput, l [delivery.Channels]float64, err error) {
	return m, l, nil
}

// TestEachDoorIsARushOfItsOwn: the customers of each door come when their door opens, with the stock that the open
// doors may sell by then.
func TestEachDoorIsARushOfItsOwn(t *testing.T) {
	opens, frozen := evening.Add(15*time.Minute), evening
	drop := template.Template{ID: 42, Spec: template.Spec{OpensAt: opens, Stock: 1000}, Issued: 10, DoorBase: 10, Doors: []template.Door{
		{Name: "Members", Who: template.ToSegment, LeadMinutes: 10, Share: 200, Booked: new(250)},
		{Name: "Friends", Who: template.ToList, LeadMinutes: 10, Share: 100, FrozenAt: &frozen, Members: 3_000},
		{Name: "Everybody", Who: template.ToAll, Booked: new(700)}}}
	all := opening(42, 100_000, 0)
	all.Gate, all.Left = true, 990
	list := all.Openings(drop, evening, opens)
	if len(list) != 2 || list[0].Reserved != 28_000 || list[0].Door != "Members / Friends" || list[0].Left != 300 || !list[0].OpensAt.Equal(opens.Add(-10*time.Minute)) ||
		list[1].Reserved != 70_000 || list[1].Door != "Everybody" || list[1].Left != 990 || !list[1].OpensAt.Equal(opens) {
		t.Fatalf("%+v", list)
	}
	c := forecast.CapacityFor(forecast.Ahead{Drops: list}, forecast.Process{WebCores: 1, WorkerCores: 1, PerReservation: 1}, evening)
	if len(c.Loads) != 4 || c.Loads[0].Expected != 70_000 {
		t.Fatalf("%+v", c.Loads)
	}
	if text := c.Loads[0].Text(); !strings.HasSuffix(text, "for Everybody, 70,000 expected") {
		t.Error(text)
	}
	if list = all.Openings(drop, opens.Add(-time.Minute), opens); len(list) != 1 {
		t.Errorf("a minute before the drop: %+v", list)
	}
	drop.Doors = nil
	if list = all.Openings(drop, evening, opens); len(list) != 1 || list[0] != all {
		t.Errorf("without doors: %+v", list)
	}
}
