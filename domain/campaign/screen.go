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
	// ApprovalAbove is how many recipients one member may send to without
	// approval.
	ApprovalAbove int64
}

// Facts is what is to be known about the recipients of one batch.
type Facts struct {
	GrantTemplate int64
	Shop          int64
	State         State
	PerDay        int
	PerWeek       int
	// Quiet are those who have quiet hours, Deleted those who were known when
	// the audience was cut and are no more.
	Quiet   map[user.ID]user.User
	Deleted []user.ID
	// Day and Week are how many messages of other campaigns reached them.
	Day, Week map[user.ID]int
	// Busy are those whom another campaign, which looked first, may be reaching
	// right now. Campaigns never wait for each other in a circle.
	Busy map[user.ID]bool
}

// ScreenStore reads what the screening of recipients depends on.
type ScreenStore interface {
	Facts(ctx context.Context, b *delivery.Batch) (Facts, error)
	// Quiet returns those of the users, given in ascending order, who have quiet hours.
	Quiet(ctx context.Context, ids []user.ID) (map[user.ID]user.User, error)
}

// quietFor is how old what is known of quiet hours may be when messages go out.
const quietFor = 500 * time.Millisecond

// Grant requests one coupon for each user. A repetition gives a user of the
// campaign no second coupon.
type Grant struct {
	CampaignID, TemplateID int64
	Users                  []user.ID
}

// Granter gives coupons.
type Granter interface {
	// Grant returns the users who did not get a coupon with the reason: a key
	// such as [delivery.ReasonSoldOut]. After an error it is unknown which users
	// got one; a repetition gives no user a second coupon.
	Grant(ctx context.Context, g Grant) (refused map[user.ID]string, err error)
}

// Guard decides about each recipient of a campaign right before sending; it
// is the [delivery.Guard] of [delivery.KindCampaign].
type Guard struct {
	Store   ScreenStore
	Granter Granter // nil = coupons cannot be granted here
}

// Screen reads what is to be known about the batch's recipients.
func (g *Guard) Screen(ctx context.Context, b *delivery.Batch) (delivery.Screen, error) {
	f, err := g.Store.Facts(ctx, b)
	if err != nil {
		return nil, err
	}
	s := &screen{Facts: f, store: g.Store, at: b.Now, granter: g.Granter, owner: b.Owner, copy: b.Subject.Copy, deleted: map[user.ID]bool{}}
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
	deleted map[user.ID]bool
}

// busyFor is how long to defer a user whom another campaign may be reaching
// right now.
const busyFor = 3 * time.Second

// Check screens the users by lasting reasons first: erased users, those outside
// the audience, those over the limit, those in quiet hours.
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
	case s.PerDay > 0 && s.Day[id] >= s.PerDay, s.PerWeek > 0 && s.Week[id] >= s.PerWeek:
		v.Reason = delivery.ReasonFrequencyCap
	case s.Busy[id]:
		// Spread, so that those who wait for the same one do not meet again.
		v.Reason, v.Until = delivery.ReasonFrequencyCap, now.Add(busyFor+time.Duration(s.owner%7)*300*time.Millisecond)
	case asleep:
		v.Reason, v.Until = delivery.ReasonQuietHours, until
	}
	return v
}

// Before looks at the clock once more, reads quiet hours again unless they were just read,
// and grants the coupons.
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
	refused, err := s.granter.Grant(ctx, Grant{s.owner, s.GrantTemplate, left})
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
