package campaigns_test

import (
	"errors"
	"strconv"
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// twoShops is a fixture with a template in shop 10 and a template in shop 11, each reserved by a
// user, and a marketer of shop 10.
type twoShops struct {
	*campaignFixture
	mine, theirs template.Template
	limited      staff.Actor
	segments     *segment.Service
}

func newTwoShops(t *testing.T) *twoShops {
	s := &twoShops{campaignFixture: newCampaignFixture(t), limited: staff.Actor{Label: "staff:10", Name: "Mo", Role: staff.Marketer, Shops: []int64{10}}}
	s.segments = &segment.Service{Store: s.Segments}
	s.users(2, 1)
	s.mine = s.fixture.Do(s.Draft(nil), template.Publishing)
	s.theirs = s.fixture.Do(s.Draft(func(sp *template.Spec) { sp.ShopNumber = 11 }), template.Publishing)
	s.Reserve(s.mine, 1, pgtest.Reminders(delivery.App, 10)...)
	s.Reserve(s.theirs, 2, pgtest.Reminders(delivery.App, 10)...)
	return s
}

func reserved(ids ...int64) segment.Rule {
	x := segment.Leaf(segment.Reserved, "", segment.Template)
	for _, id := range ids {
		x.Condition.Values = append(x.Condition.Values, strconv.FormatInt(id, 10))
	}
	return segment.Rule{Match: segment.Any, Rules: []segment.Rule{x}}
}

func (s *twoShops) segmentOf(by staff.Actor, r segment.Rule) segment.Segment {
	s.Helper()
	g, err := s.segments.Create(s.Context(), by, segment.Spec{Name: "Reserved", Rule: r}, "")
	s.Must(err)
	return g
}

func (s *twoShops) save(g segment.Segment, r segment.Rule) segment.Segment {
	s.Helper()
	g, err := s.segments.Save(s.Context(), staff.System(), g.ID, g.Version, segment.Spec{Name: g.Name, Rule: r})
	s.Must(err)
	return g
}

func ofShop(shop, segmentID int64) campaign.Spec {
	sp := campaignSpec()
	sp.Shop, sp.Audience = shop, campaign.Audience{Kind: campaign.Segment, ID: segmentID}
	return sp
}

// A segment about another shop's template is refused wherever a marketer of one shop uses it. It
// is also refused to a campaign of the shop that a member of all shops publishes.
func TestASegmentAboutAnotherShopReachesNobody(t *testing.T) {
	s := newTwoShops(t)
	theirs, mine := s.segmentOf(staff.System(), reserved(s.mine.ID, s.theirs.ID)), s.segmentOf(s.limited, reserved(s.mine.ID))
	invalid := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := s.segments.Create(t.Context(), s.limited, segment.Spec{Name: "x", Rule: reserved(s.theirs.ID)}, "")
	invalid("create segment", err)
	_, err = s.segments.Estimate(t.Context(), s.limited, reserved(s.theirs.ID))
	invalid("estimate", err)
	_, _, err = s.service.Estimate(t.Context(), s.limited, campaign.Audience{Kind: campaign.Segment, ID: theirs.ID})
	invalid("estimate audience", err)
	if n, _, err := s.service.Estimate(t.Context(), s.limited, campaign.Audience{Kind: campaign.Segment, ID: mine.ID}); err != nil || n != 1 {
		t.Errorf("the own shop's segment: %d, %v", n, err)
	}
	for who, by := range map[string]staff.Actor{"of the shop": s.limited, "of all shops": staff.System()} {
		_, err = s.service.Create(t.Context(), by, ofShop(10, theirs.ID), "")
		invalid("draft by a marketer "+who, err)
	}
	if n := s.Number(`select count(*) from segments`) + s.Number(`select count(*) from campaigns`); n != 2 {
		t.Errorf("%d rows after refusals", n)
	}
	// A member of all shops edits the segment after the draft was made.
	c, err := s.service.Create(t.Context(), s.limited, ofShop(10, mine.ID), "")
	s.Must(err)
	s.save(mine, reserved(s.theirs.ID))
	_, err = s.service.Do(t.Context(), s.limited, c.ID, 0, campaign.Publishing, "")
	invalid("publish", err)
	// A campaign of no shop may be about any, for staff of all shops.
	sp := ofShop(0, theirs.ID)
	sp.Name = "For all"
	c, err = s.service.Create(t.Context(), staff.System(), sp, "")
	s.Must(err)
	_, err = s.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Publishing, "")
	s.Must(err)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	if n := s.Number(`select people from campaigns where id = $1`, c.ID); n != 2 {
		t.Errorf("%d people of both shops", n)
	}
}

// An approved campaign is checked as well.
func TestConsentToASegmentAboutAnotherShop(t *testing.T) {
	s := newTwoShops(t)
	s.Exec(`insert into campaign_limits (shop_number, approval_above) values (10, 1)`)
	g := s.segmentOf(staff.System(), segment.Rule{Match: segment.None, Rules: []segment.Rule{reserved(9_999)}})
	g = s.save(g, segment.Everybody())
	c, err := s.service.Create(t.Context(), s.limited, ofShop(10, g.ID), "")
	s.Must(err)
	_, err = s.service.Do(t.Context(), s.limited, c.ID, 0, campaign.Publishing, "")
	s.Must(err)
	// As no form would store it.
	about := segment.Rule{Match: segment.None, Rules: []segment.Rule{segment.Leaf(segment.Claimed, "", segment.WithinDays, "3"), reserved(s.theirs.ID)}}
	s.Exec(`update segments set rule = $2 where id = $1`, g.ID, about)
	s.Exec(`update campaign_requests set segment_rule = $1`, about)
	open := s.review(c).Open
	for what, err := range map[string]error{
		"approve": pgtest.ErrOf(s.approvals.Approve(t.Context(), ada, c.ID, open.ID, "")),
		"publish": pgtest.ErrOf(s.service.Do(t.Context(), ada, c.ID, 0, campaign.Publishing, "")),
	} {
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A published campaign fails before any user is reached if its frozen rule is about another
// shop's template, or if the template of its draft was moved to another shop.
func TestTheCutLooksAtShopsAgain(t *testing.T) {
	for name, change := range map[string]func(*twoShops, campaign.Campaign){
		"kept rule": func(s *twoShops, c campaign.Campaign) {
			s.Exec(`update campaigns set segment_rule = $2 where id = $1`, c.ID, reserved(s.mine.ID, s.theirs.ID))
		},
		"template of another shop": func(s *twoShops, c campaign.Campaign) { s.Exec(`update templates set shop_number = 11`) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTwoShops(t)
			g := s.segmentOf(s.limited, reserved(s.mine.ID))
			c, err := s.service.Create(t.Context(), s.limited, ofShop(10, g.ID), "")
			s.Must(err)
			_, err = s.service.Do(t.Context(), s.limited, c.ID, 0, campaign.Publishing, "")
			s.Must(err)
			change(s, c)
			s.Must(s.launcher.Start(t.Context(), c.ID))
			s.Must(s.launcher.Cut(t.Context(), c.ID))
			got := s.now(c)
			if got.State != campaign.Failed || got.Reason != "audience_other_shop" || s.Number(`select people from campaigns`) != 0 {
				t.Errorf("%s: %s %q", name, got.State, got.Reason)
			}
			s.Must(s.launcher.Cut(t.Context(), c.ID))
		})
	}
}
