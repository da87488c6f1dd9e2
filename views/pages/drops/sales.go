package drops

import (
	"context"
	"fmt"
	"math"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// rateSeconds is the number of seconds over which the shown rate is averaged.
const rateSeconds = 10

func (s Sales) stock() ui.Stock {
	return ui.Stock{Total: s.Total, Issued: s.Issued, Writing: s.Writing, Held: s.Wait.Held}
}

// last is the mean of the coupons of each of the last seconds; known is false in the first second after the opening.
func (s Sales) last() (perSecond float64, known bool) {
	last := s.Pace[max(0, len(s.Pace)-rateSeconds):]
	if len(last) == 0 {
		return 0, false
	}
	var sum int64
	for _, n := range last {
		sum += n
	}
	return float64(sum) / float64(len(last)), true
}

// goneIn is how long the coupons last at the pace of the last seconds, 0 if none is claimed or left.
func (s Sales) goneIn() time.Duration {
	pace, _ := s.last()
	if left := s.stock().Left(); left > 0 && pace > 0 {
		return time.Duration(math.Ceil(float64(left)/pace)) * time.Second
	}
	return 0
}

// opened reports whether customers claim coupons, or have claimed them all.
func (s Sales) opened(ctx context.Context) bool {
	state := s.Template.State(ui.From(ctx).Now)
	return (state == template.Open || state == template.SoldOut) && !s.Template.OpeningMode.Drawn()
}

// rate is how many were issued per second just now, "–" in the first second after the opening.
func (s Sales) rate(ctx context.Context) string {
	if pace, known := s.last(); known {
		return ui.Ratio(ctx, pace)
	}
	return "–"
}

// claiming reports whether coupons can be claimed now.
func (s Sales) claiming(ctx context.Context) bool {
	return s.Template.State(ui.From(ctx).Now) == template.Open && !s.Template.OpeningMode.Drawn()
}

// rateNote says which seconds the rate is of.
func (s Sales) rateNote(ctx context.Context) string {
	if len(s.Pace) < rateSeconds {
		return ui.T(ctx, "claims.rate_young")
	}
	return ui.T(ctx, "claims.rate_note")
}

// peakText is the most coupons that were claimed in one second, and the time of that second.
func peakText(ctx context.Context, c claim.Curve, zone *time.Location) (most, at string) {
	n, second := c.Peak()
	if n == 0 {
		return "–", ""
	}
	return ui.Num(ctx, n), second.In(zone).Format("15:04:05") + " " + ui.From(ctx).Locale.Zone(second, zone)
}

// note returns the most important state that the headline does not say: claims are paused, or are not open yet.
func (s Sales) note(ctx context.Context) string {
	switch s.Template.Stage(ui.From(ctx).Now) {
	case template.Paused:
		return ui.T(ctx, "claims.paused")
	case template.EntriesOpen, template.Sealed, template.Drawn:
		return ui.T(ctx, "draw.note")
	case template.Scheduled:
		return ui.T(ctx, "claims.ahead")
	case template.Open:
		if s.Writing > 0 && s.stock().Left() == 0 {
			return ui.T(ctx, "claims.all_given")
		}
	}
	return ""
}

// soldOutAfter is how long the coupons lasted, 0 if that is not known.
func (s Sales) soldOutAfter() time.Duration {
	if s.Total > s.Issued+s.Wait.Held {
		return 0
	}
	return s.Curve.GoneAfter(s.Template.OpensAt)
}

// onLive returns the sales for the live tab.
func (s Sales) onLive() Sales {
	s.Live = true
	return s
}

// live reports whether the numbers can still change.
func (s Sales) live(ctx context.Context) bool {
	switch s.Template.State(ui.From(ctx).Now) {
	case template.Draft, template.Cancelled, template.Closed:
		return false
	}
	return true
}

// sold is the chart of coupons.
func (s Sales) sold(ctx context.Context) ui.TimeChart {
	_, sold := ChartsOf(ctx, s.Template, nil, s.Curve, s.Events, s.Earlier)
	sold.Ahead = s.live(ctx)
	return sold
}

func (s Sales) url() string {
	url := fmt.Sprintf("/templates/%d/claims", s.Template.ID)
	if s.Live {
		url += "?tab=live"
	}
	return compared(url, s.With)
}

// waited are the users who joined the waitlist, by what became of them.
func (s Sales) waited() []parts.Piece {
	return []parts.Piece{{Class: "bar-sent", N: s.Wait.Filled}, {Class: "bar-inflight", N: s.Wait.Waiting}, {Class: "bar-expired", N: s.Wait.Lapsed}, {Class: "bar-skipped", N: s.Wait.Left + s.Wait.Skipped}}
}

// heldNote says when the users who wait get the stock that is kept for them.
func (s Sales) heldNote(ctx context.Context) string {
	if s.Template.Waitlist == template.OfferNext {
		return ui.T(ctx, "waitlist.kept_note")
	}
	return ui.T(ctx, "waitlist.held_note")
}

func (s Sales) availableNote(ctx context.Context) string {
	switch {
	case s.Away:
		return ui.T(ctx, "claims.writing_unknown")
	case s.Writing > 0:
		return ui.T(ctx, "claims.writing", ui.Num(ctx, s.Writing))
	}
	now := ui.From(ctx).Now
	switch s.Template.Stage(now) {
	case template.EntriesOpen, template.Sealed, template.Drawn:
		return ui.T(ctx, "draw.available")
	case template.Closed, template.Cancelled:
		if claim.Admit(s.Template, claim.ByGrant, now) == nil {
			return ui.T(ctx, "claims.available_lists")
		}
		return ui.T(ctx, "claims.available_over")
	case template.Paused:
		return ui.T(ctx, "claims.available_paused")
	case template.SoldOut:
		if s.Wait.Held > 0 {
			return ui.T(ctx, "drop.kept", s.Wait.Held)
		}
		return ui.T(ctx, "claims.available_none")
	}
	return ui.T(ctx, "claims.available_note")
}
