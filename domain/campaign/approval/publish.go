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

// Publish publishes a draft, or requests approval where the shop requires it. Of several equal
// campaigns it publishes only one. If shown is given, it must still be the number of users above
// which approval is required; otherwise nothing changes, and Publish returns a [fault.Fields].
func (s *Service) Publish(ctx context.Context, by staff.Actor, old campaign.Campaign, reason string, shown *int64) (campaign.Campaign, error) {
	next, err := s.Publisher.Publishable(ctx, old)
	if err != nil {
		return old, err
	}
	next.PublishedBy = by.Label + " " + by.Name
	ch := campaign.Change{Campaign: next, Entry: entry(by, "campaign.publish", old, reason, old.State, next.State)}
	above, err := campaign.ApprovalAbove(ctx, s.Store, old.Shop)
	if err != nil {
		return old, err
	}
	if err := checkShown(shown, above); err != nil {
		return old, err
	}
	// The review comes before the checks: the publication uses the rule read here, so that a rule
	// that is changed after the checks is not used.
	r, err := s.review(ctx, old)
	if err != nil {
		return old, err
	}
	if err := campaign.CheckShops(ctx, s.Store, r.Now); err != nil {
		return old, err
	}
	if ch.Rule = r.Now.Rule; above == 0 {
		if ch.Rule != nil {
			ch.Rule.Members = nil // how many a list has matters to approvals only
		}
		return s.Publisher.Release(ctx, ch)
	}
	reach, err := s.reach(ctx, old)
	if err != nil {
		return old, err
	}
	switch {
	case reach.Users <= above:
		return s.Publisher.Release(ctx, ch)
	case r.Open == nil, r.Lapsed() && concerns(*r.Open, by, old):
		return s.ask(ctx, by, old, reach, reason)
	case r.Lapsed():
		return old, ErrLapsed
	}
	return s.consent(ctx, by, old, next, *r.Open, reason)
}

func checkShown(shown *int64, above int64) error {
	e := &fault.Fields{}
	switch {
	case shown == nil || *shown == above:
	case above == 0:
		e.Add("approval_above", "rule.approval_lifted", "is any number by now; look at what happens and confirm again")
	default:
		e.Add("approval_above", "rule.approval_changed", "is %d by now; look at what happens and confirm again", above)
	}
	return e.Err()
}

// reach returns about how many users the campaign reaches now.
func (s *Service) reach(ctx context.Context, c campaign.Campaign) (campaign.Reach, error) {
	n, exact, err := s.Store.Estimate(ctx, c.Audience)
	return campaign.Reach{Users: n, Exact: exact, At: s.Publisher.Now()}, err
}

// ask stores a request for approval of the campaign as it is now.
func (s *Service) ask(ctx context.Context, by staff.Actor, old campaign.Campaign, reach campaign.Reach, reason string) (campaign.Campaign, error) {
	next, now := old, s.Publisher.Now()
	next.ApprovalAskedAt, next.ApprovedBy = &now, by.Label
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Save(ctx, campaign.Change{Campaign: next, Event: event.CampaignChanged,
		Ask:   &campaign.Request{Snapshot: campaign.Snapshot{Spec: old.Spec}, Reach: reach, AskedBy: by.Label, AskedName: by.Name, Reason: reason},
		Entry: entry(by, "campaign.ask", old, reason, nil, campaign.Audited(old.Spec))})
}

// consent publishes the requested campaign. The store checks again that the campaign and its rule
// still are as the request describes them.
func (s *Service) consent(ctx context.Context, by staff.Actor, old, next campaign.Campaign, r campaign.Request, reason string) (campaign.Campaign, error) {
	if concerns(r, by, old) {
		return old, ErrApproval
	}
	next.ApprovalAskedAt, next.ApprovedBy, next.PublishedBy = nil, by.Label+" "+by.Name, r.AskedBy+" "+r.AskedName
	c, err := s.Publisher.Release(ctx, campaign.Change{Campaign: next, Rule: r.Rule, Decision: &campaign.Decision{Request: r.ID, State: campaign.RequestApproved, Reason: reason},
		Entry: entry(by, "campaign.approve", old, reason, old.State, next.State)})
	if errors.Is(err, fault.ErrStale) { // the campaign was changed between reading and saving
		err = ErrLapsed
	}
	return c, err
}
