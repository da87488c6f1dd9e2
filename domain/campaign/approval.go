package campaign

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"dropbell/domain/detach"
	"dropbell/domain/event"
	"dropbell/domain/fault"
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

// RequestStore stores requests for approval.
type RequestStore interface {
	// Requests returns the requests of a campaign, the latest first.
	Requests(ctx context.Context, id int64, limit int) ([]Request, error)
	// SegmentRule returns the present rule of the segment or list that the audience names; nil
	// for other audiences and for a segment or list that does not exist any more.
	SegmentRule(ctx context.Context, a Audience) (*FrozenRule, error)
}

// Publish is [Service.Do] for a form that showed how many users one member may send to without
// approval (shown; 0 = any number). If that number has changed since, Publish changes nothing and
// returns a [fault.Fields].
func (s *Service) Publish(ctx context.Context, by staff.Actor, id, version, shown int64, reason string) (Campaign, error) {
	return s.do(ctx, by, id, version, Publishing, reason, &shown)
}

// publish publishes a campaign, or requests approval where the shop requires it. Of several equal
// campaigns it publishes only one. If shown is given, it must still be the number of users above
// which approval is required.
func (s *Service) publish(ctx context.Context, by staff.Actor, old Campaign, reason string, shown *int64) (Campaign, error) {
	next, err := s.publishable(ctx, old)
	if err != nil {
		return old, err
	}
	next.PublishedBy = by.Label + " " + by.Name
	ch := Change{Campaign: next, Entry: entry(by, "campaign.publish", old, reason, old.State, next.State)}
	above, err := aboveWhich(ctx, s.Store, old.Shop)
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
	if err := shopsOf(ctx, s.Store, r.Now); err != nil {
		return old, err
	}
	if ch.Rule = r.Now.Rule; above == 0 {
		if ch.Rule != nil {
			ch.Rule.Members = nil // how many a list has matters to approvals only
		}
		return s.release(ctx, ch)
	}
	reach, err := s.reach(ctx, old)
	if err != nil {
		return old, err
	}
	switch {
	case reach.Users <= above:
		return s.release(ctx, ch)
	case r.Open == nil, r.Lapsed() && r.Open.concerns(by, old):
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

// publishable returns the campaign as published, or why it cannot be.
func (s *Service) publishable(ctx context.Context, old Campaign) (Campaign, error) {
	next, err := old.step(Publishing, s.Now())
	if err != nil {
		return old, err
	}
	if err := old.checkPublication(s.Now(), s.Channels); err != nil {
		return old, err
	}
	return next, s.checkTemplates(ctx, old.Spec)
}

// release stores a publication. The lock refuses most equal campaigns before they reach the
// database. The database refuses all of them, also if the lock has been lost.
func (s *Service) release(ctx context.Context, ch Change) (Campaign, error) {
	ch.Step, ch.Event = Publishing, event.CampaignPublished
	key := ch.Campaign.Fingerprint()
	if mine, err := s.Lock.Take(ctx, key, ch.Campaign.ID, RepublishAfter); err == nil && !mine {
		return ch.Campaign, ErrPublished
	}
	writing, cancel := detach.Context(ctx)
	defer cancel()
	saved, err := s.Store.Save(writing, ch)
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Invalid {
		// The campaign is certainly not published; after any other failure it may be. The write
		// may have used up the caller's time, and a lock that is not released refuses the
		// campaign for half an hour, so the release has a context with its own time.
		releasing, released := detach.Context(context.WithoutCancel(ctx))
		defer released()
		_ = s.Lock.Release(releasing, key, ch.Campaign.ID)
	}
	return saved, err
}

// reach returns about how many users the campaign reaches now.
func (s *Service) reach(ctx context.Context, c Campaign) (Reach, error) {
	n, exact, err := s.Store.Estimate(ctx, c.Audience)
	return Reach{Users: n, Exact: exact, At: s.Now()}, err
}

// ask stores a request for approval of the campaign as it is now.
func (s *Service) ask(ctx context.Context, by staff.Actor, old Campaign, reach Reach, reason string) (Campaign, error) {
	next, now := old, s.Now()
	next.ApprovalAskedAt, next.ApprovedBy = &now, by.Label
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Save(ctx, Change{Campaign: next, Event: event.CampaignChanged,
		Ask:   &Request{Snapshot: Snapshot{Spec: old.Spec}, Reach: reach, AskedBy: by.Label, AskedName: by.Name, Reason: reason},
		Entry: entry(by, "campaign.ask", old, reason, nil, auditOf(old.Spec))})
}

// consent publishes the requested campaign. The store checks again that the campaign and its rule
// still are as the request describes them.
func (s *Service) consent(ctx context.Context, by staff.Actor, old, next Campaign, r Request, reason string) (Campaign, error) {
	if r.concerns(by, old) {
		return old, ErrApproval
	}
	next.ApprovalAskedAt, next.ApprovedBy, next.PublishedBy = nil, by.Label+" "+by.Name, r.AskedBy+" "+r.AskedName
	c, err := s.release(ctx, Change{Campaign: next, Rule: r.Rule, Decision: &Decision{Request: r.ID, State: RequestApproved, Reason: reason},
		Entry: entry(by, "campaign.approve", old, reason, old.State, next.State)})
	if errors.Is(err, fault.ErrStale) { // the campaign was changed between reading and saving
		err = ErrLapsed
	}
	return c, err
}

// Review returns the data for an approver's decision: the campaign as it is now, as it was when
// approval was requested, and as it was at the request before. It returns [ErrNotFound].
func (s *Service) Review(ctx context.Context, by staff.Actor, id int64) (Review, error) {
	st, err := s.Campaign(ctx, by, id)
	if err != nil {
		return Review{}, err
	}
	r, err := s.review(ctx, st.Campaign)
	if err != nil {
		return r, err
	}
	if st.HeldAt != nil {
		return s.reviewSize(ctx, r)
	}
	if r.Above, err = aboveWhich(ctx, s.Store, st.Shop); err != nil {
		return r, err
	}
	// That the reach cannot be told quickly is no reason to show nothing.
	if reach, err := s.reach(ctx, st.Campaign); err == nil {
		r.Reach = &reach
	}
	return r, nil
}

func (s *Service) review(ctx context.Context, c Campaign) (Review, error) {
	r := Review{Campaign: c, Now: Snapshot{Spec: c.Spec, Rule: c.Rule}}
	var err error
	if c.State == Draft {
		if r.Now.Rule, err = s.Store.SegmentRule(ctx, c.Audience); err != nil {
			return r, err
		}
	}
	list, err := s.Store.Requests(ctx, c.ID, 2)
	if err != nil {
		return r, err
	}
	if len(list) > 0 && list[0].State == RequestAsked {
		r.Open, list = &list[0], list[1:]
	}
	if len(list) > 0 {
		r.Before = &list[0]
	}
	return r, nil
}

// Approve publishes the campaign exactly as the request describes it, which is the version that
// by has seen. It returns [ErrLapsed] if the campaign, or the rule of its segment, has changed
// since, or if the request is no longer open. It returns [ErrApproval] if by requested the
// approval or created the campaign.
func (s *Service) Approve(ctx context.Context, by staff.Actor, id, request int64, reason string) (Campaign, error) {
	if err := checkReason(reason, false); err != nil {
		return Campaign{}, err
	}
	return s.decide(ctx, by, id, request, func(r Review) (Campaign, error) {
		if r.Campaign.HeldAt != nil {
			return s.consentToSize(ctx, by, r, reason)
		}
		if r.Lapsed() {
			return r.Campaign, ErrLapsed
		}
		next, err := s.publishable(ctx, r.Campaign)
		if err != nil {
			return next, err
		}
		if err := shopsOf(ctx, s.Store, r.Now); err != nil {
			return next, err
		}
		return s.consent(ctx, by, r.Campaign, next, *r.Open, reason)
	})
}

// Refuse ends a request; a reason is required. The campaign stays a draft, or held, and approval
// can be requested again.
func (s *Service) Refuse(ctx context.Context, by staff.Actor, id, request int64, reason string) (Campaign, error) {
	if err := checkReason(reason, true); err != nil {
		return Campaign{}, err
	}
	return s.decide(ctx, by, id, request, func(r Review) (Campaign, error) {
		return s.end(ctx, r, Decision{Request: r.Open.ID, State: RequestRefused, Reason: reason},
			entry(by, "campaign.refuse", r.Campaign, reason, nil, map[string]any{"asked_by": r.Open.AskedBy}))
	})
}

// end stores that the open request has ended and the campaign stays a draft.
func (s *Service) end(ctx context.Context, r Review, d Decision, e staff.Entry) (Campaign, error) {
	next := r.Campaign
	next.ApprovalAskedAt, next.ApprovedBy = nil, ""
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	c, err := s.Store.Save(ctx, Change{Campaign: next, Event: event.CampaignChanged, Decision: &d, Entry: e})
	if errors.Is(err, fault.ErrStale) {
		err = ErrLapsed
	}
	return c, err
}

// Withdraw withdraws an open request. It is for members who cannot decide about the request; a
// member who can decide refuses it with a reason instead. The campaign stays a draft. Another
// member can then request approval, and the former requester can approve it.
func (s *Service) Withdraw(ctx context.Context, by staff.Actor, id, request int64, reason string) (Campaign, error) {
	if err := checkReason(reason, false); err != nil {
		return Campaign{}, err
	}
	return s.decide(ctx, by, id, request, func(r Review) (Campaign, error) {
		if !r.MayWithdraw(by) {
			return r.Campaign, staff.ErrForbidden.Because("only the one who asked or created the campaign can withdraw the request; refuse it instead")
		}
		return s.end(ctx, r, Decision{Request: r.Open.ID, State: RequestLapsed, Reason: reason}, entry(by, "campaign.withdraw", r.Campaign, reason, nil, nil))
	})
}

// Ask requests approval of the campaign as it is now, and replaces a request that has lapsed. It
// returns [ErrApproval] while the open request is still valid, [ErrLapsed] if by could approve
// the new request, and [ErrNotAsked] if the campaign needs no approval.
func (s *Service) Ask(ctx context.Context, by staff.Actor, id int64, reason string) (Campaign, error) {
	if err := checkReason(reason, false); err != nil {
		return Campaign{}, err
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
	if _, err := s.publishable(ctx, old); err != nil {
		return old, err
	}
	above, err := aboveWhich(ctx, s.Store, old.Shop)
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
	if err := shopsOf(ctx, s.Store, r.Now); err != nil {
		return old, err
	}
	switch {
	case r.Open == nil:
	case !r.Lapsed():
		return old, ErrApproval
	case !r.Open.concerns(by, old):
		return old, ErrLapsed.Because("let the one who asked, or who created the campaign, ask again; you can approve it then")
	}
	return s.ask(ctx, by, old, reach, reason)
}

// decide loads the review and calls do, which decides about the request. The request must be the
// open request.
func (s *Service) decide(ctx context.Context, by staff.Actor, id, request int64, do func(Review) (Campaign, error)) (Campaign, error) {
	old, err := s.load(ctx, by, id)
	if err != nil {
		return old, err
	}
	if old.State != Draft && old.HeldAt == nil {
		return old, ErrTransition.Because("the campaign is %s; there is nothing to approve", old.State)
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
