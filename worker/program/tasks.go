package program

import (
	"context"
	"strconv"

	"dropbell/adapters/asynq"
	"dropbell/domain/fault"
	"dropbell/domain/task"
	"dropbell/worker/shell"
)

// task returns what does a task of a room.
func (p *program) task(t shell.Task) asynq.Handler {
	if !t.Turn {
		return t.Do
	}
	return func(ctx context.Context, payload []byte) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.life, cancel)()
		if err := t.Do(ctx, payload); err != nil && p.life.Err() == nil {
			return err
		}
		return nil
	}
}

// slotTask does a task about a slot.
func slotTask(do func(context.Context, int64) error) asynq.Handler {
	return shell.Decoded(func(ctx context.Context, s task.SlotPayload) error { return do(ctx, s.SlotID) })
}

// watchTask is the watchdog's look at slots that were fired together.
func (p *program) watchTask(ctx context.Context, s task.SlotsPayload) error {
	ids := make([]int64, len(s.SlotIDs))
	for i, id := range s.SlotIDs {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return fault.ErrInvalid.Because("payload: %v", err)
		}
		ids[i] = n
	}
	return p.timers.Watch(ctx, ids...)
}

// campaignTask does a task about a campaign.
func campaignTask(do func(context.Context, int64) error) asynq.Handler {
	return shell.Decoded(func(ctx context.Context, c task.CampaignPayload) error { return do(ctx, c.CampaignID) })
}
