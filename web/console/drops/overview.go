package drops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/event/hook"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	upcomingDrops = 6
	openDrops     = 3
	recentRecords = 8
	earnedDays    = 30
	// oldBacklog is how long a message may be in flight before the page shows it as a problem.
	oldBacklog = time.Minute
	// maxStuck bounds how many stuck messages are counted on the first page.
	maxStuck = 100
)

func (h *handlers) overview(w http.ResponseWriter, r *http.Request) error {
	p, err := h.overviewPage(r)
	if err != nil {
		return err
	}
	return h.Either(w, r, p.Live(), p.Page())
}

// ownOverview returns the first page with the drops of this database.
func (h *handlers) ownOverview(r *http.Request) (droppages.Overview, error) {
	ctx, by := r.Context(), shell.Actor(r)
	var p droppages.Overview
	var err error
	if p.Upcoming, err = h.drops(ctx, by, upcomingDrops, func(q *template.Query) {
		now := h.Now()
		q.States, q.From = []template.State{template.Scheduled, template.Paused}, &now
	}); err != nil {
		return p, err
	}
	if p.Open, err = h.drops(ctx, by, openDrops, func(q *template.Query) {
		q.States, q.Descending = []template.State{template.Open, template.SoldOut}, true
	}); err != nil {
		return p, err
	}
	for _, list := range [][]droppages.Drop{p.Upcoming, p.Open} {
		if err := h.strips(ctx, list); err != nil {
			return p, err
		}
	}
	if p.Setup, err = h.setup(r); err != nil {
		return p, err
	}
	if p.First, err = h.first(ctx, by, p); err != nil || p.First {
		return p, err
	}
	if p.Activity, err = h.Audit.Records(ctx, staff.AuditQuery{Shops: by.Shops, Limit: recentRecords,
		// Sign-ins and sign-outs are no news.
		Without: []string{"staff.sign_in", "staff.sign_out", "staff.single_sign_on"}}); err != nil {
		return p, err
	}
	if p.Forecast, err = h.Forecaster.Forecast(ctx, forecastAhead); err != nil {
		return p, err
	}
	if p.Accuracy, err = h.Forecaster.Accuracy(ctx); err != nil {
		return p, err
	}
	if p.Earned.Overview, err = h.Reports.Earned(ctx, by, 0, earnedDays, shell.Frame(r).DayZone()); err != nil {
		return p, err
	}
	if !shell.Partial(r) {
		if p.Tasks, err = h.tasks(r, p.Upcoming); err != nil {
			return p, err
		}
	}
	return p, h.judge(r, &p)
}

// drops returns templates with their boards.
func (h *handlers) drops(ctx context.Context, by staff.Actor, limit int, narrow func(*template.Query)) ([]droppages.Drop, error) {
	q := template.Query{Limit: limit}
	narrow(&q)
	list, err := h.Templates.Templates(ctx, by, q)
	if err != nil {
		return nil, err
	}
	drops := make([]droppages.Drop, len(list))
	for i, t := range list {
		board, err := h.Board.Board(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		drops[i] = droppages.Drop{Template: t, Board: board}
		if !t.OpeningMode.Drawn() {
			continue
		}
		d, err := h.Draws.Store.Draw(ctx, t.ID)
		if err != nil && !errors.Is(err, draw.ErrNoDraw) {
			return nil, err
		}
		if drops[i].Entered = d.Entries(); err == nil && d.DrawnAt == nil {
			drops[i].DrawAt = d.DueAt()
		}
	}
	return drops, nil
}

// strips adds to each drop whose reminders are sent now how they are sent.
func (h *handlers) strips(ctx context.Context, drops []droppages.Drop) (err error) {
	for i, d := range drops {
		if !slices.ContainsFunc(d.Board.Rows, func(row reminder.Row) bool {
			return row.FiredAt != nil && h.Now().Sub(*row.FiredAt) < waveTail
		}) {
			continue
		}
		if drops[i].Strip, err = h.waveOf(ctx, d, 0); err != nil {
			return err
		}
	}
	return nil
}

func (h *handlers) first(ctx context.Context, by staff.Actor, p droppages.Overview) (bool, error) {
	if len(p.Upcoming) > 0 || len(p.Open) > 0 {
		return false, nil
	}
	any, err := h.Templates.Templates(ctx, by, template.Query{Limit: 1})
	return len(any) == 0, err
}

// judge sets the state of the delivery and the points that need attention.
func (h *handlers) judge(r *http.Request, p *droppages.Overview) error {
	channels, err := h.States.Look(r.Context())
	if err != nil {
		return err
	}
	p.Halted = droppages.HaltedOf(channels)
	drops := append(append([]droppages.Drop{}, p.Open...), p.Upcoming...)
	p.Health = h.health(drops, channels)
	for _, d := range drops {
		p.Attention = append(p.Attention, h.concerns(r, d)...)
	}
	p.Attention = append(p.Attention, h.channelConcerns(r, channels)...)
	if len(shell.Actor(r).Shops) == 0 {
		others, err := h.otherDeadLetters(r, drops)
		if err != nil {
			return err
		}
		p.Attention = append(p.Attention, others...)
	}
	if shell.Actor(r).MayEverywhere(staff.Operate) == nil { // events belong to no shop
		stuck, err := h.DeadMessages.Open(r.Context(), 0, maxStuck)
		if err != nil {
			return err
		}
		if len(stuck) > 0 {
			p.Attention = append(p.Attention, droppages.Attention{Tone: ui.Bad, URL: "/dead-messages", Text: shell.Frame(r).Locale.N("attention.dead_messages", int64(len(stuck)))})
		}
	}
	hooks, err := h.webhookConcerns(r)
	if err != nil {
		return err
	}
	p.Attention = append(p.Attention, hooks...)
	budgets, err := h.budgetConcerns(r)
	if err != nil {
		return err
	}
	p.Attention = append(p.Attention, budgets...)
	p.Attention = bySeverity(p.Attention)
	return nil
}

// Webhooks lists the failing endpoints of shops' servers.
type Webhooks interface {
	// Attention returns the endpoints of the shops (none = all) that are failing or were disabled
	// by failures.
	Attention(ctx context.Context, shops []int64) ([]hook.Endpoint, error)
}

func (h *handlers) webhookConcerns(r *http.Request) (list []droppages.Attention, err error) {
	endpoints, err := h.Webhooks.Attention(r.Context(), shell.Actor(r).Shops)
	for _, e := range endpoints {
		a := droppages.Attention{Tone: ui.Bad, URL: fmt.Sprintf("/webhooks/%d", e.ID)}
		switch {
		case e.Enabled:
			a.Tone, a.Text = ui.Warn, shell.Say(r, "attention.webhook.trouble", e.URL)
		case e.Why == hook.ByGone:
			a.Text = shell.Say(r, "attention.webhook.gone", e.URL)
		default:
			a.Text = shell.Say(r, "attention.webhook.failing", e.URL)
		}
		list = append(list, a)
	}
	return list, err
}

// otherDeadLetters returns the dead letters that belong to no shown drop: dead letters of earlier
// drops, campaigns and notices. The counters include all shops.
func (h *handlers) otherDeadLetters(r *http.Request, drops []droppages.Drop) ([]droppages.Attention, error) {
	groups, err := h.DeadLetters.Groups(r.Context(), shell.Actor(r), delivery.DeadLetterFilter{})
	if err != nil {
		return nil, err
	}
	var n int64
	for _, g := range groups {
		n += g.Dead
	}
	for _, d := range drops {
		n -= d.Board.DeadLetters
	}
	if n <= 0 {
		return nil, nil
	}
	return []droppages.Attention{{Tone: ui.Bad, URL: "/dead-letters", Text: shell.Frame(r).Locale.N("attention.dead_others", n)}}, nil
}

func (h *handlers) health(drops []droppages.Drop, channels [delivery.Channels]delivery.ChannelStatus) []droppages.ChannelHealth {
	list := make([]droppages.ChannelHealth, delivery.Channels)
	for i, ch := range delivery.AllChannels() {
		list[i] = droppages.ChannelHealth{Channel: ch, Configured: h.Channels.Has(ch), Paused: channels[ch].Paused, Failing: channels[ch].Open()}
	}
	for _, d := range drops {
		for _, row := range d.Board.Rows {
			if !h.running(row) {
				continue
			}
			for i, cell := range row.Cells {
				list[i].Counts = list[i].Counts.Plus(cell.Counts)
			}
		}
	}
	return list
}

// running reports whether a slot is being delivered or was in the last hour.
func (h *handlers) running(row reminder.Row) bool {
	return row.FiredAt != nil && (row.State == reminder.Firing || row.State == reminder.Sending || h.Now().Sub(*row.FiredAt) < time.Hour)
}

func (h *handlers) concerns(r *http.Request, d droppages.Drop) (list []droppages.Attention) {
	l, url := shell.Frame(r).Locale, fmt.Sprintf("/templates/%d", d.ID)
	add := func(tone ui.Tone, text string) {
		list = append(list, droppages.Attention{Tone: tone, Text: text, URL: url})
	}
	var sum delivery.Counts
	for _, ch := range d.Board.Totals() {
		sum = sum.Plus(ch.Counts)
		if ch.Booked > 0 && !h.Channels.Has(ch.Channel) {
			add(ui.Warn, l.T("attention.no_sender", d.Name, shell.Say(r, "channel."+ch.Channel.String()), ch.Booked))
		}
	}
	if n := d.Board.DeadLetters; n > 0 {
		list = append(list, droppages.Attention{Tone: ui.Bad, Text: l.N("attention.dead", n, d.Name), URL: fmt.Sprintf("/dead-letters?template=%d", d.ID)})
	}
	if sum.Expired > 0 {
		add(ui.Warn, l.N("attention.expired", sum.Expired, d.Name))
	}
	for _, row := range d.Board.Rows {
		if row.Overdue(h.Now()) {
			add(ui.Bad, l.T("attention.overdue", d.Name, row.Slot.Slot.Minutes()))
		}
	}
	return list
}

func (h *handlers) channelConcerns(r *http.Request, channels [delivery.Channels]delivery.ChannelStatus) (list []droppages.Attention) {
	l := shell.Frame(r).Locale
	add := func(tone ui.Tone, text string) {
		list = append(list, droppages.Attention{Tone: tone, URL: "/channels", Text: text})
	}
	for _, s := range channels {
		name := shell.Say(r, "channel."+s.Channel.String())
		switch {
		case s.Paused:
			add(ui.Warn, l.T("attention.channel_paused", name))
		case s.Configured && s.Open():
			add(ui.Bad, l.T("cockpit.circuit_open", name))
		case s.Configured && s.Unanswered():
			add(ui.Warn, l.T("attention.unanswered", name))
		}
		if b := s.Backlog; b.OldestTimed > oldBacklog {
			add(ui.Warn, l.N("attention.backlog", b.People, name, l.Duration(b.OldestTimed)))
		}
	}
	return list
}
