package flight

import (
	"errors"
	"slices"
	"testing"
	"time"

	"dropbell/domain/budget"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
	"dropbell/domain/template"
)

var noon = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

// ready returns the facts of a published drop that opens in two hours and has no problem.
func ready() facts {
	t := template.Template{ID: 7, Stored: template.Published, Spec: template.Spec{OpensAt: noon.Add(2 * time.Hour), Stock: 100, AmountOff: 500, Kind: template.AmountOff}}
	job := forecast.Prognosis{Job: forecast.Job{TemplateID: 7, Slot: 2, DueAt: noon.Add(time.Hour), Booked: 1000, Messages: 900}, FinishAt: noon.Add(time.Hour + 9*time.Second)}
	return facts{t: t, now: noon, channels: delivery.ChannelSetOf(delivery.App, delivery.Email), web: 2, wanted: 2, called: true, links: []Link{{"https://shop.example/", 200}},
		forecasts: []forecast.ChannelForecast{{Channel: delivery.Email, Rate: forecast.Rate{PerSecond: 100, Source: forecast.Measured}, Jobs: []forecast.Prognosis{job}}},
		texts:     []textFact{{Key: message.Key{Kind: message.Reminder, Channel: message.Email, Language: "en"}}}}
}

// A drop without problems has a green finding for every point.
func TestReadyDropIsGreen(t *testing.T) {
	t.Parallel()
	f := ready()
	list := f.judge()
	for _, p := range Points() {
		if !slices.ContainsFunc(list, func(f Finding) bool { return f.Point == p }) {
			t.Errorf("no finding about %s", p)
		}
	}
	for _, f := range list {
		if f.Level != Green || f.Do != "" || f.Found == "" {
			t.Errorf("%+v", f)
		}
	}
}

// Each problem has its point and level, and says what to do.
func TestProblems(t *testing.T) {
	t.Parallel()
	soon := func(f *facts) { f.t.OpensAt = noon.Add(30 * time.Minute) }
	for name, c := range map[string]struct {
		change func(*facts)
		point  Point
		level  Level
	}{
		"no reservation soon":     {func(f *facts) { soon(f); f.forecasts = nil }, Users, Amber},
		"most have no contact":    {func(f *facts) { f.forecasts[0].Jobs[0].Messages = 100 }, Users, Amber},
		"no sender":               {func(f *facts) { f.channels = delivery.ChannelSetOf(delivery.App) }, Providers, Red},
		"some too late":           {func(f *facts) { f.forecasts[0].Jobs[0].Missed = 10 }, Providers, Amber},
		"many too late":           {func(f *facts) { f.forecasts[0].Jobs[0].Missed = 100 }, Providers, Red},
		"an assumed rate":         {func(f *facts) { f.forecasts[0].Rate.Source = forecast.Assumed }, Providers, Amber},
		"a broken text":           {func(f *facts) { f.texts[0].broken = true }, Texts, Red},
		"an empty text":           {func(f *facts) { f.texts[0].empty = true }, Texts, Red},
		"a text without the time": {func(f *facts) { f.texts[0].missing = []string{"time"} }, Texts, Amber},
		"wrong doors":             {func(f *facts) { f.doors = door.ErrTests }, Doors, Red},
		"a page that is gone":     {func(f *facts) { f.links[0].Status = 404 }, Links, Red},
		"a silent page":           {func(f *facts) { f.links[0].Status = 0 }, Links, Amber},
		"a short budget": {func(f *facts) {
			f.t.Stored = template.Draft
			f.budgets = []budget.Budget{{Key: budget.Key{Scope: budget.Drop}, Amount: 1000}}
		}, Budget, Red},
		"a used budget": {func(f *facts) {
			f.budgets = []budget.Budget{{Key: budget.Key{Scope: budget.Shop}, Amount: 1000, Used: 900}}
		}, Budget, Amber},
		"another drop":       {func(f *facts) { f.others, f.reserved = 1, 5000 }, Neighbours, Amber},
		"few processes":      {func(f *facts) { f.wanted = 5 }, Capacity, Amber},
		"few processes soon": {func(f *facts) { soon(f); f.wanted = 5 }, Capacity, Red},
	} {
		f := ready()
		c.change(&f)
		found := slices.DeleteFunc(f.judge(), func(f Finding) bool { return f.Level == Green })
		if len(found) != 1 || found[0].Point != c.point || found[0].Level != c.level || found[0].Do == "" {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// Answers that a page needs a sign-in or that it is called too often are no broken links.
func TestAnswersThatAreNoBrokenLinks(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 401, 403, 429} {
		f := ready()
		f.links[0].Status = status
		if list := f.answers(); len(list) != 1 || list[0].Level != Green {
			t.Errorf("HTTP %d: %+v", status, list)
		}
	}
}

func TestLevelOfACheck(t *testing.T) {
	t.Parallel()
	c := Check{Findings: []Finding{{Level: Green}, {Level: Amber}}}
	if c.Level() != Amber || c.Count(Amber) != 1 {
		t.Error(c.Level())
	}
	c.Findings = append(c.Findings, Finding{Level: Red})
	if c.Level() != Red || (Check{}).Level() != Green {
		t.Error(c.Level())
	}
	if !errors.Is(ErrRed.Because("x"), ErrRed) {
		t.Error("a refusal with a reason is no ErrRed")
	}
}

// TestNeedsReason: red points need a reason, except the number of processes, which is no mistake in the drop.
func TestNeedsReason(t *testing.T) {
	for _, point := range Points() {
		for _, l := range []Level{Green, Amber, Red} {
			if got := (Finding{Point: point, Level: l}).needsReason(); got != (l == Red && point != Capacity) {
				t.Errorf("%s %s: %v", l, point, got)
			}
		}
	}
}
