package access_test

import (
	"errors"
	"testing"
	"time"

	accessdb "dropbell/adapters/postgres/access"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// TestContactsShownAreFew: a member, and all members of a shop together, can be shown a limited
// number of contacts, also with concurrent requests. After an hour they can be shown contacts
// again.
func TestContactsShownAreFew(t *testing.T) {
	w := pgtest.New(t)
	audit := accessdb.NewAudit(w.DB)
	show := func(member string, shop int64) error {
		return audit.RecordRevealed(t.Context(), staff.Entry{Actor: staff.Actor{Label: member, Name: "Ada"}, Action: "user.show_contacts", ObjectKind: "user", ObjectID: "7", ShopNumber: shop})
	}
	many := func(member string, shop int64) (shown int) {
		answers := make(chan error)
		for range staff.MaxRevealed + 10 {
			go func() { answers <- show(member, shop) }()
		}
		for range staff.MaxRevealed + 10 {
			err := <-answers
			if later, ok := errors.AsType[*fault.RetryAfter](err); err == nil {
				shown++
			} else if !errors.Is(err, staff.ErrRevealed) || !ok || later.After <= 0 || later.After > staff.RevealedWithin {
				t.Errorf("%s: %v", member, err)
			}
		}
		return shown
	}
	for _, c := range []struct {
		member string
		shop   int64
		want   int
	}{{"staff:1", 0, staff.MaxRevealed}, {"staff:10", 0, staff.MaxRevealed}, {"staff:2", 10, staff.MaxRevealed}, {"staff:3", 10, staff.MaxRevealedOfShop - staff.MaxRevealed}, {"staff:4", 10, 0}, {"staff:5", 11, staff.MaxRevealed}} {
		if got := many(c.member, c.shop); got != c.want {
			t.Errorf("%s of shop %d was shown %d, want %d", c.member, c.shop, got, c.want)
		}
	}
	w.Exec(`update audit set at = at - $1::interval`, time.Hour+time.Second)
	if err := show("staff:4", 10); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}
