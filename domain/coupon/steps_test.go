package coupon

import (
	"errors"
	"testing"
	"time"

	"dropbell/domain/template"
)

// A lock that is repeated with other contents is refused with the reason.
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

// The answer of a dialog's check is the answer of the step.
func TestWhatStaffMayDoWithACoupon(t *testing.T) {
	valid := time.Unix(2000, 0)
	for _, c := range []struct {
		name            string
		state           State
		order           string
		now             int64
		revoke, release bool
	}{
		{"unused", Unused, "", 1000, true, false},
		{"unused and expired", Unused, "", 2000, false, false},
		{"locked", Locked, "A-1", 1000, false, true},
		{"used", Used, "A-1", 1000, false, false},
		{"expired", Expired, "", 2000, false, false},
		{"revoked", Revoked, "", 1000, false, false},
	} {
		l := Listed{Coupon: Coupon{ID: 1, State: c.state, OrderID: c.order, ExpiresAt: valid}, Now: time.Unix(c.now, 0)}
		if err := l.MayRevoke(); (err == nil) != c.revoke || err != nil && !errors.Is(err, ErrNotUsable) {
			t.Errorf("%s: revoke %v", c.name, err)
		}
		if err := l.MayRelease("A-1"); (err == nil) != c.release || err != nil && !errors.Is(err, ErrNotUsable) {
			t.Errorf("%s: release %v", c.name, err)
		}
		for _, other := range []string{"", "A-2"} {
			if err := l.MayRelease(other); !errors.Is(err, ErrNotUsable) {
				t.Errorf("%s: release of %q: %v", c.name, other, err)
			}
		}
	}
}
