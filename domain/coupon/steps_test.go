package coupon

import (
	"errors"
	"testing"
	"time"

	"dropbell/domain/template"
)

// A lock that is repeated with something else in it is refused for what that is.
func TestWhyARepeatedLockIsRefused(t *testing.T) {
	first := Order{ID: "A-1", Amount: 6000, Currency: "CNY"}
	c := Case{Coupon: Coupon{ID: 1, UserID: 7, State: Unused, ExpiresAt: time.Unix(2000, 0)}, Now: time.Unix(1000, 0),
		Rule: Rule{Kind: template.AmountOff, AmountOff: 2000, Currency: "CNY", Target: template.WholeShop}}
	m, no := c.lock(first, time.Minute)
	if no != nil {
		t.Fatal(no.err)
	}
	c.Coupon, c.History = m.To, m.Ops
	until := c.Now.Add(time.Minute)
	c.Coupon.LockedUntil = &until
	for outcome, again := range map[string]Order{"": first, RefusedChanged: {ID: "A-1", Amount: 6001, Currency: "CNY"},
		RefusedCurrency: {ID: "A-1", Amount: 6000, Currency: "USD"}} {
		switch _, no := c.lock(again, time.Minute); {
		case outcome == "" && no != nil:
			t.Errorf("the same again: %v", no.err)
		case outcome != "" && (no == nil || no.outcome != outcome || !errors.Is(no.err, ErrOtherRequest)):
			t.Errorf("%+v: %+v, want %s", again, no, outcome)
		}
	}
}
