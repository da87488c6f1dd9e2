package campaigns_test

import (
	"errors"
	"strings"
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
)

// Leaving the shop out does not evade its rule.
func TestCampaignOfNoShopNeedsApproval(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(20, 1)
	s.Exec(`insert into campaign_limits (shop_number, approval_above) values (9, 50), (10, 5), (11, 0)`)
	publish := func() campaign.Campaign {
		c, err := s.service.Create(t.Context(), li, campaignSpec(), "")
		s.Must(err)
		c, err = s.service.Do(t.Context(), li, c.ID, 0, campaign.Publishing, "")
		s.Must(err)
		return c
	}
	if c := publish(); c.State != campaign.Draft || c.ApprovalAskedAt == nil {
		t.Errorf("published by one person: %+v", c)
	}
	// The limit set for such campaigns themselves counts first.
	s.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 30)`)
	if c := publish(); c.State == campaign.Draft {
		t.Errorf("not published: %+v", c)
	}
}

func TestAudiencesAreOfTheirKind(t *testing.T) {
	s := newCampaignFixture(t)
	rules := s.readers("en")
	list, _, err := (&segment.Service{Store: s.Segments}).CreateList(t.Context(), staff.System(), "Fair", 0, "")
	s.Must(err)
	for audience, key := range map[campaign.AudienceKind]string{campaign.List: "rule.audience_is_rules", campaign.Segment: "rule.audience_is_list"} {
		sp := campaignSpec()
		sp.Audience = campaign.Audience{Kind: audience, ID: map[campaign.AudienceKind]int64{campaign.List: rules.ID, campaign.Segment: list.ID}[audience]}
		_, err := s.service.Create(t.Context(), staff.System(), sp, "")
		fields, ok := errors.AsType[*fault.Fields](err)
		if !ok || len(fields.List) != 1 || fields.List[0].Key != key {
			t.Errorf("%s: %v", audience, err)
		}
	}
}

func TestPublishingNeedsTheWholeList(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(10, 1)
	jobs := &job.Service{Store: s.Jobs}
	lists := &segment.Service{Store: s.Segments, Jobs: jobs, Tables: anyIDs{}}
	upload := func(text string) int64 {
		u, err := s.Uploads.SaveUpload(t.Context(), "list.csv", strings.NewReader(text), 1<<20, staff.System())
		s.Must(err)
		return u.ID
	}
	list, filling, err := lists.CreateList(t.Context(), staff.System(), "Fair", upload("id\n1\n2\n"), "")
	s.Must(err)
	if files, err := lists.Files(t.Context(), staff.System(), list.ID); err != nil || len(files) != 1 || files[0].ID != filling.ID {
		t.Fatalf("the list's files are %+v, %v", files, err)
	}
	sp := campaignSpec()
	sp.Audience = campaign.Audience{Kind: campaign.List, ID: list.ID}
	c, err := s.service.Create(t.Context(), staff.System(), sp, "")
	s.Must(err)
	publish := func() error {
		_, err := s.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Publishing, "")
		return err
	}
	if err := publish(); !errors.Is(err, segment.ErrFilling) || s.now(c).State != campaign.Draft {
		t.Errorf("published while its list was being read: %v", err)
	}
	// The job of another list is no hindrance.
	_, _, err = lists.CreateList(t.Context(), staff.System(), "Other", upload("id\n3\n"), "")
	s.Must(err)
	_, err = jobs.Cancel(t.Context(), staff.System(), filling.ID)
	s.Must(err)
	s.Must(publish())
}

func TestPublishingNeedsItsSegment(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(10, 1)
	g := s.readers("en")
	sp := campaignSpec()
	toSegment(g.ID)(&sp)
	c, err := s.service.Create(t.Context(), staff.System(), sp, "")
	s.Must(err)
	if err := s.Segments.DeleteSegment(t.Context(), g.ID, pgtest.AboutSegment("segment.delete")); !errors.Is(err, segment.ErrInUse) {
		t.Errorf("deleted under a draft: %v", err)
	}
	s.Exec(`delete from segments`)
	if _, err := s.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Publishing, ""); fault.KindOf(err) != fault.Invalid && fault.KindOf(err) != fault.NotFound {
		t.Errorf("published without its segment: %v", err)
	}
	if s.now(c).State != campaign.Draft {
		t.Error("it is no draft any more")
	}
}
