package approval

import (
	"context"
	"errors"

	"dropbell/domain/campaign"
	"dropbell/domain/detach"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// Unhold returns a held campaign without its hold if it no longer needs approval, because the limit
// was raised or removed. Otherwise it returns [ErrApproval]. It stores nothing.
func (s *Service) Unhold(ctx context.Context, c campaign.Campaign) (campaign.Campaign, error) {
	list, err := s.Store.Requests(ctx, c.ID, 1)
	if err != nil {
		return c, err
	}
	a, err := campaign.ReachLimitOf(ctx, s.Store, c)
	if err != nil {
		return c, err
	}
	if len(list) > 0 && a.Exceeded(list[0].Reach.Users) {
		return c, ErrApproval.Because("the audience has grown to %d users, and %d may be reached; a second person has to approve that first", list[0].Reach.Users, a.Most()).
			Told("fault.campaign_held")
	}
	return c.Released(), nil
}

// consentToSize approves a held campaign. Its cutting continues after the last stored user.
func (s *Service) consentToSize(ctx context.Context, by staff.Actor, r Review, reason string) (campaign.Campaign, error) {
	old := r.Campaign
	if concerns(*r.Open, by, old) {
		return old, ErrApproval
	}
	if r.Late(s.Publisher.Now()) {
		e := &fault.Fields{}
		e.Add("ends_at", "rule.ends_ahead", "must lie in the future")
		return old, e
	}
	next := old.Released()
	next.State, next.ApprovedBy = campaign.Running, by.Label+" "+by.Name
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	c, err := s.Store.Save(ctx, campaign.Change{Campaign: next, Step: campaign.Resuming, Event: event.CampaignChanged,
		Decision: &campaign.Decision{Request: r.Open.ID, State: campaign.RequestApproved, Reason: reason},
		Entry:    entry(by, "campaign.approve", old, reason, old.State, next.State)})
	if errors.Is(err, fault.ErrStale) {
		err = ErrLapsed
	}
	return c, err
}

// askAgain requests approval of a held campaign whose request was refused or withdrawn.
func (s *Service) askAgain(ctx context.Context, by staff.Actor, r Review, reason string) (campaign.Campaign, error) {
	switch {
	case r.Open != nil:
		return r.Campaign, ErrApproval
	case r.Before == nil || !r.Needed():
		return r.Campaign, ErrNotAsked.Because("the campaign needs nobody's approval; resume it")
	}
	return s.ask(ctx, by, r.Campaign, r.Before.Reach, reason)
}

// reviewSize completes the review of a held campaign. Its audience is counted by the rule at
// publication, not estimated by the present rule of the segment.
func (s *Service) reviewSize(ctx context.Context, r Review) (Review, error) {
	a, err := campaign.ReachLimitOf(ctx, s.Store, r.Campaign)
	r.Above = a.Most()
	if last := r.Latest(); last != nil {
		r.Reach = &last.Reach
	}
	return r, err
}
