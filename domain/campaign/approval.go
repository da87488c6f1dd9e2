package campaign

import (
	"context"

	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// ErrApproval is the refusal of a publication that only a second person can
// complete.
var ErrApproval = fault.New(fault.Conflict, "approval_required",
	"this campaign reaches more people than one person may send to alone; somebody else has to publish it")

// secondPerson decides whether by may complete the publication. If somebody
// has to ask first it returns the campaign as asked for; if by is the one who
// asked or created it, [ErrApproval]. Else next tells who consented.
func (s *Service) secondPerson(ctx context.Context, by staff.Actor, old Campaign, next *Campaign) (asked *Campaign, err error) {
	limits, err := s.Store.Limits(ctx, old.Shop)
	if err != nil || limits.ApprovalAbove == 0 {
		return nil, err
	}
	reach, _, err := s.Store.Estimate(ctx, old.Audience)
	if err != nil || reach <= limits.ApprovalAbove {
		return nil, err
	}
	switch {
	case old.ApprovalAskedAt == nil:
		c, now := old, s.Now()
		c.ApprovalAskedAt, c.ApprovedBy = &now, by.Label
		return &c, nil
	case old.ApprovedBy == by.Label, old.Creator == by.Label:
		return nil, ErrApproval
	}
	next.ApprovalAskedAt, next.ApprovedBy = nil, by.Label+" "+by.Name
	return nil, nil
}

// saveAsked stores that somebody asked for a second person's consent.
func (s *Service) saveAsked(ctx context.Context, by staff.Actor, old Campaign, asked *Campaign, err error) (Campaign, error) {
	if err != nil {
		return old, err
	}
	return s.Store.Save(detach(ctx), Change{Campaign: *asked, Event: event.CampaignChanged,
		Entry: entry(by, "campaign.ask", old, "", nil, auditOf(old.Spec))})
}
