package program

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"sync"
	"time"

	"dropbell/adapters/beacon"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/fault"
	"dropbell/domain/pause"
	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

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

// keepDraw takes the steps of the draw and tells its result, as a worker does, until ctx ends.
func (o *opening) keepDraw(ctx context.Context) {
	operator := &draw.Operator{Store: o.w.Stores.Draws, Keys: o.draws, Judge: beacon.Judge{}, Gate: o.claims.Gate, Random: mathrand.Uint64}
	for pause.For(ctx, lookAgain) {
		if err := errors.Join(operator.Sweep(ctx), o.queue.announcer.Sweep(ctx)); err != nil && ctx.Err() == nil {
			o.Log.Warn("the draw of a rehearsal does not go on", "rehearsal", o.id, "error", err)
		}
	}
}

// drawn waits until every winner has the coupon and all entries were told of the result; winners who are to accept the coupon do so.
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
	if err != nil {
		return err
	}
	var due, sent int64
	err = until(ctx, "the messages about the draw of the rehearsal", func() (all bool, err error) {
		due, sent, all, err = rows.Told(ctx, o.id)
		return all, err
	})
	o.report.AddResult(entered, due, sent)
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

// forShops is by how many coupons the stock of a copy is raised after the report.
const forShops = 100

// forShops gives the copy coupons with which shops try their checkout: made-up customers have taken all, and those who still wait
// leave, because they would come first.
func (o *opening) forShops(ctx context.Context) error {
	waiting, err := o.w.Stores.Rehearsals.Waiting(ctx, o.id, mostWait)
	if err != nil {
		return err
	}
	for _, by := range waiting {
		if _, err := o.waits.Leave(ctx, o.id, by); err != nil {
			return err
		}
	}
	return o.raise(ctx, forShops)
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
