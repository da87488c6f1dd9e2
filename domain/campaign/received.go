package campaign

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// A Letter is the outcome of one campaign's message to one user.
type Letter struct {
	CampaignID int64
	Name       string
	Shop       int64 // 0 = of no shop
	ShopName   string
	Channel    delivery.Channel
	BatchID    int64
	Outcome    delivery.Outcome
	Reason     string
	At         time.Time // when the outcome was recorded; zero while in flight
	// CountsAt is the instant by which frequency caps count the message.
	CountsAt time.Time
}

// reached reports whether the message counts as received by the user.
func (l Letter) reached() bool {
	return l.Outcome == delivery.Sent || l.Outcome == delivery.Recovered
}

// An Allowance is the number of a shop's campaign messages that one user has had, with the shop's
// limits.
type Allowance struct {
	Shop     int64 // 0 = campaigns of no shop
	ShopName string
	Limits   Limits
	Day      int // messages in the last 24 hours
	Week     int // in the last seven days
}

// Full reports whether the next campaign message of the shop would be skipped.
func (s Allowance) Full() bool {
	return s.Limits.PerDay > 0 && s.Day >= s.Limits.PerDay || s.Limits.PerWeek > 0 && s.Week >= s.Limits.PerWeek
}

// Received is the recent campaign messages of one user.
type Received struct {
	Letters []Letter // newest first
	// Shares are the allowances of shops that have limits and had messages for the user, by
	// ascending shop number.
	Shares []Allowance
	// AtLeast is set if not all campaigns of the last seven days were read, so that the true
	// numbers may be larger than those in Shares.
	AtLeast bool
}

// A ReceivedRows is the stored data about one user and the newest campaigns.
type ReceivedRows struct {
	Letters []Letter // newest first
	Limits  map[int64]Limits
	Now     time.Time // the database's clock
	// Passed is the start of the newest campaign that was not read; zero if all were read.
	Passed time.Time
}

// LetterStore reads the outcomes of campaigns' messages.
type LetterStore interface {
	// ReceivedRows returns the messages that the newest started campaigns had for the user, and
	// the limits of their shops. If shops is not empty, only campaigns of these shops count.
	ReceivedRows(ctx context.Context, to user.ID, shops []int64) (ReceivedRows, error)
}

// Letters returns the campaign messages of single users.
type Letters struct{ Store LetterStore }

// To returns the recent campaign messages of the user that the actor may see.
func (s *Letters) To(ctx context.Context, by staff.Actor, to user.ID) (Received, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Received{}, err
	}
	m, err := s.Store.ReceivedRows(ctx, to, by.Shops)
	return m.received(), err
}

// Lengths of the spans that caps are about, as [Guard] counts them.
const (
	capDay  = 24 * time.Hour
	capWeek = 7 * capDay
)

func (m ReceivedRows) received() Received {
	r := Received{Letters: m.Letters, AtLeast: m.Passed.After(m.Now.Add(-capWeek))}
	for _, l := range m.Letters {
		limits := m.Limits[l.Shop]
		if limits.PerDay == 0 && limits.PerWeek == 0 {
			continue
		}
		at, found := slices.BinarySearchFunc(r.Shares, l.Shop, func(s Allowance, shop int64) int { return int(min(max(s.Shop-shop, -1), 1)) })
		if !found {
			r.Shares = slices.Insert(r.Shares, at, Allowance{Shop: l.Shop, ShopName: l.ShopName, Limits: limits})
		}
		if !l.reached() {
			continue
		}
		if l.CountsAt.After(m.Now.Add(-capDay)) {
			r.Shares[at].Day++
		}
		if l.CountsAt.After(m.Now.Add(-capWeek)) {
			r.Shares[at].Week++
		}
	}
	return r
}
