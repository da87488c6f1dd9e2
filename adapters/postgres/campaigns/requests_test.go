package campaigns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
)

var (
	li  = staff.Actor{Label: "staff:1", Name: "Li", Role: staff.Marketer}
	wu  = staff.Actor{Label: "staff:2", Name: "Wu", Role: staff.Marketer}
	ada = staff.Actor{Label: "staff:3", Name: "Ada", Role: staff.Marketer}
)

// newOffice is a fixture with twenty users; users with even ids read French. Campaigns to more
// than five users need approval.
func newOffice(t *testing.T) *campaignFixture {
	s := newCampaignFixture(t)
	s.users(20, 1)
	s.Exec(`update users set locale = case when id % 2 = 0 then 'fr' else 'en' end`)
	s.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	return s
}

// asked returns a draft by Li for which Li has asked.
func (s *campaignFixture) asked(change func(*campaign.Spec)) (campaign.Campaign, campaign.Request) {
	s.Helper()
	sp := campaignSpec()
	sp.StartsAt, sp.EndsAt = pgtest.Clock().Add(time.Hour), pgtest.Clock().Add(2*time.Hour)
	if change != nil {
		change(&sp)
	}
	c, err := s.service.Create(s.Context(), li, sp, "")
	s.Must(err)
	c, err = s.service.Do(s.Context(), li, c.ID, 0, campaign.Publishing, "spring is near")
	s.Must(err)
	v := s.review(c)
	if v.Open == nil || c.State != campaign.Draft || c.ApprovalAskedAt == nil {
		s.Fatalf("not asked: %+v", c)
	}
	return c, *v.Open
}

func (s *campaignFixture) review(c campaign.Campaign) approval.Review {
	s.Helper()
	v, err := s.approvals.Review(s.Context(), ada, c.ID)
	s.Must(err)
	return v
}

// readers makes a segment of the users who read the language.
func (s *campaignFixture) readers(language string) segment.Segment {
	s.Helper()
	g, err := s.Segments.CreateSegment(s.Context(), segment.Segment{Name: "Readers", Kind: segment.ByRules, Rule: reading(language)}, "", pgtest.AboutSegment("segment.create"))
	s.Must(err)
	return g
}

func reading(language string) segment.Rule {
	return segment.Rule{Match: segment.All, Rules: []segment.Rule{segment.Leaf(segment.Locale, "", segment.Is, language)}}
}

func toSegment(id int64) func(*campaign.Spec) {
	return func(sp *campaign.Spec) { sp.Audience = campaign.Audience{Kind: campaign.Segment, ID: id} }
}

func TestApprovalShowsWhatWasAskedFor(t *testing.T) {
	s := newOffice(t)
	c, open := s.asked(nil)
	if open.AskedBy != li.Label || open.Reason != "spring is near" || open.Reach.Users != 20 || !open.Reach.Exact || open.Reach.At.IsZero() ||
		len(open.Differences(campaign.Snapshot{Spec: c.Spec})) != 0 {
		t.Errorf("the request is %+v", open)
	}
	v := s.review(c)
	if v.Lapsed() || v.Base() != nil || v.MayDecide(li) || !v.MayDecide(ada) || v.Reach == nil || v.Reach.Users != 20 {
		t.Errorf("the review is %+v", v)
	}
	for name, err := range map[string]error{
		"who asked":            pgtest.ErrOf(s.approvals.Approve(t.Context(), li, c.ID, open.ID, "")),
		"asking again":         pgtest.ErrOf(s.approvals.Ask(t.Context(), wu, c.ID, "")),
		"publishing as before": pgtest.ErrOf(s.service.Do(t.Context(), li, c.ID, 0, campaign.Publishing, "")),
	} {
		if !errors.Is(err, approval.ErrApproval) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.approvals.Approve(t.Context(), staff.Actor{Label: "staff:9", Role: staff.Viewer}, c.ID, open.ID, ""); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("a viewer: %v", err)
	}
	if _, err := s.approvals.Refuse(t.Context(), ada, c.ID, open.ID, " "); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a refusal without a reason: %v", err)
	}
	refused, err := s.approvals.Refuse(t.Context(), ada, c.ID, open.ID, "no text in French")
	if err != nil || refused.State != campaign.Draft || refused.ApprovalAskedAt != nil {
		t.Fatalf("refused: %+v %v", refused, err)
	}
	if _, err := s.approvals.Approve(t.Context(), ada, c.ID, open.ID, ""); !errors.Is(err, approval.ErrLapsed) {
		t.Errorf("approved what was refused: %v", err)
	}
	changed := refused.Spec
	changed.Content.Variants[0].Texts["fr"] = changed.Content.Variants[0].Texts[""]
	_, err = s.service.Edit(t.Context(), li, c.ID, refused.Version, changed)
	s.Must(err)
	_, err = s.approvals.Ask(t.Context(), li, c.ID, "now with French")
	s.Must(err)
	v = s.review(c)
	if v.Base() == nil || v.Base().ID != open.ID || v.Base().DecidedReason != "no text in French" || v.Base().DecidedBy != "staff:3 Ada" {
		t.Fatalf("the request before is %+v", v.Before)
	}
	if got := v.Base().Differences(v.Now); !slices.Equal(got, []string{"title.fr", "body.fr"}) {
		t.Errorf("changed since: %v", got)
	}
	done, err := s.approvals.Approve(t.Context(), ada, c.ID, v.Open.ID, "fine")
	if err != nil {
		t.Fatal(err)
	}
	want := done
	want.State, want.ApprovedBy, want.ApprovalAskedAt = campaign.Scheduled, "staff:3 Ada", nil
	if diff := cmp.Diff(want, done); diff != "" {
		t.Fatalf("approved (-want +got):\n%s", diff)
	}
	if _, err := s.approvals.Approve(t.Context(), ada, c.ID, v.Open.ID, ""); !errors.Is(err, campaign.ErrTransition) {
		t.Errorf("approved twice: %v", err)
	}
	if n := s.Number(`select count(*) from campaign_requests where state in ('refused', 'approved')`); n != 2 {
		t.Errorf("%d requests decided", n)
	}
	if n := s.Number(`select count(*) from audit where action in ('campaign.ask', 'campaign.refuse', 'campaign.approve') and reason <> ''`); n != 4 {
		t.Errorf("%d records with their reasons", n)
	}
}

func TestEditedCampaignIsNotApproved(t *testing.T) {
	s := newOffice(t)
	c, seen := s.asked(nil)
	changed := c.Spec
	changed.Content = text("Hello", "Everything is free")
	edited, err := s.service.Edit(t.Context(), wu, c.ID, c.Version, changed)
	s.Must(err)
	if edited.ApprovalAskedAt != nil {
		t.Error("still waits for approval")
	}
	if _, err := s.approvals.Approve(t.Context(), ada, c.ID, seen.ID, ""); !errors.Is(err, approval.ErrLapsed) {
		t.Errorf("approved the edited one: %v", err)
	}
	// Both versions can be shown.
	v := s.review(c)
	if v.Open != nil || v.Base() == nil || v.Base().ID != seen.ID || v.Base().State != campaign.RequestLapsed || !slices.Equal(v.Base().Differences(v.Now), []string{"body"}) {
		t.Errorf("the review is %+v", v)
	}
	// A new request for approval is a separate request.
	_, err = s.approvals.Ask(t.Context(), wu, c.ID, "")
	s.Must(err)
	if _, err := s.approvals.Approve(t.Context(), ada, c.ID, seen.ID, ""); !errors.Is(err, approval.ErrLapsed) {
		t.Errorf("approved by the number of the old request: %v", err)
	}
	// A cancelled draft leaves no request behind.
	_, err = s.service.Do(t.Context(), li, c.ID, 0, campaign.Cancelling, "")
	s.Must(err)
	if n := s.Number(`select count(*) from campaign_requests where state = 'asked'`); n != 0 {
		t.Errorf("%d requests wait for a cancelled campaign", n)
	}
}

// TestEditWhileApproving edits and approves concurrently, again and again: either the approved
// version is published, or nothing is.
func TestEditWhileApproving(t *testing.T) {
	s := newOffice(t)
	outcomes := map[string]int{}
	for i := range 25 {
		c, seen := s.asked(func(sp *campaign.Spec) { sp.Name = fmt.Sprint("race ", i) })
		changed := c.Spec
		changed.Content = text("Hello", "Everything is free")
		var both sync.WaitGroup
		var edited, approved error
		both.Go(func() { _, edited = s.service.Edit(context.Background(), wu, c.ID, c.Version, changed) })
		both.Go(func() {
			// By the number of the request, and as the API's second publication.
			if i%2 == 0 {
				_, approved = s.approvals.Approve(context.Background(), ada, c.ID, seen.ID, "")
			} else {
				_, approved = s.service.Do(context.Background(), ada, c.ID, c.Version, campaign.Publishing, "")
			}
		})
		both.Wait()
		switch now := s.now(c); {
		case now.State == campaign.Scheduled:
			outcomes["approved"]++
			if !now.Content.Equal(seen.Content) || edited == nil || approved != nil {
				t.Errorf("published %v; edit: %v, approval: %v", now.Content, edited, approved)
			}
			if n := s.Number(`select count(*) from campaign_requests where id = $1 and state = 'approved'`, seen.ID); n != 1 {
				t.Error("published without its request being approved")
			}
		default:
			outcomes["edited"]++
			if edited != nil || !errors.Is(approved, approval.ErrLapsed) && !errors.Is(approved, fault.ErrStale) {
				t.Errorf("still a draft; edit: %v, approval: %v", edited, approved)
			}
		}
	}
	t.Log(outcomes)
}

// TestApprovalHoldsTheRule changes the rule of the segment after approval was
// requested: the approval is refused, and a new request is needed.
func TestApprovalHoldsTheRule(t *testing.T) {
	s := newOffice(t)
	segments := s.Segments
	g := s.readers("fr")
	c, seen := s.asked(toSegment(g.ID))
	if seen.Rule == nil || seen.Rule.Version != g.Version {
		t.Fatalf("asked for rule %+v", seen.Rule)
	}
	g.Name = "Renamed"
	g, err := segments.SaveSegment(t.Context(), g, pgtest.AboutSegment("segment.save"))
	s.Must(err)
	if s.review(c).Lapsed() {
		t.Error("a new name ends the request")
	}
	g.Rule = reading("en")
	g, err = segments.SaveSegment(t.Context(), g, pgtest.AboutSegment("segment.save"))
	s.Must(err)
	v := s.review(c)
	if !v.Lapsed() || v.Base() == nil || v.Base().ID != seen.ID || !slices.Equal(v.Base().Differences(v.Now), []string{"rule"}) {
		t.Fatalf("the review is %+v", v)
	}
	for name, err := range map[string]error{"approve": pgtest.ErrOf(s.approvals.Approve(t.Context(), ada, c.ID, seen.ID, "")),
		"publish": pgtest.ErrOf(s.service.Do(t.Context(), ada, c.ID, 0, campaign.Publishing, ""))} {
		if !errors.Is(err, approval.ErrLapsed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again, err := s.service.Do(t.Context(), li, c.ID, 0, campaign.Publishing, "for the English"); err != nil || again.State != campaign.Draft {
		t.Fatalf("asked again: %s %v", again.State, err)
	}
	v = s.review(c)
	if v.Lapsed() || v.Open.ID == seen.ID || v.Open.Rule.Version != g.Version {
		t.Fatalf("the new request is %+v", v.Open)
	}
	done, err := s.approvals.Approve(t.Context(), ada, c.ID, v.Open.ID, "")
	if err != nil || done.Rule == nil || done.Rule.Version != g.Version {
		t.Errorf("approved: %+v %v", done.Rule, err)
	}
}

// TestRuleChangesWhileApproving saves the segment concurrently with the approval: either the
// rule in the request is published, or nothing is.
func TestRuleChangesWhileApproving(t *testing.T) {
	s := newOffice(t)
	segments := s.Segments
	for i := range 20 {
		g := s.readers("fr")
		c, seen := s.asked(func(sp *campaign.Spec) { toSegment(g.ID)(sp); sp.Name = fmt.Sprint("rule ", i) })
		g.Rule = reading("en")
		var both sync.WaitGroup
		var saved, approved error
		both.Go(func() { _, saved = segments.SaveSegment(context.Background(), g, pgtest.AboutSegment("segment.save")) })
		both.Go(func() { _, approved = s.approvals.Approve(context.Background(), ada, c.ID, seen.ID, "") })
		both.Wait()
		s.Must(saved)
		now := s.now(c)
		if now.State == campaign.Scheduled && !now.Rule.Same(seen.Rule) {
			t.Errorf("published by version %d, asked for %d", now.Rule.Version, seen.Rule.Version)
		}
		if (now.State == campaign.Scheduled) != (approved == nil) || approved != nil && !errors.Is(approved, approval.ErrLapsed) {
			t.Errorf("%s, approval: %v", now.State, approved)
		}
	}
}

// TestPublishWhileTheRuleIsEdited publishes campaigns while their segment is saved over and
// over. Each campaign is sent by one stored version of the rule, to exactly the users who match
// that version, whatever rule the segment has at the cut.
func TestPublishWhileTheRuleIsEdited(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(300, 1)
	s.Exec(`update users set locale = case when id % 2 = 0 then 'fr' else 'en' end`)
	segments := s.Segments
	g := s.readers("fr")
	history := map[int64]string{g.Version: "fr"}
	var list []campaign.Campaign
	for i := range 20 {
		sp := campaignSpec()
		sp.Name = fmt.Sprint("campaign ", i)
		toSegment(g.ID)(&sp)
		c, err := s.service.Create(t.Context(), staff.System(), sp, "")
		s.Must(err)
		list = append(list, c)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			language := []string{"en", "fr"}[i%2]
			g.Rule = reading(language)
			next, err := segments.SaveSegment(context.Background(), g, pgtest.AboutSegment("segment.save"))
			if err != nil {
				stopped <- err
				return
			}
			g = next
			history[g.Version] = language
		}
	}()
	published := 0
	for _, c := range list {
		_, err := s.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Publishing, "")
		if err == nil {
			published++
		} else if !errors.Is(err, fault.ErrStale) { // the segment was faster five times
			t.Fatal(err)
		}
	}
	close(stop)
	s.Must(<-stopped)
	if published == 0 {
		t.Fatal("none was published")
	}
	for _, c := range list {
		c = s.now(c)
		if c.State == campaign.Draft {
			continue
		}
		language := ""
		if c.Rule != nil {
			language = history[c.Rule.Version]
		}
		if language == "" || !c.Rule.Same(&campaign.FrozenRule{SegmentID: g.ID, Kind: segment.ByRules, Rule: reading(language)}) {
			t.Fatalf("published by %+v, which there never was", c.Rule)
		}
		s.Must(s.launcher.Start(t.Context(), c.ID))
		s.Must(s.launcher.Cut(t.Context(), c.ID))
		if n := s.Number(`select count(*) from batches b where kind = 'campaign' and owner_id = $1 and due_count = 150 and from_user % 2 = $2 and to_user % 2 = $2`,
			c.ID, map[string]int{"fr": 0, "en": 1}[language]); n != 1 {
			t.Errorf("campaign %d was not sent to those who read %s", c.ID, language)
		}
		s.books(c)
	}
}

func TestLimitsAreForAdminsAndKeptOnce(t *testing.T) {
	s := newCampaignFixture(t)
	s.Exec(`insert into shops (number, name, timezone) values (10, 'Tea', 'UTC')`)
	boss := staff.Actor{Label: "staff:9", Name: "Boss", Role: staff.Admin}
	one, two := campaign.Limits{PerDay: 1, PerWeek: 3, ApprovalAbove: 1000}, campaign.Limits{PerDay: 2}
	for _, by := range []staff.Actor{li, {Label: "staff:8", Role: staff.Operator}, {Label: "staff:7", Role: staff.Admin, Shops: []int64{11}}} {
		if err := s.service.SetLimits(t.Context(), by, 10, nil, one); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("%s: %v", by.Role, err)
		}
	}
	if err := s.service.SetLimits(t.Context(), staff.Actor{Label: "staff:7", Role: staff.Admin, Shops: []int64{10}}, 0, nil, one); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("an admin of one shop, for campaigns of none: %v", err)
	}
	if err := s.service.SetLimits(t.Context(), boss, 99, nil, one); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an unknown shop: %v", err)
	}
	// Two members change the limits concurrently after reading the same version: one of them
	// gets an error.
	results := make([]error, 2)
	var both sync.WaitGroup
	for i, l := range []campaign.Limits{one, two} {
		both.Go(func() { results[i] = s.service.SetLimits(context.Background(), boss, 10, &campaign.Limits{}, l) })
	}
	both.Wait()
	if (results[0] == nil) == (results[1] == nil) || !errors.Is(errors.Join(results...), fault.ErrStale) {
		t.Fatalf("both: %v", results)
	}
	s.Must(s.service.SetLimits(t.Context(), boss, 10, nil, campaign.Limits{PerWeek: 7}))
	s.Must(s.service.SetLimits(t.Context(), boss, 10, nil, campaign.Limits{PerWeek: 7})) // changes nothing
	if n := s.Number(`select count(*) from audit where action = 'campaign.limits'`); n != 2 {
		t.Errorf("%d records of two changes", n)
	}
	if n := s.Number(`select count(*) from audit where action = 'campaign.limits' and (before ->> 'PerDay')::int > 0 and (after ->> 'PerWeek')::int = 7`); n != 1 {
		t.Error("the record does not say what it was before")
	}
}

// A request waits for the members who may decide it: neither the member who asked nor the creator,
// and only members of its shop.
func TestRequestsThatAwaitAMember(t *testing.T) {
	s := newOffice(t)
	c, r := s.asked(nil)
	waiting := func(by staff.Actor) (ids []int64) {
		t.Helper()
		list, err := s.approvals.Awaiting(t.Context(), by, 5)
		s.Must(err)
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	limited := staff.Actor{Label: "staff:9", Role: staff.Marketer, Shops: []int64{77}}
	viewer := staff.Actor{Label: "staff:8", Role: staff.Viewer}
	for name, by := range map[string]staff.Actor{"the member who asked": li, "a member of another shop": limited, "a viewer": viewer} {
		if ids := waiting(by); len(ids) != 0 {
			t.Errorf("%s is shown %v", name, ids)
		}
	}
	if diff := cmp.Diff([]int64{r.ID}, waiting(ada)); diff != "" {
		t.Error(diff)
	}
	s.Exec(`update campaigns set creator = 'staff:3' where id = $1`, c.ID)
	if ids := waiting(ada); len(ids) != 0 {
		t.Errorf("the creator is shown %v", ids)
	}
	_, err := s.approvals.Refuse(t.Context(), wu, c.ID, r.ID, "too soon")
	s.Must(err)
	if ids := waiting(wu); len(ids) != 0 {
		t.Errorf("a decided request waits: %v", ids)
	}
}
