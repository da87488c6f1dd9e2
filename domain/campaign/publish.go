package campaign

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Approvals publishes campaigns and lifts their holds where no second member has to approve; see
// package approval.
type Approvals interface {
	// Publish publishes a draft, or requests approval where the shop requires it. If shown is given,
	// it must still be the number of users above which approval is required.
	Publish(ctx context.Context, by staff.Actor, draft Campaign, reason string, shown *int64) (Campaign, error)
	// Unhold returns a held campaign without its hold, or the refusal while it needs approval.
	Unhold(ctx context.Context, c Campaign) (Campaign, error)
	// Needed reports whether the campaign, as it is now, needs approval.
	Needed(ctx context.Context, by staff.Actor, id int64) (bool, error)
}

// Publish is [Service.Do] for a form that showed how many users one member may send to without
// approval (shown; 0 = any number). If that number has changed since, Publish changes nothing and
// returns a [fault.Fields].
func (s *Service) Publish(ctx context.Context, by staff.Actor, id, version, shown int64, reason string) (Campaign, error) {
	return s.do(ctx, by, id, version, Publishing, reason, &shown)
}

// Lock admits one of several equal campaigns before the store is asked.
type Lock interface {
	// Take reports whether campaign id holds the lock of key now: the lock was free, or the
	// campaign held it already.
	Take(ctx context.Context, key [32]byte, id int64, lasting time.Duration) (bool, error)
	// Release gives the lock back if campaign id holds it.
	Release(ctx context.Context, key [32]byte, id int64) error
}

// A Publisher checks and stores publications, without regard to approval.
type Publisher struct {
	Store interface {
		// Save is [Store.Save].
		Save(ctx context.Context, c Change) (Campaign, error)
	}
	Lock      Lock
	Templates Templates
	Channels  delivery.Available
	Now       func() time.Time
	DropPage  DropPage
}

// Publishable returns the campaign as published, or why it cannot be.
func (p Publisher) Publishable(ctx context.Context, old Campaign) (Campaign, error) {
	next, err := old.step(Publishing, p.Now())
	if err != nil {
		return old, err
	}
	if err := old.checkPublication(p.Now(), p.Channels); err != nil {
		return old, err
	}
	return next, p.checkTemplates(ctx, old.Spec)
}

// Release stores a publication. The lock refuses most equal campaigns before they reach the
// database. The database refuses all of them, also if the lock has been lost.
func (p Publisher) Release(ctx context.Context, ch Change) (Campaign, error) {
	ch.Step, ch.Event = Publishing, event.CampaignPublished
	key := ch.Campaign.Fingerprint()
	if mine, err := p.Lock.Take(ctx, key, ch.Campaign.ID, RepublishAfter); err == nil && !mine {
		return ch.Campaign, ErrPublished
	}
	writing, cancel := detach.Context(ctx)
	defer cancel()
	saved, err := p.Store.Save(writing, ch)
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Invalid {
		// The campaign is certainly not published; after any other failure it may be. The write
		// may have used up the caller's time, and a lock that is not released refuses the
		// campaign for half an hour, so the release has a context with its own time.
		releasing, released := detach.Context(context.WithoutCancel(ctx))
		defer released()
		_ = p.Lock.Release(releasing, key, ch.Campaign.ID)
	}
	return saved, err
}

// checkTemplates refuses to grant coupons that cannot be had, and texts with a link that leads
// nowhere.
func (p Publisher) checkTemplates(ctx context.Context, spec Spec) error {
	e := &fault.Fields{}
	claimURL := ""
	if id := spec.TemplateID(); id != 0 {
		t, err := p.Templates.Template(ctx, id)
		if err != nil {
			return err
		}
		claimURL = t.ClaimAddress()
		switch state := t.State(p.Now()); {
		case spec.GrantTemplate == 0:
		case state == template.Draft, state == template.Closed, state == template.Cancelled:
			e.Add("grant_template_id", "rule.grant_state", "the template is %s; its coupons cannot be given away", state)
		case t.OpeningMode.Drawn():
			e.Add("grant_template_id", "rule.grant_drawn", "a draw decides who gets these coupons; choose another drop")
		}
	}
	spec.checkLink(e, claimURL, p.DropPage)
	return e.Err()
}
