package program

import (
	"context"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/linkcheck"
	"dropbell/adapters/lookup"
	"dropbell/adapters/push/apns"
	"dropbell/adapters/s3"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/export"
	"dropbell/domain/flight"
	"dropbell/domain/live"
	"dropbell/domain/message"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/template"
	"dropbell/domain/timer"
	"dropbell/worker/drops"
)

const (
	watchEvery = 10 * time.Second // the watchdog's period
	// firingShare is the number of database connections per slot, or group of slots, that is cut
	// concurrently. Two connections read; the other two stay free for other work.
	firingShare = 4
)

// flight makes the flight checks that run by themselves.
func (p *program) flight(doors *door.Service) *flight.Service {
	links := linkcheck.New(p.Config.EventsInsecure)
	p.OnClose(links.Close)
	return app.NewFlight(p.Stores, app.Flight{Forecaster: p.Forecaster(), Texts: message.Stored{Store: p.Stores.Messages}, Links: links, Now: app.Clock,
		Doors: doors,
		Channels: func(ctx context.Context) (delivery.ChannelSet, error) {
			set, err := p.Provided(ctx)
			return set | app.Configured(p.Config), err
		}})
}

// drops makes what worker does for drops.
func (p *program) drops() (drops.Deps, error) {
	texts, err := lookup.NewBooks(p.Stores.Messages)
	if err != nil {
		return drops.Deps{}, err
	}
	// A drop of a series is published by the rules by which staff publish.
	templates := &template.Service{Store: p.Stores.Templates, Now: app.Clock, Texts: texts, Draws: p.draws.Check()}
	doors := &door.Service{Store: p.Stores.Templates, Templates: templates, Members: p.Stores.Doors, Segments: p.Stores.Segments, Now: app.Clock}
	checks := p.flight(doors)
	templates.Ready, templates.Flight = doors.Ready, checks.Publishable
	d := drops.Deps{Templates: templates, Flight: checks,
		Series: &series.Keeper{Store: p.Stores.Series, Templates: templates}, SeriesRows: p.Stores.Series, Rehearsals: p.rehearsals(),
		Timers: &reminder.Timers{Store: p.Stores.Slots, Queue: p.queue, Now: app.Clock,
			LeaseFor: 10 * time.Second, WatchEvery: watchEvery, Firings: p.Config.DBConns / firingShare},
		TimerKeeper: &timer.Keeper{Store: p.Stores.Timers, Queue: p.queue},
		Announcer:   &reminder.Announcer{Store: p.Stores.Announcements, Queue: p.queue, Now: app.Clock, LeaseFor: 10 * time.Second},
		Doors:       door.Freezer{Store: p.Stores.Doors, Now: app.Clock},
		Forecaster:  p.Forecaster(), LiveRows: p.Stores.Live, Boards: p.Stores.Boards, Budgets: p.Stores.Budgets, Bookings: p.Stores.Counters,
		Draws: p.DrawOperator(p.draws, p.claims.All()), DrawRows: p.Stores.Draws, ExportRows: p.Stores.Exports, Queue: p.queue, Registry: p.Registry, Log: p.Log}
	cfg := p.Config
	if cfg.Exports.Endpoint != "" {
		files, err := s3.New(s3.Config(cfg.Exports))
		if err != nil {
			return d, config.Mistake{Err: err}
		}
		d.Exports = &export.Exporter{Store: p.Stores.Exports, Files: files}
	}
	if !cfg.APNSLive {
		return d, nil
	}
	apple, err := apns.NewBroadcasts(apns.Config{Key: []byte(cfg.APNSKey), KeyID: cfg.APNSKeyID, TeamID: cfg.APNSTeamID, Topic: cfg.APNSTopic, URL: cfg.APNSURL})
	if err != nil {
		return d, config.Mistake{Err: err}
	}
	p.OnClose(apple.Close)
	d.Live = &live.Keeper{Store: p.Stores.Live, Apple: apple, Now: app.Clock}
	return d, nil
}
