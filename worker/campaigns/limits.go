package campaigns

import (
	"context"
	"sync"
	"time"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/redis"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

const (
	// pausedFor is how long a paused campaign's batches are put off at a time.
	pausedFor = 3 * time.Second
	// controlLife is how old what is known of a campaign and of more urgent
	// work may be: a pause or a new rate takes effect within it.
	controlLife = 300 * time.Millisecond
	// askAgain bounds one wait for a campaign's turn, so that a pause or a
	// reminder is noticed while waiting.
	askAgain = 250 * time.Millisecond
	// yieldFor is how long a batch is given back for; longer than a run waits
	// with its lease.
	yieldFor = 2500 * time.Millisecond
	// campaignsKept bounds how many campaigns' controls are remembered.
	campaignsKept = 1000
)

// Limits decide when messages of campaigns may go out: while the
// campaign runs, at its own rate, and after everything more urgent.
type Limits struct {
	store campaignsdb.Campaigns
	pacer *redis.Pacer

	mu       sync.Mutex
	controls map[int64]campaignControl
	urgent   [delivery.Channels]urgency
}

type campaignControl struct {
	state  campaign.State
	rate   int
	readAt time.Time
}

type urgency struct {
	campaignsdb.Urgent
	readAt time.Time
}

// NewLimits returns the limits of the campaigns of the store.
func NewLimits(store campaignsdb.Campaigns, pacer *redis.Pacer) *Limits {
	return &Limits{store: store, pacer: pacer, controls: map[int64]campaignControl{}}
}

// Admit returns zero if the load may pass and what it took of the campaign's
// budget, which is to be given back if something else refuses it.
func (g *Limits) Admit(ctx context.Context, l delivery.Load, channelRate int) (wait time.Duration, reason string, taken func()) {
	taken = func() {}
	c := g.control(ctx, l.Owner)
	if c.state == campaign.Paused {
		return pausedFor, delivery.ReasonCampaignPaused, taken
	}
	switch u := g.moreUrgent(ctx, l); {
	case u.Ready: // their batches need this worker
		return yieldFor, delivery.ReasonMoreUrgent, taken
	case u.Running && channelRate > 0: // they need the channel's rate
		return askAgain, delivery.ReasonMoreUrgent, taken
	}
	if c.rate == 0 {
		return 0, "", taken
	}
	if wait := g.pacer.AdmitCampaign(ctx, l.Channel, l.Owner, l.Messages, c.rate); wait > 0 {
		if wait < yieldFor {
			wait = min(wait, askAgain)
		}
		return wait, delivery.ReasonThrottled, taken
	}
	return 0, "", func() { g.Unused(ctx, l) }
}

// Unused gives back what the load took of its campaign's budget.
func (g *Limits) Unused(ctx context.Context, l delivery.Load) {
	g.pacer.ReturnCampaign(ctx, l.Channel, l.Owner, l.Messages, g.control(ctx, l.Owner).rate)
}

// control returns what staff decided about the campaign; when it cannot be
// read the last known stays in force.
func (g *Limits) control(ctx context.Context, id int64) campaignControl {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.controls[id]
	if time.Since(c.readAt) <= controlLife {
		return c
	}
	if state, rate, err := g.store.Control(ctx, id); err == nil {
		c.state, c.rate = state, rate
	}
	c.readAt = time.Now()
	if len(g.controls) >= campaignsKept {
		clear(g.controls)
	}
	g.controls[id] = c
	return c
}

func (g *Limits) moreUrgent(ctx context.Context, l delivery.Load) campaignsdb.Urgent {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := &g.urgent[l.Channel]
	if time.Since(u.readAt) > controlLife {
		if fresh, err := g.store.MoreUrgent(ctx, l.Channel, l.Priority); err == nil {
			u.Urgent = fresh
		}
		u.readAt = time.Now()
	}
	return u.Urgent
}
