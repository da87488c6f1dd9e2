package campaigns_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/user"
)

// gold makes a campaign by Li to a segment in which that many users were counted. One user
// matches now, and the campaign may be published without approval.
func (s *campaignFixture) gold(counted int) campaign.Campaign {
	s.Helper()
	rule := segment.Rule{Match: segment.All, Rules: []segment.Rule{segment.Leaf(segment.Attribute, "tier", segment.Is, "gold")}}
	g, err := s.Segments.CreateSegment(s.Context(), segment.Segment{Name: "Gold", Kind: segment.ByRules, Rule: rule}, "", pgtest.AboutSegment("segment.create"))
	s.Must(err)
	s.Exec(`update users set attributes = '{"tier":"gold"}' where id = 1`)
	s.Exec(`update segments set members = $1, counted_at = now()`, counted)
	sp := campaignSpec()
	toSegment(g.ID)(&sp)
	c, err := s.service.Create(s.Context(), li, sp, "")
	s.Must(err)
	c, err = s.service.Do(s.Context(), li, c.ID, 0, campaign.Publishing, "")
	s.Must(err)
	if c.State != campaign.Scheduled || c.ApprovalAskedAt != nil || c.PublishedBy != "staff:1 Li" {
		s.Fatalf("not published by one person: %+v", c)
	}
	return c
}

// imported gives all users tier gold, as an import of users does.
func (s *campaignFixture) imported() { s.Exec(`update users set attributes = '{"tier":"gold"}'`) }

// held wants the campaign to wait for approval, with so many users cut.
func (s *campaignFixture) held(c campaign.Campaign, reach, people int64) campaign.Request {
	s.Helper()
	got := s.now(c)
	if got.State != campaign.Paused || got.HeldAt == nil || got.ApprovalAskedAt == nil {
		s.Fatalf("the campaign is %s, held at %v", got.State, got.HeldAt)
	}
	v := s.review(c)
	if v.Open == nil || v.Open.AskedBy != li.Label || v.Open.Reach.Users != reach || !v.Open.Reach.Exact || v.Open.Allowed == nil || !v.Needed() || v.Lapsed() {
		s.Fatalf("the review is %+v", v)
	}
	if n := s.Number(`select people from campaigns where id = $1`, c.ID); n != people {
		s.Fatalf("%d people are cut, want %d", n, people)
	}
	return *v.Open
}

// Users who are imported after a publication do not circumvent the approval: no imported user
// gets the message before a second member approves. After the approval each user gets it once.
func TestImportingAfterPublishingAsksASecondPerson(t *testing.T) {
	s := newOffice(t)
	c := s.gold(1)
	s.imported()
	s.Must(s.launcher.Start(t.Context(), c.ID))
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	open := s.held(c, 20, 0)
	if n := s.Number(`select count(*) from batches where kind = 'campaign'`); n != 0 {
		t.Errorf("a held campaign has %d batches", n)
	}
	// Neither the sweep nor another cutter continues the cut. The member who published it cannot
	// approve it.
	s.Must(s.launcher.Sweep(t.Context()))
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	s.held(c, 20, 0)
	if _, cut, err := s.campaigns.Due(t.Context(), 0, 10); err != nil || len(cut) != 0 {
		t.Errorf("due to be cut: %v %v", cut, err)
	}
	for what, err := range map[string]error{
		"resume":            pgtest.ErrOf(s.service.Do(t.Context(), ada, c.ID, 0, campaign.Resuming, "")),
		"approve by Li":     pgtest.ErrOf(s.approvals.Approve(t.Context(), li, c.ID, open.ID, "")),
		"ask while it is":   pgtest.ErrOf(s.approvals.Ask(t.Context(), li, c.ID, "")),
		"publish once more": pgtest.ErrOf(s.service.Do(t.Context(), ada, c.ID, 0, campaign.Publishing, "")),
	} {
		if fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	sp := s.now(c).Spec
	sp.RatePerSecond = 7
	if _, err := s.service.Edit(t.Context(), li, c.ID, s.now(c).Version, sp); err != nil {
		t.Errorf("the rate of a held campaign: %v", err)
	}
	s.held(c, 20, 0)
	done, err := s.approvals.Approve(t.Context(), ada, c.ID, open.ID, "fine")
	if err != nil {
		t.Fatal(err)
	}
	want := done
	want.State, want.HeldAt, want.ApprovedBy = campaign.Running, nil, "staff:3 Ada"
	if diff := cmp.Diff(want, done); diff != "" {
		t.Fatalf("approved (-want +got):\n%s", diff)
	}
	if _, cut, err := s.campaigns.Due(t.Context(), 0, 10); err != nil || len(cut) != 1 {
		t.Errorf("due to be cut: %v %v", cut, err)
	}
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	if got := s.now(c); got.CutAt == nil || s.Number(`select people from campaigns`) != 20 || s.Number(`select count(*) from audit where action = 'campaign.hold'`) != 1 {
		t.Errorf("after the approval: %+v", got)
	}
}

// growing is a store whose audience grows once the first page of the cut has been read, as if
// users were imported meanwhile. The reader that counts the audience before the cut does not
// trigger the growth.
type growing struct {
	campaignsdb.Campaigns
	grow    func()
	readers *int
}

func (g growing) Audience(c campaign.Cut) campaign.AudienceReader {
	if *g.readers++; *g.readers != 2 {
		return g.Campaigns.Audience(c)
	}
	return &growingReader{AudienceReader: g.Campaigns.Audience(c), grow: g.grow}
}

type growingReader struct {
	campaign.AudienceReader
	grow func()
	once sync.Once
}

func (r *growingReader) Next(ctx context.Context, limit int) (users, strangers []user.ID, err error) {
	users, strangers, err = r.AudienceReader.Next(ctx, limit)
	r.once.Do(r.grow)
	return users, strangers, err
}

// A campaign that grows while it is being cut is held at the page that exceeds the limit. Pages
// that were cut before wait too. After the approval every message is sent once.
func TestGrowthWhileCuttingIsHeld(t *testing.T) {
	s := newCampaignFixture(t)
	s.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 120000)`)
	s.users(150_000, 1)
	s.Exec(`update users set attributes = '{"tier":"gold"}' where id <= 100000`)
	c := s.gold(100_000)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	l := *s.launcher
	l.Store = growing{s.campaigns, s.imported, new(int)}
	s.Must(l.Cut(t.Context(), c.ID))
	open := s.held(c, 150_000, 100_000)
	if n := s.Number(`select count(*) from batches where not held`); n != 0 || s.Number(`select count(*) from batches`) != 100 {
		t.Errorf("%d batches of a held campaign are not held", n)
	}
	if _, err := s.approvals.Approve(t.Context(), ada, c.ID, open.ID, ""); err != nil {
		t.Fatal(err)
	}
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	b, err := s.campaigns.Balance(t.Context(), c.ID)
	if err != nil || b.Counted.Reserved != 150_000 || b.Twice != 0 || b.Difference() != 0 || s.Number(`select count(*) from batches where held`) != 0 {
		t.Errorf("the balance is %+v %v", b, err)
	}
}

// Of two cutters that find the growth concurrently one holds the campaign, once. A cutter whose
// lease was taken over stores nothing.
func TestTwoCuttersHoldOnce(t *testing.T) {
	s := newOffice(t)
	c := s.gold(1)
	s.imported()
	s.Must(s.launcher.Start(t.Context(), c.ID))
	late, err := s.campaigns.BeginCut(t.Context(), c.ID, time.Nanosecond)
	s.Must(err)
	var cutters sync.WaitGroup
	for range 4 {
		cutters.Go(func() { s.Must(s.launcher.Cut(context.Background(), c.ID)) })
	}
	cutters.Wait()
	s.held(c, 20, 0)
	allowed := int64(5)
	err = s.campaigns.Hold(t.Context(), late, campaign.Change{Campaign: late.Campaign, Step: campaign.Pausing, Ask: &campaign.Request{Allowed: &allowed}, Entry: pgtest.AboutSegment("campaign.hold")})
	if err == nil || s.Number(`select count(*) from campaign_requests`) != 1 || s.Number(`select count(*) from audit where action = 'campaign.hold'`) != 1 {
		t.Errorf("held twice: %v", err)
	}
}

// A held campaign whose request is refused stays held, and approval can be requested again. A
// higher limit releases the campaign. The campaign ends when its time is over.
func TestLeavesOfAHeldCampaign(t *testing.T) {
	hold := func(t *testing.T) (*campaignFixture, campaign.Campaign, campaign.Request) {
		s := newOffice(t)
		c := s.gold(1)
		s.imported()
		s.Must(s.launcher.Start(t.Context(), c.ID))
		s.Must(s.launcher.Cut(t.Context(), c.ID))
		return s, c, s.held(c, 20, 0)
	}
	t.Run("refused", func(t *testing.T) {
		s, c, open := hold(t)
		got, err := s.approvals.Refuse(t.Context(), ada, c.ID, open.ID, "too many")
		if err != nil || got.State != campaign.Paused || got.HeldAt == nil || got.ApprovalAskedAt != nil {
			t.Fatalf("refused: %+v %v", got, err)
		}
		if _, err := s.service.Do(t.Context(), ada, c.ID, 0, campaign.Resuming, ""); !errors.Is(err, approval.ErrApproval) {
			t.Errorf("resume: %v", err)
		}
		_, err = s.approvals.Ask(t.Context(), li, c.ID, "they agreed")
		s.Must(err)
		if v := s.review(c); v.Open == nil || v.Open.Reach.Users != 20 {
			t.Errorf("asked again: %+v", v)
		}
		ended, err := s.service.Do(t.Context(), li, c.ID, 0, campaign.Cancelling, "")
		if err != nil || ended.HeldAt != nil || s.Number(`select count(*) from campaign_requests where state = 'asked'`) != 0 {
			t.Errorf("cancelled: %+v %v", ended, err)
		}
	})
	t.Run("limit lifted", func(t *testing.T) {
		s, c, _ := hold(t)
		s.Exec(`update campaign_limits set approval_above = 20`)
		if s.review(c).Needed() {
			t.Error("a second person is needed for what one may send alone")
		}
		got, err := s.service.Do(t.Context(), li, c.ID, 0, campaign.Resuming, "")
		if err != nil || got.State != campaign.Running || got.HeldAt != nil {
			t.Fatalf("resumed: %+v %v", got, err)
		}
		s.Must(s.launcher.Cut(t.Context(), c.ID))
		if n := s.Number(`select people from campaigns`); n != 20 {
			t.Errorf("%d people", n)
		}
	})
	t.Run("too late", func(t *testing.T) {
		s, c, open := hold(t)
		s.Exec(`update campaigns set ends_at = clock_timestamp(), starts_at = clock_timestamp() - interval '1 hour'`)
		if _, err := s.approvals.Approve(t.Context(), ada, c.ID, open.ID, ""); fault.KindOf(err) == 0 {
			t.Errorf("approved after its end: %v", err)
		}
		for range 2 {
			_, err := s.campaigns.Settle(t.Context())
			s.Must(err)
		}
		if got := s.now(c); got.State != campaign.Finished || got.Reason != "approval_missing" || got.HeldAt != nil || s.Number(`select count(*) from campaign_requests where state = 'asked'`) != 0 {
			t.Errorf("after its end: %s %q", got.State, got.Reason)
		}
	})
	t.Run("approved before", func(t *testing.T) {
		s := newOffice(t)
		c, open := s.asked(func(sp *campaign.Spec) {
			sp.StartsAt = pgtest.Clock().Add(-time.Second)
			sp.Audience = campaign.Audience{Kind: campaign.Everybody}
		})
		_, err := s.approvals.Approve(t.Context(), ada, c.ID, open.ID, "")
		s.Must(err)
		s.Exec(`insert into users (id, created_at) select i, now() - interval '1 day' from generate_series(21, 24) i`)
		s.Must(s.launcher.Start(t.Context(), c.ID))
		s.Must(s.launcher.Cut(t.Context(), c.ID))
		if got := s.now(c); got.State != campaign.Running || got.CutAt == nil {
			t.Errorf("within a fifth of what was approved: %+v", got)
		}
	})
	t.Run("grown beyond what was approved", func(t *testing.T) {
		s := newOffice(t)
		c, open := s.asked(func(sp *campaign.Spec) { sp.StartsAt = pgtest.Clock().Add(-time.Second) })
		_, err := s.approvals.Approve(t.Context(), ada, c.ID, open.ID, "")
		s.Must(err)
		s.Exec(`insert into users (id, created_at) select i, now() - interval '1 day' from generate_series(21, 25) i`)
		s.Must(s.launcher.Start(t.Context(), c.ID))
		s.Must(s.launcher.Cut(t.Context(), c.ID))
		s.held(c, 25, 0)
	})
}
