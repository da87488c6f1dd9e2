package program

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/mute"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
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
// of the rehearsal. It has no senders but those of package mute, and neither Redis nor a provider.
type stage struct {
	*app.App
	forecaster *forecast.Forecaster
	// opensIn is the time to the opening, step the distance between slots.
	opensIn, step time.Duration
}

func newStage(a *app.App) *stage {
	return &stage{App: a, forecaster: a.Forecaster(), opensIn: rehearsal.OpensIn, step: rehearsal.SlotStep}
}

// Remove removes the world of a rehearsal.
func (s *stage) Remove(ctx context.Context, id int64) error {
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
	profiles, err := s.profiles(ctx)
	if err != nil {
		return report, err
	}
	report.SharePermille, report.Forecast = rehearsal.Share(reserved, wave), wave.Milliseconds()
	world, users, opensAt, err := s.prepare(ctx, r, report.SharePermille)
	if err != nil {
		return report, err
	}
	defer world.Close()
	report.Users = users
	if err := began(report.SharePermille, opensAt); err != nil {
		return report, err
	}
	err = s.run(ctx, world, r, opensAt, profiles, tell, &report)
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

// prepare makes the world with the copy of the drop, which opens soon.
func (s *stage) prepare(ctx context.Context, r rehearsal.Rehearsal, share int64) (w *app.World, users int64, opensAt time.Time, err error) {
	rows := s.Stores.Rehearsals
	from, err := rows.Schema(ctx)
	if err != nil {
		return nil, 0, opensAt, err
	}
	if err := rows.MakeWorld(ctx, app.WorldURL(s.Config), r.ID); err != nil {
		return nil, 0, opensAt, err
	}
	if w, err = app.OpenWorld(ctx, s.Config, s.Log, r.ID); err != nil {
		return nil, 0, opensAt, err
	}
	opensAt = app.Clock().Add(s.opensIn).Truncate(time.Second)
	if users, err = w.Stores.Rehearsals.Fill(ctx, dropsdb.Filling{From: from, Drop: r.TemplateID, ID: r.ID, Shop: r.Shop, SharePermille: share, OpensAt: opensAt}); err == nil {
		templates := &template.Service{Store: w.Stores.Templates, Now: app.Clock}
		_, err = templates.Do(ctx, staff.System(), r.ID, 0, template.Publishing, "")
	}
	if err == nil {
		err = w.Stores.Rehearsals.Compress(ctx, r.ID, s.step)
	}
	if err != nil {
		w.Close()
	}
	return w, users, opensAt, err
}

// run runs reminders and the rush, and counts what came of them.
func (s *stage) run(ctx context.Context, w *app.World, r rehearsal.Rehearsal, opensAt time.Time, profiles mute.Profiles, tell func(rehearsal.Progress), report *rehearsal.Report) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := deliverydb.NewGroupedBatches(w.DB)
	defer batches.Close()
	q := newStageQueue(ctx, s.Config.WorkerBatches)
	defer q.stop()
	defer cancel()
	q.timers = &reminder.Timers{Store: w.Stores.Slots, Queue: q, Now: app.Clock, LeaseFor: 10 * time.Second, WatchEvery: time.Second, Firings: 2}
	q.deliveries = &delivery.Service{Store: batches, Queue: q, Senders: mute.Senders(profiles), Admission: mute.NewPace(profiles), Texts: message.Stored{Store: w.Stores.Messages},
		Parallel: senders.ParallelCalls(s.Config), Policy: delivery.DefaultPolicy(), LeaseFor: leaseFor, Random: rand.Float64, Now: app.Clock, Uptime: app.NewUptime()}
	if err := q.timers.Schedule(ctx, r.ID); err != nil {
		return err
	}
	var answered atomic.Int64
	rush := make(chan rehearsal.Result, 1)
	go func() { rush <- s.rush(ctx, w, r, opensAt, &answered, report) }()
	failed := s.watch(ctx, w, r.ID, opensAt, q, &answered, tell)
	if failed != nil {
		cancel()
	}
	result := <-rush
	if failed != nil {
		return failed
	}
	tell(rehearsal.Progress{Step: rehearsal.Counting, Fired: template.Slots, Claims: answered.Load()})
	report.Claims, report.Issued, report.Failed = int64(len(result.Took)), result.Issued, result.Failed
	report.ClaimP50, report.ClaimP99 = result.Quantile(0.5).Milliseconds(), result.Quantile(0.99).Milliseconds()
	return s.count(ctx, w, r.ID, report)
}

// endsWithin is how long after its opening a rehearsal has to end.
const endsWithin = 2 * time.Minute

// watch looks at the course every second, and finds work that timers should have started, until all slots have ended and the rush is over.
func (s *stage) watch(ctx context.Context, w *app.World, id int64, opensAt time.Time, q *stageQueue, answered *atomic.Int64, tell func(rehearsal.Progress)) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
		if err := q.timers.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("a sweep of a rehearsal failed", "rehearsal", id, "error", err)
		}
		p, ended, err := w.Stores.Rehearsals.Course(ctx, id)
		if err != nil {
			return err
		}
		p.Claims, p.Step = answered.Load(), rehearsal.Reminding
		now := app.Clock()
		switch {
		case now.After(opensAt):
			p.Step = rehearsal.Rushing
		case p.Fired == 0:
			p.Step = rehearsal.Waiting
		}
		tell(p)
		switch {
		case ended && now.After(opensAt):
			return nil
		case now.After(opensAt.Add(endsWithin)):
			return fmt.Errorf("the rehearsal has not ended %s after its opening", endsWithin)
		}
	}
}

// rush lets made-up customers claim from the opening on, in this process, by the path of claims that is not behind the gate.
func (s *stage) rush(ctx context.Context, w *app.World, r rehearsal.Rehearsal, opensAt time.Time, answered *atomic.Int64, report *rehearsal.Report) rehearsal.Result {
	curve, err := s.Stores.Rehearsals.Curve(ctx, r.Shop, int(rehearsal.RushTakes/time.Second))
	if err != nil {
		curve = nil
	}
	t, err := w.Stores.Templates.Template(ctx, r.ID)
	if err != nil {
		return rehearsal.Result{Failed: 1}
	}
	report.Stock = t.Stock
	seconds := rehearsal.Arrivals(max(report.Users, 2*t.Stock), curve, int64(forecast.ClaimsPerSecond(runtime.NumCPU())/2))
	for _, n := range seconds {
		report.Rate = max(report.Rate, n)
	}
	claims := couponsdb.NewClaims(w.DB, postgres.Grouping{})
	defer claims.Close()
	wait := time.NewTimer(time.Until(opensAt))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return rehearsal.Result{}
	}
	return rehearsal.Rush{Seconds: seconds, Answered: answered, Now: app.Clock, Claim: func(ctx context.Context, by user.ID) error {
		_, err := claims.Claim(ctx, claim.Request{ID: claim.NewID(rand.Uint64(), r.ID), TemplateID: r.ID, UserID: by, Origin: claim.ByTap, Key: claim.TapKey(by, "rush")})
		return err
	}}.Run(ctx)
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
