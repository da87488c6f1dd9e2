package delivery_test

import (
	"slices"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// TestOptOutsOfASparseBatch: the users of a batch have ids a hundred thousand
// apart, with opted-out users in between. Every third user of the batch has opted
// out of the app, and another third of e-mail only. Each user has its own
// outcome, as in a batch of neighbouring ids.
func TestOptOutsOfASparseBatch(t *testing.T) {
	for name, apart := range map[string]int64{"dense": 1, "sparse": 100_000} {
		t.Run(name, func(t *testing.T) {
			n := pgtest.NewNotifier(t)
			tpl := n.Published(2 * time.Hour)
			var ids, want []user.ID
			for i := int64(1); i <= 30; i++ {
				id := user.ID(i * apart)
				ids = append(ids, id)
				if i%3 != 0 {
					want = append(want, id)
				}
			}
			n.Exec(`insert into users (id, opt_outs) select i * $1::bigint, case i % 3 when 0 then 1 when 1 then 2 else 0 end from generate_series(1, 30) i`, apart)
			n.Exec(`insert into users (id, opt_outs) select i * 100 + 7, 31 from generate_series(0, 29) i on conflict do nothing`)
			n.ReserveAll(tpl, ids, pgtest.Reminders(delivery.App, 60)...)
			if apart == 1 {
				n.Exec(`update users set opt_outs = case id % 3 when 0 then 1 when 1 then 2 else 0 end where id <= 30`)
			}
			n.Remind(tpl, 12)
			if got := pgtest.Reached(t, n.App, delivery.KindReminder); !slices.Equal(got, want) {
				t.Errorf("reached %v, want %v", got, want)
			}
			sum := n.Balanced(tpl)[delivery.App]
			if sum.Sent != 20 || sum.Skipped != 10 {
				t.Errorf("%+v", sum)
			}
			if skipped := n.Number(`select count(*) from exceptions where outcome = 'skipped' and reason = 'opted_out'`); skipped != 10 {
				t.Errorf("%d skipped as opted out", skipped)
			}
		})
	}
}
