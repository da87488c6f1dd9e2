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
	// controlLife is how old the cached state and rate of a campaign, and the cached answer
	// about more urgent work, may be. A pause or a new rate takes effect within this time.
	controlLife = 300 * time.Millisecond
	// askAgain bounds one wait for a campaign's turn, so that a pause of the campaign or a due
	// reminder is noticed while the batch waits.
	askAgain = 250 * time.Millisecond
	// yieldFor is how long a batch is put back while more urgent batches are ready. It is longer
	// than a delivery run waits while it holds the lease of its batch.
	yieldFor = 2500 * time.Millisecond
	// campaignsKept bounds how many campaigns' controls are remembered.
	campaignsKept = 1000
)

// Limits decide when messages of campaigns may go out: while the campaign runs, at the
// campaign's own rate, and after all more urgent batches of the channel.
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

// Admit returns a wait of zero if the load may be sent, and then taken, which gives back the
// load's share of the campaign's budget. Call taken if another limit refuses the load.
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

// Unused returns the load's share to its campaign's budget.
func (g *Limits) Unused(ctx context.Context, l delivery.Load) {
	g.pacer.ReturnCampaign(ctx, l.Channel, l.Owner, l.Messages, g.control(ctx, l.Owner).rate)
}

// control returns the campaign's state and rate, as staff have set them. While they cannot be
// read, the last known state and rate stay in force.
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
