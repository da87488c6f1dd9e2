// Package approval is the approval of campaigns by a second member of staff. A campaign that
// reaches more users than one member may send to is published by another member, who saw exactly
// the requested version. A campaign whose audience has grown beyond the approved reach is held
// until it is approved again.
package approval

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"dropbell/domain/campaign"
	"dropbell/domain/detach"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
)

// Errors of the approval by a second person.
var (
	// ErrApproval refuses a publication that requires the approval of a second member.
	ErrApproval = fault.New(fault.Conflict, "approval_required",
		"this campaign reaches more users than one member may send to; another member must approve it")
	// ErrLapsed refuses the approval of a campaign that has changed since the request.
	ErrLapsed = fault.New(fault.Conflict, "approval_lapsed",
		"the campaign has changed since approval was requested; check it and request approval again")
	// ErrNotAsked refuses a decision for which no request is open.
	ErrNotAsked = fault.New(fault.Conflict, "approval_not_asked", "no request for approval of this campaign is open; publish it to request one")
)

// Store stores campaigns and the requests for their approval.
type Store interface {
	campaign.SizeStore
	campaign.RuleStore
	segment.TemplateStore
	// Campaign returns [campaign.ErrNotFound] if there is none.
	Campaign(ctx context.Context, id int64) (campaign.Campaign, error)
	// Save is [campaign.Store.Save].
	Save(ctx context.Context, c campaign.Change) (campaign.Campaign, error)
	// Estimate is [campaign.Store.Estimate].
	Estimate(ctx context.Context, a campaign.Audience) (n int64, exact bool, err error)
	// Requests returns the requests of a campaign, the latest first.
	Requests(ctx context.Context, id int64, limit int) ([]campaign.Request, error)
	// Awaiting returns the open requests about campaigns of the shops (none = of all, and of no
	// shop) that have not ended, the oldest first, without requests that the member with the label
	// made and without campaigns that this member created.
	Awaiting(ctx context.Context, shops []int64, label string, limit int) ([]campaign.Request, error)
}

// Service holds the use cases of approval. It is the [campaign.Approvals] of a [campaign.Service].
type Service struct {
	Store     Store
	Publisher campaign.Publisher
}

// Approve publishes the campaign exactly as the request describes it, which is the version that
// by has seen. It returns [ErrLapsed] if the campaign, or the rule of its segment, has changed
// since, or if the request is no longer open. It returns [ErrApproval] if by requested the
// approval or created the campaign.
func (s *Service) Approve(ctx context.Context, by staff.Actor, id, request int64, reason string) (campaign.Campaign, error) {
	if err := checkReason(reason, false); err != nil {
		return campaign.Campaign{}, err
	}
	return s.decide(ctx, by, id, request, func(r Review) (campaign.Campaign, error) {
		if r.Campaign.HeldAt != nil {
			return s.consentToSize(ctx, by, r, reason)
		}
		if r.Lapsed() {
			return r.Campaign, ErrLapsed
		}
		next, err := s.Publisher.Publishable(ctx, r.Campaign)
		if err != nil {
			return next, err
		}
		if err := campaign.CheckShops(ctx, s.Store, r.Now); err != nil {
			return next, err
		}
		return s.consent(ctx, by, r.Campaign, next, *r.Open, reason)
	})
}

// Refuse ends a request; a reason is required. The campaign stays a draft, or held, and approval
// can be requested again.
func (s *Service) Refuse(ctx context.Context, by staff.Actor, id, request int64, reason string) (campaign.Campaign, error) {
	if err := checkReason(reason, true); err != nil {
		return campaign.Campaign{}, err
	}
	return s.decide(ctx, by, id, request, func(r Review) (campaign.Campaign, error) {
		return s.end(ctx, r, campaign.Decision{Request: r.Open.ID, State: campaign.RequestRefused, Reason: reason},
			entry(by, "campaign.refuse", r.Campaign, reason, nil, map[string]any{"asked_by": r.Open.AskedBy}))
	})
}

// end stores that the open request has ended and the campaign stays a draft.
func (s *Service) end(ctx context.Context, r Review, d campaign.Decision, e staff.Entry) (campaign.Campaign, error) {
	next := r.Campaign
	next.ApprovalAskedAt, next.ApprovedBy = nil, ""
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	c, err := s.Store.Save(ctx, campaign.Change{Campaign: next, Event: event.CampaignChanged, Decision: &d, Entry: e})
	if errors.Is(err, fault.ErrStale) {
		err = ErrLapsed
	}
	return c, err
}

// Withdraw withdraws an open request. It is for members who cannot decide about the request; a
// member who can decide refuses it with a reason instead. The campaign stays a draft. Another
// member can then request approval, and the former requester can approve it.
func (s *Service) Withdraw(ctx context.Context, by staff.Actor, id, request int64, reason string) (campaign.Campaign, error) {
	if err := checkReason(reason, false); err != nil {
		return campaign.Campaign{}, err
	}
	return s.decide(ctx, by, id, request, func(r Review) (campaign.Campaign, error) {
		if !r.MayWithdraw(by) {
			return r.Campaign, staff.ErrForbidden.Because("only the one who asked or created the campaign can withdraw the request; refuse it instead")
		}
		return s.end(ctx, r, campaign.Decision{Request: r.Open.ID, State: campaign.RequestLapsed, Reason: reason}, entry(by, "campaign.withdraw", r.Campaign, reason, nil, nil))
	})
}

// Ask requests approval of the campaign as it is now, and replaces a request that has lapsed. It
// returns [ErrApproval] while the open request is still valid, [ErrLapsed] if by could approve
// the new request, and [ErrNotAsked] if the campaign needs no approval.
func (s *Service) Ask(ctx context.Context, by staff.Actor, id int64, reason string) (campaign.Campaign, error) {
	if err := checkReason(reason, false); err != nil {
		return campaign.Campaign{}, err
	}
	old, err := s.load(ctx, by, id)
	if err != nil {
		return old, err
	}
	if old.HeldAt != nil {
		r, err := s.review(ctx, old)
		if err == nil {
			r, err = s.reviewSize(ctx, r)
		}
		if err != nil {
			return old, err
		}
		return s.askAgain(ctx, by, r, reason)
	}
	if _, err := s.Publisher.Publishable(ctx, old); err != nil {
		return old, err
	}
	above, err := campaign.ApprovalAbove(ctx, s.Store, old.Shop)
	if err != nil {
		return old, err
	}
	reach, err := s.reach(ctx, old)
	if err != nil {
		return old, err
	}
	if above == 0 || reach.Users <= above {
		return old, ErrNotAsked.Because("the campaign needs nobody's approval; publish it")
	}
	r, err := s.review(ctx, old)
	if err != nil {
		return old, err
	}
	if err := campaign.CheckShops(ctx, s.Store, r.Now); err != nil {
		return old, err
	}
	switch {
	case r.Open == nil:
	case !r.Lapsed():
		return old, ErrApproval
	case !concerns(*r.Open, by, old):
		return old, ErrLapsed.Because("let the one who asked, or who created the campaign, ask again; you can approve it then")
	}
	return s.ask(ctx, by, old, reach, reason)
}

// decide loads the review and calls do, which decides about the request. The request must be the
// open request.
func (s *Service) decide(ctx context.Context, by staff.Actor, id, request int64, do func(Review) (campaign.Campaign, error)) (campaign.Campaign, error) {
	old, err := s.load(ctx, by, id)
	if err != nil {
		return old, err
	}
	if old.State != campaign.Draft && old.HeldAt == nil {
		return old, campaign.ErrTransition.Because("the campaign is %s; there is nothing to approve", old.State)
	}
	r, err := s.review(ctx, old)
	switch {
	case err != nil:
		return old, err
	case r.Open == nil && r.Before != nil && r.Before.ID == request, r.Open != nil && r.Open.ID != request:
		return old, ErrLapsed
	case r.Open == nil:
		return old, ErrNotAsked
	}
	return do(r)
}

func (s *Service) load(ctx context.Context, by staff.Actor, id int64) (campaign.Campaign, error) {
	c, err := s.Store.Campaign(ctx, id)
	if err == nil {
		err = campaign.May(by, staff.ManageCampaigns, c.Shop)
	}
	return c, err
}

// entry returns the audit entry of an action on c.
func entry(by staff.Actor, action string, c campaign.Campaign, reason string, before, after any) staff.Entry {
	return staff.Entry{Actor: by, Action: action, ObjectKind: "campaign", ObjectID: strconv.FormatInt(c.ID, 10),
		ShopNumber: c.Shop, Reason: reason, Before: before, After: after}
}

// MaxReason bounds a reason, in characters.
const MaxReason = 500

func checkReason(reason string, must bool) error {
	e := &fault.Fields{}
	switch {
	case must && strings.TrimSpace(reason) == "":
		e.Add("reason", "rule.required", "is required")
	case utf8.RuneCountInString(reason) > MaxReason:
		e.Add("reason", "rule.too_long", "must have at most %d characters", MaxReason)
	}
	return e.Err()
}

// Decided reports whether the request is the latest request about campaign id and has the state
// as.
func (s *Service) Decided(ctx context.Context, id, request int64, as campaign.RequestState) bool {
	list, err := s.Store.Requests(ctx, id, 1)
	return err == nil && len(list) > 0 && list[0].ID == request && list[0].State == as
}

// Awaiting returns the open requests that by may approve or refuse, the oldest first. A member
// without the permission has none.
func (s *Service) Awaiting(ctx context.Context, by staff.Actor, limit int) ([]campaign.Request, error) {
	if by.May(staff.ManageCampaigns, 0) != nil {
		return nil, nil
	}
	return s.Store.Awaiting(ctx, by.Shops, by.Label, limit)
}

// Requests returns the approval requests of a campaign, the latest first. The caller must be
// allowed to see the campaign.
func (s *Service) Requests(ctx context.Context, c campaign.Campaign, limit int) ([]campaign.Request, error) {
	return s.Store.Requests(ctx, c.ID, limit)
}
