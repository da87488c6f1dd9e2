package program

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"dropbell/adapters/asynq"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/task"
)

func (p *program) wireTasks() (err error) {
	p.servers, err = asynq.NewServers(asynq.ServersConfig{RedisURL: p.Config.RedisURL, Queues: p.queues(), Logger: p.Log,
		ShutdownTimeout: drainFor, Done: p.metrics.taskDone, Trace: p.Tracing.Task})
	if err != nil {
		return err
	}
	p.servers.Handle(task.FireSlot, slotTask(p.timers.Fire))
	p.servers.Handle(task.Watch, slotTask(p.timers.Watch))
	p.servers.Handle(task.Announcing, p.announceTask)
	p.servers.Handle(task.Deliver, p.deliverTask)
	p.wireJobs()
	p.wireCoupons()
	p.campaignTasks()
	p.servers.Handle(task.Test, p.testTask)
	p.servers.Handle(task.CleanUp, func(ctx context.Context, _ []byte) error { return p.cleanUp(ctx) })
	p.servers.Handle(task.Recount, func(ctx context.Context, _ []byte) error {
		return errors.Join(dropsdb.NewCounters(p.DB).Recount(ctx, 24*time.Hour), deliverydb.NewDeadLetters(p.DB).RecountDeadLetters(ctx))
	})
	return nil
}

func slotTask(do func(context.Context, int64) error) asynq.Handler {
	return func(ctx context.Context, payload []byte) error {
		var s task.SlotPayload
		if err := json.Unmarshal(payload, &s); err != nil {
			return fault.ErrInvalid.Because("payload: %v", err)
		}
		return do(ctx, s.SlotID)
	}
}

func (p *program) announceTask(ctx context.Context, payload []byte) error {
	var a task.AnnouncementPayload
	if err := json.Unmarshal(payload, &a); err != nil {
		return fault.ErrInvalid.Because("payload: %v", err)
	}
	return p.announcer.Cut(ctx, a.AnnouncementID)
}

func (p *program) deliverTask(ctx context.Context, payload []byte) error {
	var b task.BatchPayload
	if err := json.Unmarshal(payload, &b); err != nil {
		return fault.ErrInvalid.Because("payload: %v", err)
	}
	c, err := delivery.ParseChannel(b.Channel)
	if err != nil {
		return err
	}
	// Shutdown stops the drain after the batch in hand, whose calls in flight
	// are left to finish; the queue's own context ends only when time is up.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	if err := p.delivery.Drain(ctx, c); err != nil && p.life.Err() == nil {
		return err
	}
	return nil
}
