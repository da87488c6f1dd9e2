package program

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/beacon"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/fault"
	"dropbell/domain/forecast"
	"dropbell/domain/pause"
	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

// opening is the opening of the copy of a rehearsal: made-up customers come, and the drop's gate, doors, draw and waitlist do what they do
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
	result := o.rush(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.settles.Store(true)
	r := o.report
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
	if o.t.Waits() {
		return o.waitlist(ctx)
	}
	return nil
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

// until calls done until it returns true, for at most settlesWithin.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	for end := time.Now().Add(settlesWithin); ; {
		switch ok, err := done(); {
		case err != nil:
			return err
		case ok:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%s has not ended within %s", what, settlesWithin)
		}
		if !pause.For(ctx, lookAgain) {
			return ctx.Err()
		}
	}
}

// keepGate builds the gate of the copy and stores what it accepts, as a worker does, until ctx ends.
func (o *opening) keepGate(ctx context.Context) {
	keeper, writer, _ := o.gate()
	for looked := (time.Time{}); pause.For(ctx, lookAgain); {
		if time.Since(looked) > time.Second {
			if err := keeper.Reconcile(ctx, o.id); err != nil && fault.KindOf(err) != fault.Unavailable && ctx.Err() == nil {
				o.Log.Warn("the gate of a rehearsal is not kept", "rehearsal", o.id, "error", err)
			}
			looked = time.Now()
		}
		if err := o.written(ctx, writer.Step); err != nil && ctx.Err() == nil {
			o.Log.Warn("claims of a rehearsal are not stored", "rehearsal", o.id, "error", err)
		}
	}
}

func (o *opening) gate() (*gate.Keeper, *gate.Writer, redisgate.Shards) {
	shards := redisgate.NewShards(o.Redis)
	writer := &gate.Writer{Stream: redisgate.NewStream(o.Redis, "rehearsal-"+strconv.FormatInt(o.id, 10)), Recorder: o.w.Stores.GateRecorder}
	return &gate.Keeper{Store: o.w.Stores.Gates, Shards: shards, Writer: writer, Now: app.Clock, Divide: gate.Divider(o.Config.GateShards)}, writer, shards
}

// written calls step for each shard until no claim waits to be stored.
func (o *opening) written(ctx context.Context, step func(context.Context, int64, int) (int, error)) error {
	plan, err := o.w.Stores.Gates.Plan(ctx, o.id)
	for shard := range plan.Shards {
		for n := 1; n > 0 && err == nil; {
			n, err = step(ctx, o.id, shard)
		}
	}
	return err
}

// endGate stores the last claims that the gate accepted, and ends it: claims of the day that the copy is kept are decided in the database.
func (o *opening) endGate(ctx context.Context, stop func(), keeping *sync.WaitGroup) error {
	stop()
	keeping.Wait()
	begin := time.Now()
	_, writer, shards := o.gate()
	plan, err := o.w.Stores.Gates.Plan(ctx, o.id)
	if err != nil {
		return err
	}
	for shard := range plan.Shards {
		if err := shards.Fence(ctx, o.id, shard, plan.Epoch+1); err != nil {
			return err
		}
		if err := writer.WriteAll(ctx, o.id, shard, func(int) {}); err != nil {
			return err
		}
	}
	if err := o.w.Stores.Rehearsals.EndGate(ctx, o.id); err != nil {
		return err
	}
	stored, err := o.w.Stores.Rehearsals.Given(ctx, o.id, "")
	if err != nil {
		return err
	}
	o.report.AddGate(o.report.Issued, stored, time.Since(begin).Milliseconds())
	o.report.Issued = stored
	return shards.Remove(ctx, o.id)
}

// keepDraw takes the steps of the draw, as a worker does, until ctx ends.
func (o *opening) keepDraw(ctx context.Context) {
	operator := &draw.Operator{Store: o.w.Stores.Draws, Keys: o.draws, Judge: beacon.Judge{}, Gate: o.claims.Gate, Random: mathrand.Uint64}
	for pause.For(ctx, lookAgain) {
		if err := operator.Sweep(ctx); err != nil && ctx.Err() == nil {
			o.Log.Warn("the draw of a rehearsal does not go on", "rehearsal", o.id, "error", err)
		}
	}
}

// drawn waits until every winner has the coupon; winners who are to accept it do so.
func (o *opening) drawn(ctx context.Context) error {
	rows := o.w.Stores.Rehearsals
	entered, err := rows.Entered(ctx, o.id)
	if err != nil {
		return err
	}
	err = until(ctx, "the draw of the rehearsal", func() (bool, error) {
		d, err := o.w.Stores.Draws.Draw(ctx, o.id)
		if err == nil && d.State == draw.Offered {
			err = o.accept(ctx)
		}
		given, failed := rows.Given(ctx, o.id, claim.ByDraw)
		o.report.Issued = given
		return d.State == draw.Done, errors.Join(err, failed)
	})
	o.report.AddDraw(entered, o.report.Issued, max(0, time.Since(o.opens).Milliseconds()))
	return err
}

func (o *opening) accept(ctx context.Context) error {
	winners, err := o.w.Stores.Rehearsals.Winners(ctx, o.id)
	for _, by := range winners {
		if _, failed := o.drawing().Accept(ctx, by, o.id); failed != nil && fault.KindOf(failed) != fault.Unavailable {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// mostWait is how many made-up customers join the waitlist, and comesBack how many coupons come back for them.
const (
	mostWait  = 50
	comesBack = 5
)

// waitlist lets customers who came too late wait, raises the stock by a few coupons, and looks whom they reach. Entries of a draw that
// did not win wait already.
func (o *opening) waitlist(ctx context.Context) error {
	rows := o.w.Stores.Rehearsals
	service := &waitlist.Service{Store: o.waits, Templates: o.claims.Templates, Members: rehearsal.Crowd{}, Channels: delivery.ChannelSetOf(delivery.App), Erased: func(user.ID) bool { return false }, Now: app.Clock}
	for _, by := range o.late {
		if _, _, err := service.Join(ctx, waitlist.Wish{TemplateID: o.id, UserID: by}); err != nil && !errors.Is(err, claim.ErrLimit) && !errors.Is(err, waitlist.ErrStockLeft) {
			return err
		}
	}
	waiting, err := rows.Waiting(ctx, o.id, mostWait)
	if err != nil || len(waiting) == 0 {
		return err
	}
	back, begin := min(int64(comesBack), int64(len(waiting))), time.Now()
	if err := o.raise(ctx, back); err != nil {
		return err
	}
	filler := &waitlist.Filler{Store: o.waits, Queue: o.queue}
	var got int64
	err = until(ctx, "the waitlist of the rehearsal", func() (bool, error) {
		if err := filler.Sweep(ctx); err != nil {
			return false, err
		}
		if o.t.Waitlist == template.OfferNext {
			for _, by := range waiting {
				_, _ = service.Accept(ctx, o.id, by) // a user without an offer is refused
			}
		}
		var err error
		got, err = rows.Given(ctx, o.id, claim.ByWaitlist)
		return got >= back, err
	})
	o.report.AddWaitlist(int64(len(waiting)), got, back, time.Since(begin).Milliseconds())
	return err
}

// raise raises the stock of the copy, as staff do.
func (o *opening) raise(ctx context.Context, by int64) error {
	now, err := o.w.Stores.Templates.Template(ctx, o.id)
	if err != nil {
		return err
	}
	spec := now.Spec
	spec.Stock += by
	_, err = templatesOf(o.w).Edit(ctx, staff.System(), o.id, template.Edition{Version: now.Version, Spec: spec, Reason: "rehearsal"})
	return err
}
