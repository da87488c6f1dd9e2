package approval

import (
	"context"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
)

// A Review is the data for an approver's decision.
type Review struct {
	Campaign campaign.Campaign
	Now      campaign.Snapshot
	// Reach is the reach of the audience now; nil if it cannot be estimated quickly.
	Reach *campaign.Reach
	// Open is the request without a decision, nil if there is none.
	Open *campaign.Request
	// Before is the latest request that was decided or has lapsed; nil if there is none.
	Before *campaign.Request
	// Above is how many users one member may send to without approval; 0 = any number.
	Above int64
}

// Needed reports whether the campaign, as it is now, needs approval. An unknown
// reach counts as larger than any limit.
func (r Review) Needed() bool { return r.Above > 0 && (r.Reach == nil || r.Reach.Users > r.Above) }

// Late reports whether it is too late to send anything, with or without approval.
func (r Review) Late(now time.Time) bool { return !r.Campaign.EndsAt.After(now) }

// Lapsed reports whether the campaign differs from the open request. A held campaign never
// lapses: after publication only the rate can change, which needs no approval.
func (r Review) Lapsed() bool {
	return r.Open != nil && r.Campaign.HeldAt == nil && len(r.Open.Differences(r.Now)) > 0
}

// Latest returns the open request. Without an open request it returns [Review.Before], which may
// be nil.
func (r Review) Latest() *campaign.Request {
	if r.Open != nil {
		return r.Open
	}
	return r.Before
}

// Users returns the present reach, or the reach of the latest request if the present reach is
// unknown.
func (r Review) Users() int64 {
	switch last := r.Latest(); {
	case r.Reach != nil:
		return r.Reach.Users
	case last != nil:
		return last.Reach.Users
	}
	return 0
}

// CheckReach returns the error of [campaign.TypedReach.Check] if approving the request sends the
// campaign to everybody. Where the request cannot be approved it returns nil:
// [Service.Approve] says why.
func (r Review) CheckReach(by staff.Actor, request int64, t campaign.TypedReach, now time.Time) error {
	if r.Now.Audience.Kind != campaign.Everybody || !r.MayDecide(by) || r.Open.ID != request || r.Lapsed() || r.Late(now) {
		return nil
	}
	return t.Check(r.Users())
}

// Waits reports whether approval can be requested or decided: the campaign is a draft or is held.
func (r Review) Waits() bool { return r.Campaign.State == campaign.Draft || r.Campaign.HeldAt != nil }

// MayDecide reports whether by may approve or refuse the open request.
func (r Review) MayDecide(by staff.Actor) bool {
	return r.Open != nil && campaign.May(by, staff.ManageCampaigns, r.Campaign.Shop) == nil && !concerns(*r.Open, by, r.Campaign)
}

// MayWithdraw reports whether by can take the open request back.
func (r Review) MayWithdraw(by staff.Actor) bool {
	return r.Open != nil && campaign.May(by, staff.ManageCampaigns, r.Campaign.Shop) == nil && concerns(*r.Open, by, r.Campaign)
}

// MayAsk reports whether by may request approval again. Only members who could not approve may:
// if others requested approval, no approver might be left.
func (r Review) MayAsk(by staff.Actor) bool {
	last := r.Before
	if r.Open != nil {
		last = r.Open
	}
	return r.Waits() && (r.Open == nil || r.Lapsed()) && campaign.May(by, staff.ManageCampaigns, r.Campaign.Shop) == nil &&
		(last == nil || concerns(*last, by, r.Campaign))
}

// Base returns the request with which the campaign is compared to show its changes: the open
// request if it has lapsed, otherwise the request before. It is nil at the first request.
func (r Review) Base() *campaign.Request {
	if r.Lapsed() {
		return r.Open
	}
	return r.Before
}

// concerns reports whether by requested approval or created the campaign. Such a member may not
// approve it.
func concerns(r campaign.Request, by staff.Actor, c campaign.Campaign) bool {
	return r.AskedBy == by.Label || c.Creator == by.Label
}

// Review returns the data for an approver's decision: the campaign as it is now, as it was when
// approval was requested, and as it was at the request before. It returns
// [campaign.ErrNotFound].
func (s *Service) Review(ctx context.Context, by staff.Actor, id int64) (Review, error) {
	c, err := s.Store.Campaign(ctx, id)
	if err == nil {
		err = by.May(staff.View, c.Shop)
	}
	if err != nil {
		return Review{}, err
	}
	r, err := s.review(ctx, c)
	if err != nil {
		return r, err
	}
	if c.HeldAt != nil {
		return s.reviewSize(ctx, r)
	}
	if r.Above, err = campaign.ApprovalAbove(ctx, s.Store, c.Shop); err != nil {
		return r, err
	}
	// That the reach cannot be told quickly is no reason to show nothing.
	if reach, err := s.reach(ctx, c); err == nil {
		r.Reach = &reach
	}
	return r, nil
}

// Needed reports whether the campaign, as it is now, needs approval; see [Review.Needed].
func (s *Service) Needed(ctx context.Context, by staff.Actor, id int64) (bool, error) {
	r, err := s.Review(ctx, by, id)
	return r.Needed(), err
}

func (s *Service) review(ctx context.Context, c campaign.Campaign) (Review, error) {
	r := Review{Campaign: c, Now: campaign.Snapshot{Spec: c.Spec, Rule: c.Rule}}
	var err error
	if c.State == campaign.Draft {
		if r.Now.Rule, err = s.Store.SegmentRule(ctx, c.Audience); err != nil {
			return r, err
		}
	}
	list, err := s.Store.Requests(ctx, c.ID, 2)
	if err != nil {
		return r, err
	}
	if len(list) > 0 && list[0].State == campaign.RequestAsked {
		r.Open, list = &list[0], list[1:]
	}
	if len(list) > 0 {
		r.Before = &list[0]
	}
	return r, nil
}
