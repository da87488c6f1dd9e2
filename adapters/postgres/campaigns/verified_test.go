package campaigns_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// TestEstimateOfVerifiedNumbers: in an audience of each kind, the users with verified numbers
// are counted.
func TestEstimateOfVerifiedNumbers(t *testing.T) {
	s := newTwoShops(t)
	tpl := s.fixture.Published(time.Hour)
	for id := user.ID(101); id <= 106; id++ {
		s.Exec(`insert into users (id, phone, locale, phone_verified_at) values ($1::bigint, '+861380000' || $1::bigint, case when $1::bigint < 104 then 'en' else 'de' end, case when $1::bigint % 2 = 0 then now() end)`, id)
		if id > 101 {
			s.Reserve(tpl, id, pgtest.Reminders(delivery.App, 5)...)
		}
	}
	german := s.segmentOf(staff.System(), segment.Leaf(segment.Locale, "", segment.OneOf, "de"))
	for what, c := range map[string]struct {
		audience campaign.Audience
		want     int64
	}{
		"everybody":   {campaign.Audience{Kind: campaign.Everybody}, 3},
		"named users": {campaign.Audience{Kind: campaign.Named, Users: []user.ID{101, 102, 103, 999}}, 1},
		"a drop's":    {campaign.Audience{Kind: campaign.Reserved, ID: tpl.ID}, 3},
		"a segment":   {campaign.Audience{Kind: campaign.Segment, ID: german.ID}, 2},
	} {
		if n, err := s.service.EstimateVerified(t.Context(), staff.System(), c.audience); n != c.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", what, n, err, c.want)
		}
	}
	if _, err := s.service.EstimateVerified(t.Context(), s.limited, campaign.Audience{Kind: campaign.Reserved, ID: s.theirs.ID}); err == nil {
		t.Error("a marketer of one shop is told about the users of another one's drop")
	}
}

// TestEstimateOfLocales: in an audience of each kind, users are counted by locale. Users without data
// have none.
func TestEstimateOfLocales(t *testing.T) {
	s := newTwoShops(t)
	tpl := s.fixture.Published(time.Hour)
	for id := user.ID(101); id <= 106; id++ {
		s.Exec(`insert into users (id, locale) values ($1::bigint, case when $1::bigint < 104 then 'en' else 'de' end)`, id)
		if id > 101 {
			s.Reserve(tpl, id, pgtest.Reminders(delivery.App, 5)...)
		}
	}
	german := s.segmentOf(staff.System(), segment.Leaf(segment.Locale, "", segment.OneOf, "de"))
	for what, c := range map[string]struct {
		audience campaign.Audience
		want     map[string]int64
	}{
		"everybody":   {campaign.Audience{Kind: campaign.Everybody}, map[string]int64{"en": 3, "de": 3, "": 2}},
		"named users": {campaign.Audience{Kind: campaign.Named, Users: []user.ID{101, 104, 999}}, map[string]int64{"en": 1, "de": 1, "": 1}},
		"a drop's":    {campaign.Audience{Kind: campaign.Reserved, ID: tpl.ID}, map[string]int64{"en": 2, "de": 3}},
		"a segment":   {campaign.Audience{Kind: campaign.Segment, ID: german.ID}, map[string]int64{"de": 3}},
	} {
		got, err := s.service.Locales(t.Context(), staff.System(), c.audience)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", what, err, diff)
		}
	}
	if _, err := s.service.Locales(t.Context(), s.limited, campaign.Audience{Kind: campaign.Reserved, ID: s.theirs.ID}); err == nil {
		t.Error("a marketer of one shop is told about the users of another one's drop")
	}
}
