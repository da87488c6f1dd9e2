package campaigns_test

import (
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

// TestASlowCampaignFollowsItsUsers: a campaign sends one mail a second. After eight mails, other
// users opt out, have their addresses suppressed, or begin quiet hours, and get no mail. When
// these facts were read only when the batch was leased, 31 of 31 users who had opted out got the
// mail once.
func TestASlowCampaignFollowsItsUsers(t *testing.T) {
	for name, apart := range map[string]int{"dense": 1, "sparse": 100_000} {
		t.Run(name, func(t *testing.T) {
			s := newCampaignFixture(t)
			s.users(50, apart)
			s.Exec(`update users set email = 'U' || id / $1 || '@example.com'`, apart)
			c := s.running(func(sp *campaign.Spec) { sp.Channel = delivery.Email })
			mail := pgtest.NewSink(delivery.Email, 1)
			var passed atomic.Int64 // seconds
			const minute = `(extract(hour from now()) * 60 + extract(minute from now()))::int`
			mail.Answer = func(delivery.Message, int) delivery.Result {
				if passed.Add(1) == 8 {
					s.Exec(`update users set opt_outs = $2 where id / $1 between 12 and 42`, apart, int16(delivery.Email.Bit()))
					s.Exec(`insert into suppressions (address, reason, provider, cause) select 'u' || i || '@example.com', 'complained', 'test', 'test' from generate_series(42, 46) i`)
					s.Exec(`update users set quiet_from = (`+minute+` + 1435) % 1440, quiet_to = (`+minute+` + 1430) % 1440 where id / $1 >= 47`, apart)
				}
				return delivery.Result{Status: delivery.Delivered}
			}
			d := s.deliverer(mail)
			d.Now = func() time.Time { return pgtest.Clock().Add(time.Duration(passed.Load()) * time.Second) }
			s.Must(d.RunNext(t.Context(), delivery.Email))
			want := map[string]int64{"skipped opted_out": 31, "skipped suppressed": 4, "skipped quiet_hours": 4}
			if got := s.reasons(c); !maps.Equal(got, want) {
				t.Errorf("exceptions %v, want %v", got, want)
			}
			s.reached(mail, 11)
			if b := s.settled(c); b.Sent != 11 || b.Skipped != 39 || b.InFlight != 0 {
				t.Errorf("books %+v", b)
			}
		})
	}
}
