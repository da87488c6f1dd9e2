package campaign

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// Limits are what a shop allows its campaigns; zero means no limit.
type Limits struct {
	// PerDay and PerWeek are the most campaign messages one user gets in 24
	// hours and in seven days. Reminders do not count.
	PerDay, PerWeek int
	// ApprovalAbove is how many recipients one member may send to without approval.
	ApprovalAbove int64
}

// Facts is the data about the recipients of one batch by which they are screened.
type Facts struct {
	GrantTemplate int64
	Shop          int64
	State         State
	PerDay        int
	PerWeek       int
	// Budgeted says that the campaign has a budget and the gate in Redis gives its coupons; see
	// [Grant].
	Budgeted bool
	// Quiet are the recipients with quiet hours. Deleted are the recipients who had stored data
	// when the audience was cut and have none any more.
	Quiet   map[user.ID]user.User
	Deleted []user.ID
	// Gone are the recipients of a recipe's campaign of whom its condition no longer holds: they have claimed
	// since, or the drop sold out.
	Gone map[user.ID]bool
	// Day and Week are how many messages of other campaigns each recipient got in that time.
	Day, Week map[user.ID]int
	// Busy are the recipients whom another campaign may be reaching right now; that campaign has
	// read its Facts earlier. So campaigns never wait for each other in a circle.
	Busy map[user.ID]bool
}

// ScreenStore reads the data for the screening of recipients.
type ScreenStore interface {
	Facts(ctx context.Context, b *delivery.Batch) (Facts, error)
	// Quiet returns the users among ids, which are ascending, who have quiet hours.
	Quiet(ctx context.Context, ids []user.ID) (map[user.ID]user.User, error)
}

// quietFor is the greatest age of the quiet hours that are used when messages are sent.
const quietFor = 500 * time.Millisecond

// Grant requests one coupon for each user. Repeating it gives no user a second coupon of the
// campaign.
type Grant struct {
	CampaignID, TemplateID int64
	Users                  []user.ID
	// Budgeted says that a gate accepts the claims which does not know the campaign's budget. The
	// writer of its claims does, so the budget is kept; but claims beyond the budget would take
	// coupons away from other users until they are written. So they are not to be sent to the gate.
	Budgeted bool
}

// Granter gives coupons.
type Granter interface {
	// Grant returns the users who got no coupon, with the reason: a key such as
	// [delivery.ReasonSoldOut]. After an error it is unknown which users got a coupon. Repeating
	// it gives no user a second coupon.
	Grant(ctx context.Context, g Grant) (refused map[user.ID]string, err error)
}

// Guard decides about each recipient of a campaign right before sending. It is the
// [delivery.Guard] of [delivery.KindCampaign].
type Guard struct {
	Store   ScreenStore
	Granter Granter // nil = coupons cannot be granted here
}

// Screen reads the data by which the batch's recipients are screened.
func (g *Guard) Screen(ctx context.Context, b *delivery.Batch) (delivery.Screen, error) {
	f, err := g.Store.Facts(ctx, b)
	if err != nil {
		return nil, err
	}
	s := &screen{Facts: f, store: g.Store, at: b.Now, granter: g.Granter, owner: b.Owner, copy: b.Subject.Copy, started: b.Subject.DueAt, deleted: map[user.ID]bool{}}
	for _, id := range f.Deleted {
		s.deleted[id] = true
	}
	return s, nil
}

// screen is read by several calls at a time and never changed.
type screen struct {
	Facts
	store   ScreenStore
	at      time.Time // Facts are no older
	granter Granter
	owner   int64
	copy    *delivery.Copy
	started time.Time // the start of the campaign
	deleted map[user.ID]bool
}

// busyFor is how long to defer a user whom another campaign may be reaching right now.
const busyFor = 3 * time.Second

// Check screens the users. Permanent reasons come first: erased users, held-out users, users of whom a recipe no longer holds, and users
// over the limit. Temporary reasons follow: users whom another campaign may be reaching, and
// quiet hours.
func (s *screen) Check(ids []user.ID, now time.Time) []delivery.Screening {
	var list []delivery.Screening
	for _, id := range ids {
		if v := s.judge(id, now); v.Reason != "" {
			list = append(list, v)
		}
	}
	return list
}

func (s *screen) judge(id user.ID, now time.Time) delivery.Screening {
	v := delivery.Screening{UserID: id}
	until, asleep := s.Quiet[id].Sleeps(now)
	switch {
	case s.deleted[id]:
		v.Reason = delivery.ReasonUserDeleted
	case s.copy != nil && s.copy.Pick(s.owner, id) == delivery.HeldOut:
		v.Reason = delivery.ReasonHoldOut
	case s.Gone[id]:
		v.Reason = delivery.ReasonNoLonger
	case s.copy != nil && s.copy.Pick(s.owner, id) == delivery.Remaining:
		v.Reason, v.Until = delivery.ReasonTest, s.decision(now)
	case s.PerDay > 0 && s.Day[id] >= s.PerDay, s.PerWeek > 0 && s.Week[id] >= s.PerWeek:
		v.Reason = delivery.ReasonFrequencyCap
	case s.Busy[id]:
		// The delay differs by campaign, so that campaigns that wait for the same one do not
		// collide again.
		v.Reason, v.Until = delivery.ReasonFrequencyCap, now.Add(busyFor+time.Duration(s.owner%7)*300*time.Millisecond)
	case asleep:
		v.Reason, v.Until = delivery.ReasonQuietHours, until
	}
	return v
}

// undecidedFor is how long users who are not in the test are deferred again if the test is not
// decided in time.
const undecidedFor = 15 * time.Second

// decision returns when users who are not in the test are looked at again: at the stated end of the
// test. A decision before that wakes them.
func (s *screen) decision(now time.Time) time.Time {
	at := s.started.Add(s.copy.Test.Lasts())
	if soon := now.Add(undecidedFor); at.Before(soon) {
		return soon
	}
	return at
}

// Before checks quiet hours again at now, reads them anew if they are older than [quietFor], and
// grants the coupons.
func (s *screen) Before(ctx context.Context, ids []user.ID, now time.Time) ([]delivery.Screening, error) {
	var list []delivery.Screening
	var left []user.ID
	quiet := s.Quiet
	if now.Sub(s.at) > quietFor {
		var err error
		if quiet, err = s.store.Quiet(ctx, ids); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		if until, asleep := quiet[id].Sleeps(now); asleep {
			list = append(list, delivery.Screening{UserID: id, Reason: delivery.ReasonQuietHours, Until: until})
		} else {
			left = append(left, id)
		}
	}
	if s.GrantTemplate == 0 || len(left) == 0 {
		return list, nil
	}
	if s.granter == nil {
		for _, id := range left {
			list = append(list, delivery.Screening{UserID: id, Reason: delivery.ReasonNoGrant})
		}
		return list, nil
	}
	refused, err := s.granter.Grant(ctx, Grant{s.owner, s.GrantTemplate, left, s.Budgeted})
	if err != nil {
		return nil, err
	}
	for _, id := range left {
		if reason := refused[id]; reason != "" {
			list = append(list, delivery.Screening{UserID: id, Reason: reason})
		}
	}
	return list, nil
}
