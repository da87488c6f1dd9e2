package program

import (
	"context"

	"dropbell/adapters/asynq"
	"dropbell/adapters/lookup"
	"dropbell/app"
	"dropbell/domain/event/hook"
	"dropbell/domain/seal"
	"dropbell/domain/task"
)

// wireListed makes reservation events name their users while any shop's webhook endpoint subscribes
// to them.
func (p *program) wireListed() {
	wants := &lookup.Wants{Load: p.Stores.Hooks.Wanted}
	p.reservations.Listed = func(ctx context.Context, cancelled bool) bool {
		if cancelled {
			return wants.Any(ctx, hook.ReservationCancelled)
		}
		return wants.Any(ctx, hook.ReservationMade)
	}
}

// newHooks makes the use case for webhook endpoints. A delivery without a queued task is found by
// the workers' sweep within a second.
func (p *program) newHooks() (*hook.Service, error) {
	box, err := seal.New(hook.SealPurpose, p.Config.EventsKeys...)
	if err != nil {
		return nil, err
	}
	queue, err := asynq.NewQueue(p.Config.RedisURL, p.Log)
	if err != nil {
		return nil, err
	}
	p.OnClose(queue.Close)
	return &hook.Service{Store: p.Stores.Hooks, Box: box, Insecure: p.Config.EventsInsecure, Now: app.Clock,
		Wake: func(ctx context.Context, endpointID int64) {
			if err := queue.Enqueue(ctx, task.SendHook(endpointID, app.Clock())); err != nil {
				p.Log.WarnContext(ctx, "webhooks wait for the sweep", "err", err)
			}
		}}, nil
}
