package drops

import (
	"strings"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/draw"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	"dropbell/views/ui"
)

// told is the text of the headline of p at an instant: its label, its text and note, or the time until the next instant.
func told(t *testing.T, p Template, at time.Time, language string) string {
	t.Helper()
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	ctx := ui.With(t.Context(), &ui.Frame{Locale: languages.Match(language), Now: at})
	h := p.headline(ctx)
	if h.text == "" {
		return h.label + " " + ui.Countdown(ctx, h.at)
	}
	said := strings.TrimSpace(h.label + " " + h.text + " " + h.note)
	if h.at.IsZero() {
		return said
	}
	return said + ", " + h.after + " " + ui.Countdown(ctx, h.at)
}

// From the opening on the coupons that are left are the headline, and once they are gone how long they lasted.
func TestTheHeadlineOfADrop(t *testing.T) {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	drop := template.Template{Stored: template.Published, Spec: template.Spec{Stock: 1000, OpensAt: opens, ClosesAt: opens.Add(2 * time.Hour)}}
	ahead := Template{Drop: Drop{Template: drop}}
	open, gone := ahead, ahead
	open.Issued = 400
	open.Sales = &Sales{Template: open.Drop.Template, Total: 1000, Issued: 400, Writing: 20}
	gone.Issued = 1000
	gone.Sales = &Sales{Template: gone.Drop.Template, Total: 1000, Issued: 1000, Curve: claim.NewCurve(time.Second, []claim.Point{{At: opens.Add(41 * time.Second), Issued: 1000}})}
	paused := open
	paused.Stored = template.Paused
	for _, c := range []struct {
		page     Template
		after    time.Duration
		language string
		want     string
	}{
		{ahead, -time.Minute, "en", "Opens in 1:00"},
		{ahead, 0, "en", "Coupons left 1,000 0 of 1,000 claimed, Closes in 2:00:00"},
		{open, time.Hour, "en", "Coupons left 580 420 of 1,000 claimed, Closes in 1:00:00"},
		{open, time.Hour, "zh-CN", "剩余优惠券 580 已领取 420/1,000, 距结束 1:00:00"},
		{paused, time.Hour, "en", "Coupons left 580 420 of 1,000 claimed, Closes in 1:00:00"},
		{gone, time.Hour, "en", "1,000 of 1,000 claimed Gone in 42 s, Closes in 1:00:00"},
		{gone, time.Hour, "zh-CN", "已领取 1,000/1,000 42 秒抢光, 距结束 1:00:00"},
	} {
		if got := told(t, c.page, opens.Add(c.after), c.language); got != c.want {
			t.Errorf("%v after the opening: %q, want %q", c.after, got, c.want)
		}
	}
}

// The headline of a draw counts down to its next step and names it.
func TestTheHeadlineOfADraw(t *testing.T) {
	closes := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	round := draw.FirstRound(closes.Add(time.Minute))
	made, until := closes.Add(70*time.Second), closes.Add(time.Hour)
	drop := template.Template{Stored: template.Published, PublishedAt: new(closes.Add(-24 * time.Hour)),
		Spec: template.Spec{Stock: 10, OpensAt: closes, ClosesAt: closes.Add(2 * time.Hour), Opening: template.Opening{OpeningMode: template.ByDraw, EntryMinutes: 60}}}
	open := draw.Draw{State: draw.Open, OpensAt: closes.Add(-time.Hour), ClosesAt: closes, Seal: "none", Round: round, Counts: draw.Counts{Entered: 40}}
	public, drawn, offered := open, open, open
	public.Round = 0
	drawn.State, drawn.DrawnAt, drawn.Won = draw.Done, &made, 10
	offered.State, offered.DrawnAt, offered.Won, offered.OffersUntil = draw.Offered, &made, 10, &until
	for _, c := range []struct {
		draw  *draw.Draw
		after time.Duration
		want  string
	}{
		{nil, -90 * time.Minute, "Entries open in 30:00"},
		{&open, -90 * time.Minute, "Entries open in 30:00"},
		{&open, -10 * time.Minute, "Entries close in 10:00"},
		{&open, draw.RoundTime(round).Sub(closes) - 40*time.Second, "Draw in 0:40"},
		{&open, 2 * time.Minute, "Draw Being made"},
		{&public, 2 * time.Minute, "Draw Being made"},
		{&drawn, time.Hour, "Won 10 of 40 entries, Closes in 1:00:00"},
		{&offered, 30 * time.Minute, "Won 10 of 40 entries, Winners accept for 30:00"},
	} {
		if got := told(t, Template{Drop: Drop{Template: drop}, Draw: c.draw}, closes.Add(c.after), "en"); got != c.want {
			t.Errorf("%v after the close: %q, want %q", c.after, got, c.want)
		}
	}
}

// The rate is the mean of the complete seconds since the opening, and of the last ten later on.
func TestTheRateOfAYoungDrop(t *testing.T) {
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	ctx := ui.With(t.Context(), &ui.Frame{Locale: languages.Match("en")})
	for _, c := range []struct {
		pace       []int64
		rate, note string
	}{
		{nil, "–", "since the opening"},
		{[]int64{40, 20}, "30", "since the opening"},
		{[]int64{900, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, "10", "of the last 10 seconds"},
	} {
		if s := (Sales{Pace: c.pace}); s.rate(ctx) != c.rate || s.rateNote(ctx) != c.note {
			t.Errorf("%v: %s %s, want %s %s", c.pace, s.rate(ctx), s.rateNote(ctx), c.rate, c.note)
		}
	}
}
