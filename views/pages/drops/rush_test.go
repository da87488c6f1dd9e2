package drops

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
	"dropbell/views/i18n"
	"dropbell/views/ui"
)

// A drop with doors counts down to each of them, and names all of them.
func TestTheHeadlineOfADropWithDoors(t *testing.T) {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	drop := template.Template{Stored: template.Published, ShopTimezone: "UTC", Spec: template.Spec{Stock: 25, OpensAt: opens, ClosesAt: opens.Add(2 * time.Hour)},
		Doors: []template.Door{{Name: "Members", LeadMinutes: 60, Who: template.ToSegment}, {Name: "Everyone", Who: template.ToAll}}}
	page := Template{Drop: Drop{Template: drop}}
	for after, want := range map[time.Duration]string{-90 * time.Minute: "Opens to Members in 30:00", -10 * time.Minute: "Opens to Everyone in 10:00", 0: "Coupons left 25 0 of 25 claimed, Closes in 2:00:00"} {
		if got := told(t, page, opens.Add(after), "en"); got != want {
			t.Errorf("%v after the opening: %q, want %q", after, got, want)
		}
	}
	ctx := pageAt(t, opens)
	if got := doorTimes(ctx, drop); got != "Members 11:00 · Everyone 12:00" {
		t.Error(got)
	}
	page.Board.Rows = []reminder.Row{{Slot: reminder.Slot{DueAt: opens.Add(time.Hour), State: reminder.Waiting}}, {Slot: reminder.Slot{DueAt: opens.Add(time.Minute), State: reminder.Waiting}}}
	if next := page.next(ctx); next == nil || !next.DueAt.Equal(opens.Add(time.Minute)) {
		t.Errorf("the next slot is %+v", next)
	}
}

func pageAt(t *testing.T, at time.Time) context.Context {
	t.Helper()
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	return ui.With(t.Context(), &ui.Frame{Locale: languages.Match("en"), Now: at})
}

// A drop is sold out when nothing was left for the first time, and says what is kept for the waitlist.
func TestTheHeadlineOfADropWithAWaitlist(t *testing.T) {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	drop := template.Template{Stored: template.Published, Issued: 21, Held: 4, Spec: template.Spec{Stock: 25, OpensAt: opens, ClosesAt: opens.Add(2 * time.Hour)}}
	curve := claim.NewCurve(time.Second, []claim.Point{{At: opens, Issued: 20}})
	curve.GoneAt = opens.Add(time.Second)
	page := Template{Drop: Drop{Template: drop}, Sales: &Sales{Template: drop, Total: 25, Issued: 21, Wait: waitlist.Sheet{Held: 4, Filled: 1}, Curve: curve}}
	if got, want := told(t, page, opens.Add(time.Hour), "en"), "21 of 25 claimed · 4 kept for the waitlist Gone in 1 s, Closes in 1:00:00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := page.Sales.availableNote(pageAt(t, opens.Add(time.Hour))); got != "4 kept for the waitlist" {
		t.Error(got)
	}
}

// At the pace of the last seconds the coupons are gone in so many seconds.
func TestGoneAtThisPace(t *testing.T) {
	for _, c := range []struct {
		left int64
		pace []int64
		want time.Duration
	}{{100, []int64{900, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 50 * time.Second}, {101, []int64{2}, 51 * time.Second}, {0, []int64{2}, 0}, {10, []int64{0, 0}, 0}, {10, nil, 0}} {
		if got := (Sales{Total: c.left, Pace: c.pace}).goneIn(); got != c.want {
			t.Errorf("%d left, %v: %v, want %v", c.left, c.pace, got, c.want)
		}
	}
}

// The drop whose coupons are nearly gone leads the first page.
func TestANearlySoldDropLeads(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	drop := func(id, issued int64, opens time.Duration) Drop {
		return Drop{Template: template.Template{ID: id, Issued: issued, Stored: template.Published, Spec: template.Spec{Stock: 1000, OpensAt: now.Add(opens), ClosesAt: now.Add(5 * time.Hour)}}}
	}
	order := func(p Overview) (list []int64) {
		for _, d := range p.ordered(now) {
			list = append(list, d.ID)
		}
		return list
	}
	next := []Drop{drop(3, 0, time.Minute)}
	if got := order(Overview{Open: []Drop{drop(1, 900, -time.Minute), drop(2, 962, -time.Hour)}, Upcoming: next}); !slices.Equal(got, []int64{2, 1, 3}) {
		t.Errorf("with 38 of 1,000 left: %v", got)
	}
	if got := order(Overview{Open: []Drop{drop(1, 900, -time.Minute), drop(2, 1000, -time.Hour)}, Upcoming: next}); got[0] == 2 {
		t.Errorf("a drop that is sold out leads: %v", got)
	}
}

// Beside a drop with another stock curves are shares, and they end at twice the time in which the coupons were gone.
func TestCurvesBesideALargerDrop(t *testing.T) {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	ctx := pageAt(t, opens)
	drop := func(stock int64) template.Template {
		return template.Template{ShopTimezone: "UTC", Spec: template.Spec{Stock: stock, OpensAt: opens}}
	}
	curve := func(n int64, seconds int) (c claim.Curve) {
		var list []claim.Point
		for i := range seconds {
			list = append(list, claim.Point{At: opens.Add(time.Duration(i) * time.Second), Issued: n / int64(seconds)})
		}
		return claim.NewCurve(time.Second, list)
	}
	own := curve(100, 10)
	own.GoneAt = opens.Add(10 * time.Second)
	for _, c := range []struct {
		stock  int64
		shares bool
	}{{200, false}, {201, true}, {49, true}} {
		past := report.Past{Figures: report.Figures{Template: drop(c.stock)}, Sales: curve(c.stock, 40)}
		_, sold := ChartsOf(ctx, drop(100), nil, own, nil, []report.Past{past})
		last := sold.Earlier[0].Points[len(sold.Earlier[0].Points)-1].At
		if sold.Shares != c.shares || last.Sub(opens) != 20*time.Second {
			t.Errorf("beside a stock of %d: shares %v, until %v", c.stock, sold.Shares, last.Sub(opens))
		}
	}
}

// A strip ends with the last message; for a second or two there is none.
func TestTheEndOfAStrip(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	card := func(seconds int, inFlight int64) WaveCard {
		c := WaveCard{Minute: reminder.Wave{From: now, Step: time.Second, Sent: make([][delivery.Channels]int64, reminder.MinuteSteps)}}
		for i := range seconds {
			c.Minute.Sent[i][delivery.Email] = 10
		}
		c.Chosen.Cells[delivery.Email].Counts = delivery.Counts{Reserved: 100, Sent: 100 - inFlight, InFlight: inFlight}
		return c
	}
	for _, c := range []struct {
		seconds       int
		inFlight      int64
		drawn, atOnce int
	}{{1, 0, 1, 1}, {2, 0, 2, 2}, {7, 0, 7, 0}, {7, 5, reminder.MinuteSteps, 0}} {
		w := card(c.seconds, c.inFlight)
		if got := len(w.drawn(now.Add(10 * time.Second)).Sent); got != c.drawn || w.atOnce() != c.atOnce {
			t.Errorf("%d seconds, %d on the way: %d are drawn, all within %d", c.seconds, c.inFlight, got, w.atOnce())
		}
	}
}

// In the last minutes before the opening, and once the list of a draw is sealed, no button is emphasized.
func TestNoButtonIsPrimaryInTheRush(t *testing.T) {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	drop := template.Template{Stored: template.Published, Spec: template.Spec{Stock: 10, OpensAt: opens, ClosesAt: opens.Add(time.Hour)}}
	drawn := drop
	drawn.OpeningMode = template.ByDraw
	for _, c := range []struct {
		drop  template.Template
		after time.Duration
		want  string
	}{{drop, -6 * time.Minute, "primary"}, {drop, -5 * time.Minute, ""}, {drop, time.Minute, "primary"}, {drawn, time.Minute, ""}} {
		if got := (Template{Drop: Drop{Template: c.drop}}).mainKind(pageAt(t, opens.Add(c.after))); got != c.want {
			t.Errorf("%v after the opening: %q, want %q", c.after, got, c.want)
		}
	}
	if text := (Template{Drop: Drop{Template: drop}}).aheadText(pageAt(t, opens)); !strings.HasPrefix(text, "Opens ") {
		t.Error(text)
	}
}
