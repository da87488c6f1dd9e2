package audience_test

import (
	"fmt"
	"strings"
	"testing"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/timeline"
)

// The newest act of each user counts, whatever its table; coupons that expired or were given are no acts.
// A member of another shop sees the choices alone. Users without an act fill the list.
func TestRecentCustomers(t *testing.T) {
	w := newFixture(t)
	w.lived()
	w.Exec(`insert into users (id, email) values (5, 'Five@example.com'), (6, '')`)
	w.Exec(`insert into suppressions (address, reason) values ('five@example.com', 'bounced')`)
	w.Exec(`insert into orders (shop_number, order_id, user_id, currency, amount, ordered_at) values (10, 'C-1', 9, 'CNY', 100, now() - interval '50 minutes')`)
	w.Exec(`insert into coupon_operations (coupon_id, step, outcome, from_state, to_state) values (81, 'expire', 'done', 'unused', 'expired')`)
	store := audiencedb.NewUsers(w.DB)
	list := func(shops []int64, limit int) string {
		t.Helper()
		all, err := store.Recent(t.Context(), shops, limit)
		w.Must(err)
		var said []string
		for _, c := range all {
			text := fmt.Sprint(c.User.ID, " ", c.Last.Kind)
			if c.Suppressed {
				text += " suppressed"
			}
			if c.Last.Kind == timeline.Claimed && (c.Last.Drop == "" || c.Last.TemplateID == 0) {
				t.Errorf("%+v", c.Last)
			}
			said = append(said, text)
		}
		return strings.Join(said, ", ")
	}
	for _, c := range []struct {
		shops []int64
		limit int
		want  string
	}{
		{nil, 10, "7 opted_out, 8 claimed, 9 ordered, 5  suppressed, 6 "},
		{nil, 2, "7 opted_out, 8 claimed"},
		{[]int64{11}, 10, "7 opted_out, 5  suppressed, 6 , 8 "},
	} {
		if got := list(c.shops, c.limit); got != c.want {
			t.Errorf("shops %v, %d: %q, want %q", c.shops, c.limit, got, c.want)
		}
	}
	w.Exec(`delete from user_changes`)
	if got, want := list(nil, 3), "8 claimed, 7 ordered, 9 ordered"; got != want {
		t.Errorf("without choices: %q, want %q", got, want)
	}
	w.Exec(`insert into erased_users (user_id, erased_by) values (8, 'staff:1')`)
	if got := list(nil, 1); got != "7 ordered" {
		t.Errorf("after the erasure: %q", got)
	}
}
