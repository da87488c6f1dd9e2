package delivery

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/pause"
	"dropbell/domain/user"
)

// A clearance decides right before each call of one run whether the call may begin, and which of
// its messages may go.
type clearance struct {
	*leasedBatch
	admission Admission
	refusals  refusals
	screening Screen // nil = all recipients may be sent to
}

// cleared prepares one chunk's call. Admission comes before the screen, because the screen's
// actions, such as granting a coupon, must not be done for messages that may not be sent. If
// refusals and the screen leave no message, the admission is given back. A chunk without messages
// needs no admission. The lease is checked last, right before the call.
func (p *clearance) cleared(ctx context.Context, c *calls, chunk *chunkResult) bool {
	if len(chunk.messages) == 0 || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	load := p.load(len(chunk.messages))
	if !p.admitted(ctx, c, load) {
		return false
	}
	goOn := ctx.Err() == nil && p.keepBack(ctx, c, chunk) && p.screen(ctx, c, chunk) && (len(chunk.messages) == 0 || p.lasts(ctx, c))
	if !goOn || len(chunk.messages) == 0 {
		p.admission.Unused(context.WithoutCancel(ctx), load)
	}
	return goOn
}

// load returns the load for which admission is requested.
func (p *clearance) load(messages int) Load {
	return Load{p.batch.Channel, messages, p.batch.Subject.Kind, p.batch.Owner, p.batch.Priority, p.batch.Subject.Place().Shop}
}

// keepBack removes the recipients of a chunk who have opted out, or whose address was suppressed,
// since the lease. It returns false if the refusals cannot be read: no message is sent on old
// refusals, and the batch is released for a second.
func (p *clearance) keepBack(ctx context.Context, c *calls, chunk *chunkResult) bool {
	refused, err := p.refusals.current(ctx, p.batch.Channel, p.clock)
	if err != nil {
		c.wait.Store(int64(time.Second))
		return false
	}
	chunk.messages = slices.DeleteFunc(chunk.messages, func(m Message) bool {
		reason := refused[m.To.ID]
		if reason != "" {
			chunk.verdicts = append(chunk.verdicts, Screening{UserID: m.To.ID, Reason: reason})
		}
		return reason != ""
	})
	return true
}

// screen calls the screen for the reachable recipients of one chunk, and removes the recipients
// that the screen keeps back. It returns false if the screen failed and no message may be sent
// yet.
func (p *clearance) screen(ctx context.Context, c *calls, chunk *chunkResult) bool {
	if p.screening == nil || len(chunk.messages) == 0 {
		return true
	}
	ids := make([]user.ID, len(chunk.messages))
	for i, m := range chunk.messages {
		ids[i] = m.To.ID
	}
	verdicts, err := p.screening.Before(ctx, ids, p.clock())
	if err != nil {
		c.wait.Store(int64(time.Second))
		return false
	}
	if len(verdicts) > 0 {
		chunk.verdicts = append(chunk.verdicts, verdicts...)
		kept := make(map[user.ID]bool, len(verdicts))
		for _, v := range verdicts {
			kept[v.UserID] = true
		}
		chunk.messages = slices.DeleteFunc(chunk.messages, func(m Message) bool { return kept[m.To.ID] })
	}
	return true
}

// admitted waits for admission. It postpones the run and returns false if the wait would exceed
// [patience], or if the run has lasted for [runFor].
func (p *clearance) admitted(ctx context.Context, c *calls, l Load) bool {
	for {
		if p.tired() {
			c.wait.Store(int64(time.Millisecond))
			return false
		}
		wait, _ := p.admission.Admit(ctx, l)
		if wait <= 0 {
			return true
		}
		if wait > patience {
			c.wait.Store(int64(wait))
			return false
		}
		if !pause.For(ctx, wait) {
			return false
		}
	}
}

// lasts is [leasedBatch.lasts]. If the lease cannot be renewed, the batch is released.
func (p *clearance) lasts(ctx context.Context, c *calls) bool {
	if p.leasedBatch.lasts(ctx) {
		return true
	}
	c.wait.Store(int64(time.Second))
	return false
}
