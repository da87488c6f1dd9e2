package drops

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Cells returns every value of the page that can change while it is open. Viewers with the same
// language have the same cells.
func (p Cockpit) Cells(ctx context.Context) ui.Cells {
	c := ui.Cells{}
	p.headCells(ctx, c)
	p.sumCells(ctx, c)
	for _, r := range p.Snapshot.Rows {
		p.slotCells(ctx, c, r)
	}
	for _, ch := range p.shown() {
		p.channelCells(ctx, c, ch)
	}
	return c
}

func (p Cockpit) headCells(ctx context.Context, c ui.Cells) {
	l := ui.From(ctx).Locale
	s := p.Stage(p.At)
	c["state"], c["state.class"] = l.T("state."+string(s)), "badge has-dot is-"+string(ui.StateTone(s))
	verdict := p.verdict(ctx)
	c["verdict"], c["verdict.class"], c["verdict.url"] = verdict.text, "verdict is-"+string(verdict.tone), verdict.url
	c.Flag("verdict.url.none", verdict.url == "")
	c.Flag("clock.none", p.quiet() && (p.opened() || p.OpeningMode.Drawn()) && verdict.tone == ui.Neutral && len(p.Doors) == 0)
	c["problems"] = html(ctx, p.problems())
	slot, at := p.next(), p.OpensAt
	c["next.label"] = ""
	if slot != nil {
		c["next.label"], at = l.T("cockpit.next_slot", slot.Slot.Slot.Minutes()), slot.DueAt
	}
	c.Flag("next.none", slot == nil)
	c["next.at"], c["next.when"] = ui.Machine(at), l.DateTime(at, p.Zone())
	at, key := p.other()
	c["other.label"], c["other.at"], c["other.when"] = l.T(key), ui.Machine(at), l.DateTime(at, p.Zone())
}

func (p Cockpit) sumCells(ctx context.Context, c ui.Cells) {
	l := ui.From(ctx).Locale
	sum, failed := p.Snapshot.Progress(), p.failed()
	late := delivery.Lateness{}
	perSecond := 0.0
	for _, ch := range delivery.AllChannels() {
		late = late.Plus(p.current(ch).Late)
		perSecond += p.Pulse.Now(ch)
	}
	c["sum.sent"], c["sum.of"] = l.Number(sum.Sent), l.T("cockpit.of", sum.Expected())
	c["sum.flight"], c["sum.retry"] = l.Number(sum.InFlight), l.T("cockpit.retry_note", failed)
	c["sum.lost"], c["sum.lost_note"] = l.Number(sum.Dead+sum.Expired), l.T("cockpit.lost_note", sum.Dead, sum.Expired)
	c["sum.late"], c["sum.late_note"] = quantileWithin(ctx, late), l.T("cockpit.median", quantile(ctx, late, 0.5))
	c["sum.rate"] = parts.Rate(ctx, perSecond)
	c.Flag("sum.sent.none", sum.Expected() == 0)
	c.Flag("sum.flight.none", sum.InFlight+failed == 0)
	c.Flag("sum.lost.none", sum.Dead+sum.Expired == 0)
	c.Flag("sum.late.none", late.Messages() == 0)
	c.Flag("sum.rate.none", perSecond == 0)
	p.hiddenCells(ctx, c)
}

// hiddenCells name the channels and count the slots that are hidden because they have nothing.
func (p Cockpit) hiddenCells(ctx context.Context, c ui.Cells) {
	l := ui.From(ctx).Locale
	var idle []string
	for _, ch := range p.shown() {
		if p.idle(ch) {
			idle = append(idle, l.T("channel."+ch.String()))
		}
	}
	c["idle"] = l.N("cockpit.idle", int64(len(idle)), strings.Join(idle, l.T("ui.list_join")))
	c.Flag("idle.none", len(idle) == 0)
	var unbooked int64
	for _, r := range p.Snapshot.Rows {
		if p.unbooked(r) {
			unbooked++
		}
	}
	c.Flag("reminders.none", p.quiet())
	c["unbooked"] = l.N("cockpit.unbooked", unbooked)
	c.Flag("unbooked.none", unbooked == 0)
}

// quiet reports whether no reminder was ever booked and no channel has trouble.
func (p Cockpit) quiet() bool {
	return p.Snapshot.Progress().Expected() == 0 && !slices.ContainsFunc(p.shown(), func(ch delivery.Channel) bool { return !p.idle(ch) })
}

// idle reports whether the channel has neither bookings nor messages, and no trouble.
func (p Cockpit) idle(ch delivery.Channel) bool {
	return p.current(ch).Reserved == 0 && p.waiting(ch) == 0 && !p.troubled(ch)
}

// troubled reports whether messages of the channel have to wait, or may have to.
func (p Cockpit) troubled(ch delivery.Channel) bool {
	tone, _ := parts.ChannelState(p.Channels[ch])
	return ui.Severity(tone) < ui.Severity(ui.Good)
}

// unbooked reports whether the slot is ahead and has no bookings.
func (p Cockpit) unbooked(r reminder.CockpitRow) bool {
	return r.State == reminder.Waiting && r.Booked() == 0 && !r.Overdue(p.At)
}

func (p Cockpit) slotCells(ctx context.Context, c ui.Cells, r reminder.CockpitRow) {
	l := ui.From(ctx).Locale
	row := ui.SlotKey(r.Slot)
	key := "s" + row
	sum, late := r.Counts(), delivery.Lateness{}
	var failed int64
	for i, lane := range r.Lanes {
		failed, late = failed+lane.Failed, late.Plus(lane.Late)
		c[fmt.Sprintf("m%s.%d", row, i)] = laneLate(ctx, lane)
		c[fmt.Sprintf("m%s.%d.end", row, i)] = laneEnd(ctx, r, lane)
	}
	c.Flag(key+".none", p.unbooked(r))
	standing := r.Standing(p.At)
	c[key], c[key+".class"] = ui.StandingText(ctx, standing), "badge is-"+string(ui.StandingTone(standing))
	c[key+".row"] = "cockpit-slot slot-" + string(r.State)
	c[key+".due"], c[key+".at"] = l.Clock(r.DueAt, p.Zone()), ui.Machine(r.DueAt)
	c.SetBar(ctx, key+".bar", sum)
	if r.FiredAt == nil {
		c[key+".n"], c[key+".fired"], c[key+".late"] = l.N("cockpit.booked", r.Booked()), "", ""
		return
	}
	c[key+".n"] = l.T("cockpit.sent_of", sum.Sent, sum.Reserved)
	c[key+".fired"] = l.T("cockpit.fired", parts.Brief(ctx, r.FiredLate()))
	c[key+".late"] = ""
	if late.Messages() > 0 {
		c[key+".late"] = l.T("cockpit.late", quantile(ctx, late, 0.5), quantileWithin(ctx, late))
	}
	if failed > 0 {
		c[key+".n"] += " · " + l.T("cockpit.retry_note", failed)
	}
}

func (p Cockpit) channelCells(ctx context.Context, c ui.Cells, ch delivery.Channel) {
	l := ui.From(ctx).Locale
	key, s, lane := "c"+ch.String(), p.Channels[ch], p.current(ch)
	tone, word := parts.ChannelState(s)
	c[key], c[key+".class"] = l.T(word), "badge is-"+string(tone)
	c.SetBar(ctx, key+".bar", lane.Counts)
	c[key+".n"] = l.T("cockpit.sent_of", lane.Sent, lane.Reserved)
	if lane.Reserved == 0 {
		c[key+".n"] = l.N("cockpit.booked", p.waiting(ch))
	}
	c[key+".flight"], c[key+".retry"], c[key+".dead"] = l.Number(lane.InFlight), l.Number(lane.Failed), l.Number(lane.Dead+lane.Expired)
	c[key+".p50"], c[key+".p99"] = quantile(ctx, lane.Late, 0.5), quantileWithin(ctx, lane.Late)
	values := p.Pulse.PerSecond(ch)
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	c.SetSpark(key+".spark", values[:], most)
	c[key+".rate"] = parts.Rate(ctx, p.Pulse.Now(ch))
	c[key+".spark.text"] = l.T("cockpit.spark", parts.Rate(ctx, most))
	c.Flag(key+".rate.none", p.Pulse.Now(ch) == 0)
	c.Flag(key+".spark.none", most == 0)
	c[key+".forecast"] = p.forecastText(ctx, ch)
	c.Flag(key+".idle", p.idle(ch))
	c.Flag(key+".p50.none", lane.Late.Messages() == 0)
	c.Flag(key+".p99.none", lane.Late.Messages() == 0)
	c.Flag(key+".flight.none", lane.InFlight == 0)
	c.Flag(key+".retry.none", lane.Failed == 0)
	c.Flag(key+".dead.none", lane.Dead+lane.Expired == 0)
	c.Flag(key+".forecast.none", c[key+".forecast"] == "–")
	c[key+".note"] = parts.ChannelNote(ctx, s, p.At, p.Zone())
	c.Flag(key+".note.none", c[key+".note"] == "")
	c.Flag(key+".pause.none", s.Paused || !s.Configured)
	c.Flag(key+".resume.none", !s.Paused)
	c[key+".causes"] = html(ctx, p.causes(ch))
}

// forecastText compares the forecast with the present state.
func (p Cockpit) forecastText(ctx context.Context, ch delivery.Channel) string {
	l := ui.From(ctx).Locale
	var forecast, done time.Time
	running := false
	for _, r := range p.Snapshot.Current() {
		lane := r.Lanes[ch]
		if end := lane.ForecastEnd(r.DueAt); end.After(forecast) {
			forecast = end
		}
		running = running || lane.InFlight > 0
		if lane.DoneAt != nil && lane.DoneAt.After(done) {
			done = *lane.DoneAt
		}
	}
	if !running {
		if forecast.IsZero() || done.IsZero() {
			return p.aheadText(ctx, ch)
		}
		return l.T("cockpit.took", seconds(forecast, p.Zone()), seconds(done, p.Zone()))
	}
	for _, j := range p.Ahead {
		if j.Channel == ch && !j.DueAt.After(p.At) && !j.FinishAt.IsZero() {
			if forecast.IsZero() {
				return l.T("cockpit.expected", seconds(j.FinishAt, p.Zone()))
			}
			return l.T("cockpit.forecast_now", seconds(forecast, p.Zone()), seconds(j.FinishAt, p.Zone()))
		}
	}
	return l.T("cockpit.sending_now")
}

// aheadText is the forecast of the next slot.
func (p Cockpit) aheadText(ctx context.Context, ch delivery.Channel) string {
	for _, j := range p.Ahead {
		if j.Channel == ch && j.DueAt.After(p.At) {
			return ui.T(ctx, "cockpit.expected_next", seconds(j.FinishAt, p.Zone()))
		}
	}
	return "–"
}

func laneLate(ctx context.Context, l reminder.Lane) string {
	if l.Late.Messages() == 0 {
		return "–"
	}
	return quantile(ctx, l.Late, 0.5) + " / " + quantile(ctx, l.Late, 0.99)
}

// laneEnd is how long a lane took, and the forecast of it.
func laneEnd(ctx context.Context, r reminder.CockpitRow, l reminder.Lane) string {
	forecast, took := "–", "–"
	if end := l.ForecastEnd(r.DueAt); !end.IsZero() {
		forecast = parts.Brief(ctx, end.Sub(r.DueAt))
	}
	if l.DoneAt != nil && l.Reserved > 0 {
		took = parts.Brief(ctx, l.DoneAt.Sub(r.DueAt))
	}
	if forecast == "–" && took == "–" {
		return ""
	}
	return ui.Bracketed(ctx, took, forecast)
}

// seconds writes a time of day to the second: everything here is about seconds.
func seconds(t time.Time, zone *time.Location) string { return t.In(zone).Format("15:04:05") }

func quantile(ctx context.Context, late delivery.Lateness, q float64) string {
	if late.Messages() == 0 {
		return "–"
	}
	upTo, bounded := late.Quantile(q)
	if !bounded {
		return "> " + parts.Brief(ctx, upTo)
	}
	return "≤ " + parts.Brief(ctx, upTo)
}

// quantileWithin writes the lateness of 99 % of the messages, for a label that says "within".
func quantileWithin(ctx context.Context, late delivery.Lateness) string {
	return strings.TrimPrefix(quantile(ctx, late, 0.99), "≤ ")
}

// html renders a small list that is sent as a whole when it changes.
func html(ctx context.Context, c templ.Component) string {
	var b bytes.Buffer
	_ = c.Render(ctx, &b) // into memory
	return b.String()
}
