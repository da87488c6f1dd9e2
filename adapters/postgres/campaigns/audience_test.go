package campaigns_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/user"
)

// TestAudienceInParts reads the users of a template in many parts, with pages that end in the
// middle of a part, and from every position at which a cut may continue.
func TestAudienceInParts(t *testing.T) {
	s := newCampaignFixture(t)
	tpl := s.fixture.Published(time.Hour)
	var all []user.ID
	for i := range 300 { // lies close together, far apart, and at the ends
		all = append(all, user.ID(i*i*i+1))
	}
	all = append(all, math.MaxInt64-1, math.MaxInt64)
	s.Exec(`insert into users (id) select u from unnest($1::bigint[]) u where u % 3 <> 0`, all)
	s.Exec(`insert into reservations (template_id, user_id, slots, created_at) select $1, u, 1, now() - interval '1 hour'
		from unnest($2::bigint[]) u order by md5(u::text)`, tpl.ID, all)
	for range 2 {
		s.Fill("coupons", "reservations order by md5(user_id::text)", pgtest.Row{"template_id": tpl.ID, "user_id": pgtest.SQL("user_id"), "issued_at": pgtest.SQL("now() - interval '1 hour'")})
	}
	s.Exec(`insert into reservations (template_id, user_id, slots, created_at) values ($1, 3, 1, now() + interval '1 hour')`, tpl.ID)
	s.Insert("coupons", pgtest.Row{"template_id": tpl.ID, "user_id": 3, "issued_at": pgtest.SQL("now() + interval '1 hour'")},
		pgtest.Row{"template_id": tpl.ID, "user_id": 4, "state": "used"},
		pgtest.Row{"template_id": tpl.ID, "user_id": 5, "issued_at": pgtest.SQL("now() - interval '2 days'"), "expires_at": pgtest.SQL("now() - interval '1 second'")}) // not swept yet
	// No user is left out when the edges are out of date.
	s.Exec(`insert into claim_counts (template_id, user_id, issued) values ($1, 10, 1), ($1, 9000000, 1)`, tpl.ID)
	for _, expected := range []int64{0, 150_000, 9_000_000} {
		s.Exec(`update templates set stock = 1000000000, issued = $2 where id = $1`, tpl.ID, expected)
		s.Exec(`insert into bookings (template_id, slot, channel, booked) values ($1, 1, 0, $2)
			on conflict (template_id, slot, channel) do update set booked = excluded.booked`, tpl.ID, expected)
		for _, kind := range []campaign.AudienceKind{campaign.Reserved, campaign.Holds} {
			for _, after := range []user.ID{0, 1, 2, all[150], math.MaxInt64 - 1, math.MaxInt64} {
				about := fmt.Sprintf("%s after %d, %d expected", kind, after, expected)
				c := campaign.Cut{After: after, Campaign: campaign.Campaign{StartedAt: new(time.Now()), Spec: campaign.Spec{Audience: campaign.Audience{Kind: kind, ID: tpl.ID}}}}
				s.wantAudience(about, c, slices.DeleteFunc(slices.Clone(all), func(id user.ID) bool { return id <= after }))
			}
		}
	}
}

// wantAudience expects these users in full pages. Users whose id is divisible by three are
// expected as strangers.
func (s *campaignFixture) wantAudience(about string, c campaign.Cut, want []user.ID) {
	s.Helper()
	const limit = 70
	reader := campaignsdb.NewCampaigns(s.DB, s.Segments).Audience(c)
	var got []user.ID
	for {
		users, strangers, err := reader.Next(s.Context(), limit)
		s.Must(err)
		known := slices.DeleteFunc(slices.Clone(users), func(id user.ID) bool { return id%3 != 0 })
		if !slices.Equal(strangers, known) {
			s.Fatalf("%s: strangers %v, want %v", about, strangers, known)
		}
		if got = append(got, users...); len(users) < limit {
			break
		}
	}
	if !slices.Equal(got, want) {
		s.Fatalf("%s: %d users %v, want %d %v", about, len(got), got, len(want), want)
	}
}
