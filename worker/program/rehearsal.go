package program

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/mute"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
	"dropbell/domain/pause"
	"dropbell/domain/rehearsal"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/worker/senders"
)

// rehearsals makes what runs rehearsals.
func (p *program) rehearsals() *rehearsal.Runner {
	return &rehearsal.Runner{Store: p.Stores.Rehearsals, Stage: newStage(p.App), Token: uuid.NewString(), Lease: 15 * time.Second, Every: time.Second,
		Failed: func(id int64, err error) { p.Log.Error("a rehearsal failed", "rehearsal", id, "error", err) }}
}

// stage runs rehearsals in this process with the code of real drops: the same stores, timers, deliveries and claims, on the world
// of the rehearsal. It has no senders but those of package mute. Of Redis it uses keys with the number of the copy, for the claim gate.
type stage struct {
	*app.App
	forecaster *forecast.Forecaster
	// opensIn is the time to the opening, step the distance between slots.
	opensIn, step time.Duration
}

func newStage(a *app.App) *stage {
	return &stage{App: a, forecaster: a.Forecaster(), opensIn: a.Config.RehearsalOpensIn, step: a.Config.RehearsalOpensIn / rehearsal.StepsToOpening}
}

// Remove removes the world of a rehearsal, with its claim gate.
func (s *stage) Remove(ctx context.Context, id int64) error {
	if err := redisgate.NewShards(s.Redis).Remove(ctx, id); err != nil {
		return err
	}
	return s.Stores.Rehearsals.DropWorld(ctx, id)
}

// Play runs a rehearsal; see [rehearsal.Stage].
func (s *stage) Play(ctx context.Context, r rehearsal.Rehearsal, tell func(rehearsal.Progress), began func(int64, time.Time) error) (report rehearsal.Report, err error) {
	tell(rehearsal.Progress{Step: rehearsal.Preparing})
	wave, err := s.wave(ctx, r.TemplateID)
	if err != nil {
		return report, err
	}
	reserved, err := s.Stores.Rehearsals.Reserved(ctx, r.TemplateID)
	if err != nil {
		return report, err
	}
	report.Reserved = reserved
	profiles, err := s.profiles(ctx)
	if err != nil {
		return report, err
	}
	report.SharePermille, report.Forecast = rehearsal.Share(reserved, wave), wave.Milliseconds()
	world, users, err := s.prepare(ctx, r, report.SharePermille)
	if err != nil {
		return report, err
	}
	defer world.Close()
	report.Users = users
	opensAt, opens, err := s.publish(ctx, world)
	if err != nil {
		return report, err
	}
	if err := began(report.SharePermille, opensAt); err != nil {
		return report, err
	}
	err = s.run(ctx, world, r, opens, profiles, tell, &report)
	return report, err
}

// wave returns how long the longest wave of the drop is forecast to take with all users.
func (s *stage) wave(ctx context.Context, templateID int64) (longest time.Duration, err error) {
	t, err := s.Stores.Templates.Template(ctx, templateID)
	if err != nil {
		return 0, err
	}
	channels, err := s.forecaster.Forecast(ctx, t.OpensAt.Sub(app.Clock()))
	for _, c := range channels {
		for _, j := range c.Jobs {
			if j.TemplateID == templateID {
				longest = max(longest, j.FinishAt.Sub(j.DueAt))
			}
		}
	}
	return longest, err
}

// unmeasured is the latency of a call of a provider that was never measured.
const unmeasured = 80 * time.Millisecond

// profiles returns how the providers were measured.
func (s *stage) profiles(ctx context.Context) (p mute.Profiles, err error) {
	measured, limits, err := s.Stores.Forecasts.Rates(ctx)
	if err != nil {
		return p, err
	}
	lately, err := s.Stores.Rehearsals.Measures(ctx)
	for _, c := range delivery.AllChannels() {
		m := lately[int16(c)]
		p[c] = mute.Profile{PerSecond: forecast.RateOf(c, measured[c].PerSecond, limits[c]).PerSecond, Latency: time.Duration(m.Latency * float64(time.Millisecond)), Refused: m.Refused, Failed: max(0, m.Failed-m.Refused)}
		if p[c].Latency == 0 {
			p[c].Latency = unmeasured
		}
	}
	return p, err
}

// prepare makes the world with the copy of the drop, a draft.
func (s *stage) prepare(ctx context.Context, r rehearsal.Rehearsal, share int64) (w *app.World, users int64, err error) {
	rows := s.Stores.Rehearsals
	from, err := rows.Schema(ctx)
	if err != nil {
		return nil, 0, err
	}
	if err := rows.MakeWorld(ctx, app.WorldURL(s.Config), r.ID); err != nil {
		return nil, 0, err
	}
	if w, err = app.OpenWorld(ctx, s.Config, s.Log, r.ID); err != nil {
		return nil, 0, err
	}
	if users, err = w.Stores.Rehearsals.Fill(ctx, dropsdb.Filling{From: from, Drop: r.TemplateID, ID: r.ID, Shop: r.Shop, SharePermille: share}); err != nil {
		w.Close()
	}
	return w, users, err
}

// templatesOf returns the use cases of the copy. Its draw has a key of its own.
func templatesOf(w *app.World) *template.Service {
	return &template.Service{Store: w.Stores.Templates, Now: app.Clock, Draws: func(template.Opening) error { return nil }}
}

// publish publishes the copy, which opens soon, and returns its opening by the database's clock and by this machine's.
func (s *stage) publish(ctx context.Context, w *app.World) (opensAt, opens time.Time, err error) {
	opensAt, wait, err := w.Stores.Rehearsals.OpenIn(ctx, w.ID, s.opensIn)
	opens = time.Now().Add(wait)
	if err == nil {
		_, err = templatesOf(w).Do(ctx, staff.System(), w.ID, 0, template.Publishing, "")
	}
	if err == nil {
		err = w.Stores.Rehearsals.Compress(ctx, w.ID, s.step)
	}
	return opensAt, opens, err
}

// run runs reminders and the opening, and counts what came of them.
func (s *stage) run(ctx context.Context, w *app.World, r rehearsal.Rehearsal, opens time.Time, profiles mute.Profiles, tell func(rehearsal.Progress), report *rehearsal.Report) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := deliverydb.NewGroupedBatches(w.DB)
	defer batches.Close()
	q := newStageQueue(ctx, s.Config.WorkerBatches)
	defer q.stop()
	defer cancel()
	slots := w.Stores.Slots
	slots.Doors = dropMembers{s.Stores.Doors, r.TemplateID}
	q.announcer = &reminder.Announcer{Store: w.Stores.Announcements, Queue: q, Now: app.Clock, LeaseFor: leaseFor}
	q.timers = &reminder.Timers{Store: slots, Queue: q, Now: app.Clock, LeaseFor: 10 * time.Second, WatchEvery: time.Second, Firings: 2}
	q.deliveries = &delivery.Service{Store: batches, Queue: q, Senders: mute.Senders(profiles), Admission: mute.NewPace(profiles), Texts: message.Stored{Store: w.Stores.Messages},
		Parallel: senders.ParallelCalls(s.Config), Policy: delivery.DefaultPolicy(), LeaseFor: leaseFor, Random: rand.Float64, Now: app.Clock, Uptime: app.NewUptime()}
	if err := q.timers.Schedule(ctx, r.ID); err != nil {
		return err
	}
	shop, err := s.telling(ctx, w, r.ID, q)
	if err != nil {
		return err
	}
	o, err := s.opening(ctx, w, r, opens, q, report)
	if err != nil {
		return err
	}
	opened, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		opened <- o.run(ctx)
	}()
	told := make(chan struct{})
	go func() {
		defer close(told)
		if shop != nil {
			shop.run(ctx)
		}
	}()
	defer func() {
		cancel()
		<-over
		<-told
		o.close()
	}()
	if err := s.watch(ctx, w, o, q, opened, tell); err != nil {
		return err
	}
	if shop != nil {
		pause.For(ctx, tellsAfter)
	}
	if err := s.count(ctx, w, r.ID, report); err != nil || o.t.OpeningMode.Drawn() {
		return err
	}
	if err := o.forShops(ctx); err != nil { // the report is complete
		s.Log.Warn("the copy of a rehearsal has no coupons for keys of rehearsals", "rehearsal", r.ID, "error", err)
	}
	return nil
}

// dropMembers finds the doors of copied users by the lists and rules of the drop itself, which are not copied. It only reads.
type dropMembers struct {
	reminder.DoorJudge
	drop int64
}

// Places implements [reminder.DoorJudge].
func (m dropMembers) Places(ctx context.Context, _ int64, users []user.ID) ([]uint8, error) {
	return m.DoorJudge.Places(ctx, m.drop, users)
}

// endsWithin is how long after its opening a rehearsal has to end.
const endsWithin = 2 * time.Minute

// watch looks at the course every second, and finds work that timers should have started, until all slots and the opening have ended.
func (s *stage) watch(ctx context.Context, w *app.World, o *opening, q *stageQueue, opened <-chan error, tell func(rehearsal.Progress)) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	over := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-opened:
			if err != nil {
				return err
			}
			over, opened = true, nil
		case <-again.C:
		}
		if err := q.timers.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("a sweep of a rehearsal failed", "rehearsal", o.id, "error", err)
		}
		p, ended, err := w.Stores.Rehearsals.Course(ctx, o.id)
		if err != nil {
			return err
		}
		o.progress(&p, over)
		tell(p)
		switch {
		case ended && over:
			return nil
		case time.Since(o.opens) > endsWithin:
			return fmt.Errorf("the rehearsal has not ended %s after its opening", endsWithin)
		}
	}
}

// count completes the report from the rows of the world.
func (s *stage) count(ctx context.Context, w *app.World, id int64, report *rehearsal.Report) error {
	cutLate, err := w.Stores.Rehearsals.Outcome(ctx, id, report)
	if err != nil {
		return err
	}
	if report.SharePermille > 0 {
		report.Wave = report.Wave * 1000 / report.SharePermille
	}
	due, sent, err := w.Stores.Rehearsals.Early(ctx, id)
	if err != nil {
		return err
	}
	if due > 0 {
		report.AddEarly(due, sent)
	}
	lines, err := w.Stores.Boards.Balance(ctx, id)
	if err != nil {
		return err
	}
	for _, l := range lines {
		report.Off += max(l.Difference(), -l.Difference())
	}
	ledger, err := w.Stores.StockLedgers.Ledger(ctx, id)
	if err != nil {
		return err
	}
	report.Oversold = max(0, ledger.Issued-ledger.Total)
	report.Off += max(ledger.Difference(), -ledger.Difference())
	report.Judge(cutLate)
	return nil
}
