package program

import (
	"context"
	"errors"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/task"
	"dropbell/domain/timer"
)

// sweep finds what timers and tasks should have done; every worker does it,
// so that losing Redis or a worker costs a second or two.
func (p *program) sweep(ctx context.Context) error {
	if err := p.timers.Sweep(ctx); err != nil {
		return err
	}
	if err := p.announcer.Sweep(ctx); err != nil {
		return err
	}
	if err := p.launcher.Sweep(ctx); err != nil {
		return err
	}
	_, err := p.template.CloseEnded(ctx, 100)
	return err
}

// keepTimers returns the job that queues timers again after Redis lost them.
func (p *program) keepTimers() func(context.Context) error {
	k := &timer.Keeper{Store: p.Stores.Timers, Queue: p.queue, Armed: func(timers int) {
		p.Log.Info("timers were queued again: Redis is new, was emptied, or has started anew", "timers", timers)
	}}
	return k.Keep
}

// scheduleHouse queues the periodic chores; several workers queue them once.
func (p *program) scheduleHouse(ctx context.Context) error {
	bucket := app.Clock().Truncate(houseEvery).Format(time.RFC3339)
	return p.queue.Enqueue(ctx, task.House(task.CleanUp, bucket), task.House(task.Recount, bucket))
}

// eventLife is how long handled events stay on the wire for late readers.
const eventLife = time.Hour

// cleanUp removes expired data.
func (p *program) cleanUp(ctx context.Context) error {
	keep := workdb.Retention{Delivery: p.Config.RetainFor, Audit: p.Config.RetainAudit, Coupons: p.Config.RetainCoupons,
		Idempotency: workdb.IdempotencyKeyLife, Events: 7 * 24 * time.Hour, Jobs: 30 * 24 * time.Hour, Uploads: 7 * 24 * time.Hour, Hooks: p.Config.RetainHooks}
	// Redis first: trimming its memory does not wait for trimming a disk. No part keeps
	// another one from its work.
	trimmed, err1 := p.bus.Trim(ctx, eventLife)
	pruned, err2 := p.queue.PruneArchive(ctx, 7*24*time.Hour)
	n, err3 := p.Stores.Housekeeping.Clean(ctx, keep, 0)
	p.Log.Info("cleaned up", "rows", n, "events", trimmed, "archived_tasks", pruned)
	return errors.Join(err1, err2, err3)
}
