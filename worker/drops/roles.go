// Package drops is the room of worker for drops: timers of slots, announcements, bookings,
// Live Activities, and the recount of reminders.
package drops

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/door"
	"dropbell/domain/draw"
	"dropbell/domain/event"
	"dropbell/domain/export"
	"dropbell/domain/fault"
	"dropbell/domain/flight"
	"dropbell/domain/forecast"
	"dropbell/domain/live"
	"dropbell/domain/rehearsal"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/staff/alert"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/timer"
	"dropbell/worker/shell"
)

// Deps are the dependencies of the room. All are required except Live, which is nil without
// APNS_LIVE, and Exports, which is nil without EXPORTS_S3_ENDPOINT. The room sets the callbacks of TimerKeeper and Live.
type Deps struct {
	Templates   *template.Service
	Timers      *reminder.Timers
	TimerKeeper *timer.Keeper
	Announcer   *reminder.Announcer
	Doors       door.Freezer
	Draws       *draw.Operator
	DrawRows    dropsdb.Draws
	Series      *series.Keeper
	SeriesRows  dropsdb.Series
	Exports     *export.Exporter
	ExportRows  dropsdb.Exports
	Forecaster  *forecast.Forecaster
	Flight      *flight.Service
	Rehearsals  *rehearsal.Runner
	Live        *live.Keeper
	LiveRows    dropsdb.Live
	Boards      dropsdb.Boards
	Budgets     dropsdb.Budgets
	Bookings    dropsdb.Counters
	Queue       shell.Queue

	Registry *prometheus.Registry
	Log      *slog.Logger
}

// flightsEvery is how often drops are looked for that are to be checked, after a change or before their opening.
const flightsEvery = 5 * time.Second

// rehearsalsEvery is how often a rehearsal is looked for that was asked for.
const rehearsalsEvery = 2 * time.Second

// Roles returns what worker does for drops.
func Roles(d Deps) shell.Roles {
	c, a, x := newCensus(d), newActivities(d), newExports(d)
	d.TimerKeeper.Armed = func(timers int) {
		d.Log.Info("timers were queued again: Redis is new, was emptied, or has started anew", "timers", timers)
	}
	r := shell.Roles{
		Sweeps: []shell.Sweep{
			{Role: shell.Timers, Name: "sweep", Do: d.sweep},
			{Role: shell.Timers, Name: "doors", Do: d.Doors.Sweep},
			{Role: shell.Timers, Name: "timers", Do: d.TimerKeeper.Keep},
			{Role: shell.Timers, Name: "draws", Do: newDraws(d).sweep},
			{Role: shell.Timers, Name: "series", Do: newRepeating(d).sweep},
			{Role: shell.Timers, Name: "live activities", Do: a.sweep},
		},
		Loops: []shell.Loop{{Role: shell.House, Name: "flight checks", Every: flightsEvery, Do: d.Flight.Sweep},
			{Role: shell.House, Name: "rehearsals", Every: rehearsalsEvery, Do: d.Rehearsals.Step}},
		Handlers: []shell.Handler{
			shell.On("announcements", event.AnnouncementCreated, app.Decoded(func(ctx context.Context, _ string, e event.Announcement) error {
				return d.Queue.Enqueue(ctx, task.Announce(e.AnnouncementID))
			})),
			shell.On("bookings", event.ReservationsChanged, app.Decoded(d.Bookings.Count), watermill.Parallel(2)),
		},
		Tasks: []shell.Task{
			{Name: task.FireSlot, Do: shell.Decoded(func(ctx context.Context, s task.SlotPayload) error { return d.Timers.Fire(ctx, s.SlotID) })},
			{Name: task.Watch, Do: shell.Decoded(func(ctx context.Context, s task.SlotPayload) error { return d.Timers.Watch(ctx, s.SlotID) })},
			{Name: task.WatchMany, Do: shell.Decoded(d.watchMany)},
			{Name: task.Announcing, Do: shell.Decoded(func(ctx context.Context, a task.AnnouncementPayload) error {
				return d.Announcer.Cut(ctx, a.AnnouncementID)
			})},
			{Name: task.TellLiveActivities, Do: shell.Decoded(a.tell), Turn: true},
		},
		Counts:  []shell.Count{{Take: c.recount, Forget: c.forget}, {Take: c.forecast, Forget: func() {}}},
		Watches: []alert.Watch{{Kind: alert.Balance, Look: c.off}, {Kind: alert.Budget, Look: d.budgets}, {Kind: alert.Series, Look: d.refusedDrops}},
	}
	if d.Exports != nil {
		r.Loops = append(r.Loops, shell.Loop{Role: shell.House, Name: "exports", Every: exportsEvery, Do: x.run})
	}
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateChanged, event.TemplateClosed, event.TemplateCancelled} {
		r.Handlers = append(r.Handlers, shell.On("timers", topic, app.Decoded(func(ctx context.Context, _ string, e event.Template) error {
			return d.Timers.Schedule(ctx, e.TemplateID)
		})))
	}
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateChanged, event.TemplateClosed, event.TemplateCancelled} {
		r.Handlers = append(r.Handlers, shell.On("live-activities", topic, app.Decoded(a.changed)))
	}
	return r
}

// sweep finds work that timers and tasks should have started. Every worker sweeps, so that a
// loss of Redis or of a worker delays this work by one or two seconds only.
func (d Deps) sweep(ctx context.Context) error {
	if err := d.Timers.Sweep(ctx); err != nil {
		return err
	}
	if err := d.Announcer.Sweep(ctx); err != nil {
		return err
	}
	_, err := d.Templates.CloseEnded(ctx, 100)
	return err
}

// watchMany is the watchdog's look at slots that were fired together.
func (d Deps) watchMany(ctx context.Context, s task.SlotsPayload) error {
	ids := make([]int64, len(s.SlotIDs))
	for i, id := range s.SlotIDs {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return fault.ErrInvalid.Because("payload: %v", err)
		}
		ids[i] = n
	}
	return d.Timers.Watch(ctx, ids...)
}
