package program

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/forecast"
	"dropbell/domain/pause"
	"dropbell/domain/rehearsal"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// opening is the opening of the copy of a rehearsal: made-up customers come, and the drop's gate, doors, protection, draw and waitlist do what they do
// in an evening, with the code of real drops on the tables of the copy.
type opening struct {
	*stage
	w      *app.World
	id     int64
	t      template.Template // the copy
	real   template.Template // the drop itself
	opens  time.Time         // by this machine's clock
	report *rehearsal.Report
	queue  *stageQueue
	curve  []int64 // of the shop's last drop

	claims  app.WorldClaims
	guard   *guard // nil without protection
	entries *dropsdb.Entries
	waits   *couponsdb.Waitlists
	draws   draw.Keys

	tally   rehearsal.Tally
	comers  atomic.Int64
	settles atomic.Bool

	mu   sync.Mutex
	late []user.ID // customers who came when all coupons were given
}

// opening prepares the opening. Close it.
func (s *stage) opening(ctx context.Context, w *app.World, r rehearsal.Rehearsal, opens time.Time, q *stageQueue, report *rehearsal.Report) (o *opening, err error) {
	o = &opening{stage: s, w: w, id: r.ID, opens: opens, report: report, queue: q}
	if o.curve, err = s.Stores.Rehearsals.Curve(ctx, r.Shop, int(rehearsal.RushTakes/time.Second)); err != nil {
		return nil, err
	}
	if o.real, err = s.Stores.Templates.Template(ctx, r.TemplateID); err != nil {
		return nil, err
	}
	if o.t, err = w.Stores.Templates.Template(ctx, r.ID); err != nil {
		return nil, err
	}
	report.Stock = o.t.Stock
	if o.real.Protected() {
		o.guard = newGuard(o.t, o.real.Protection)
	}
	if o.draws, err = draw.NewKeys(rand.Text()); err != nil { // a key of this rehearsal alone
		return nil, err
	}
	if o.claims, err = w.Claims(s.Redis, postgres.Grouping{}); err != nil {
		return nil, err
	}
	o.entries, o.waits = dropsdb.NewEntries(w.DB, postgres.Grouping{}), couponsdb.NewWaitlists(w.DB, postgres.Grouping{})
	return o, nil
}

func (o *opening) close() {
	o.waits.Close()
	o.entries.Close()
	o.claims.Durable.Close()
}

// progress completes what is shown while the rehearsal runs.
func (o *opening) progress(p *rehearsal.Progress, over bool) {
	p.Claims, p.Came, p.Comers, p.Step = o.tally.Answered.Load(), o.tally.Came.Load(), o.comers.Load(), rehearsal.Reminding
	switch {
	case over || o.settles.Load():
		p.Step = rehearsal.Counting
	case p.Came > 0 || time.Since(o.opens) > 0:
		p.Step = rehearsal.Rushing
	case p.Fired == 0:
		p.Step = rehearsal.Waiting
	}
}

// run lets the customers come, and then lets all of the drop's parts do their work.
func (o *opening) run(ctx context.Context) error {
	background, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	if o.t.ClaimMode == template.Gate {
		all.Go(func() { o.keepGate(background) })
	}
	if o.t.OpeningMode.Drawn() {
		all.Go(func() { o.keepDraw(background) })
	}
	r := o.report
	if o.guard != nil {
		if err := o.guard.solve(ctx); err != nil {
			return err
		}
	}
	result := o.rush(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.settles.Store(true)
	if o.guard != nil {
		r.AddPasses(o.guard.came.Load(), o.guard.refused.Load(), o.guard.took.Milliseconds())
	}
	r.Claims, r.Issued, r.Failed, r.Twice = result.Came(), result.Issued+result.Again, result.Failed, result.Twice
	r.ClaimP50, r.ClaimP99 = result.Quantile(0.5).Milliseconds(), result.Quantile(0.99).Milliseconds()
	if o.t.OpeningMode.Drawn() {
		if err := o.drawn(ctx); err != nil {
			return err
		}
	}
	if o.t.ClaimMode == template.Gate {
		if err := o.endGate(ctx, stop, &all); err != nil {
			return err
		}
	}
	var err error
	if r.SoldOut, err = o.w.Stores.Rehearsals.SoldOut(ctx, o.id); err == nil && o.t.Waits() {
		err = o.waitlist(ctx)
	}
	return err
}

// comers are the customers who come at one instant: all of them, or those of a door.
type comers struct {
	place    int // of the door; 0 = of no door
	name     string
	strange  bool // they come through no door although the drop has some
	at       time.Time
	permille int64
}

// groups returns the customers by the door through which they come.
func (o *opening) groups() []comers {
	if len(o.t.Doors) == 0 {
		return []comers{{at: o.opens, permille: 1000}}
	}
	left := int64(1000)
	var list []comers
	for i, share := range rehearsal.DoorShares(o.t.Doors) {
		left -= int64(share)
		list = append(list, comers{place: i + 1, name: o.t.Doors[i].Name, at: o.opens.Add(o.t.OpensFor(i + 1).Sub(o.t.OpensAt)), permille: int64(share)})
	}
	return append(list, comers{strange: true, at: o.opens, permille: left})
}

const (
	// entriesBefore is how long before the opening the entries of a draw begin to come: they close at the opening.
	entriesBefore = rehearsal.RushTakes + 3*time.Second
	// settlesWithin is how long the parts of the drop have after the last customer.
	settlesWithin = time.Minute
	// lookAgain is how often work is looked for that in an evening workers are called for.
	lookAgain = 100 * time.Millisecond
)

// rush lets all made-up customers come.
func (o *opening) rush(ctx context.Context) (sum rehearsal.Result) {
	var mu sync.Mutex
	var all sync.WaitGroup
	groups := o.groups()
	results := make([]rehearsal.Result, len(groups))
	most := int64(forecast.ClaimsPerSecond(runtime.NumCPU()) / 2)
	for i, g := range groups {
		if o.t.OpeningMode.Drawn() {
			g.at = o.opens.Add(-entriesBefore)
		}
		expected := rehearsal.Arrivals(max(o.report.Reserved, 2*o.real.Stock)*g.permille/1000, o.curve, 1<<40)
		if len(groups) == 1 && !o.t.OpeningMode.Drawn() {
			o.report.ExpectedSoldOut = rehearsal.SoldOutAfter(expected, o.real.Stock).Milliseconds()
		}
		seconds := rehearsal.Arrivals(max(o.report.Users, 2*o.t.Stock)*g.permille/1000, o.curve, most)
		for n, count := range seconds {
			o.report.Rate, o.report.Expected = max(o.report.Rate, count), max(o.report.Expected, expected[n])
			o.comers.Add(count)
		}
		belongs := func(by user.ID) bool { return rehearsal.Crowd{}.Known(ctx, &o.t, by) == g.place }
		all.Go(func() {
			if !pause.For(ctx, time.Until(g.at)) {
				return
			}
			results[i] = rehearsal.Rush{Seconds: seconds, Next: rehearsal.Customers(rehearsal.FirstUser, belongs), Tally: &o.tally, Now: app.Clock, Claim: o.come}.Run(ctx)
			mu.Lock()
			defer mu.Unlock()
			sum = sum.Plus(results[i])
		})
	}
	all.Wait()
	o.report.Rehearsed = o.report.Rate * 1000 / max(1, o.report.SharePermille)
	for i, g := range groups {
		switch {
		case g.strange && g.permille > 0:
			o.report.AddStrangers(results[i])
		case g.place > 0:
			o.report.AddDoor(g.name, results[i])
		}
	}
	return sum
}

// come is one tap of a made-up customer.
func (o *opening) come(ctx context.Context, by user.ID, tap int) error {
	if o.guard != nil {
		if err := o.guard.admit(ctx, by, tap); err != nil {
			return err
		}
	}
	if o.t.OpeningMode.Drawn() {
		_, _, err := o.drawing().Enter(ctx, draw.Wish{TemplateID: o.id, UserID: by})
		return err
	}
	err := o.claims.Tap(ctx, o.id, by, "rush"+strconv.Itoa(tap))
	if errors.Is(err, claim.ErrSoldOut) && tap == 1 {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.late) < mostWait {
			o.late = append(o.late, by)
		}
	}
	return err
}

func (o *opening) drawing() *draw.Service {
	return &draw.Service{Store: o.entries, Templates: o.claims.Templates, Keys: o.draws, Members: rehearsal.Crowd{}, Channels: delivery.ChannelSetOf(delivery.App), Gate: o.claims.Gate, Random: mathrand.Uint64}
}
