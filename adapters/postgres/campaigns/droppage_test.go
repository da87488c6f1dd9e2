package campaigns_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// A mail of a campaign about a drop without a claim address leads to the page of the drop: the
// campaign may show {{link}}, is published and launched, and its mail has the button. Other channels
// have no such page.
func TestCampaignsLeadToThePageOfTheDrop(t *testing.T) {
	s := newCampaignFixture(t)
	page := func(id int64) string { return "https://drop.example/d/page" }
	tpl := s.fixture.Published(time.Hour)
	s.users(2, 1)
	about := func(c delivery.Channel) campaign.Spec {
		spec := campaignSpec()
		spec.Channel, spec.GrantTemplate, spec.Content = c, tpl.ID, text("Come", "Get it: {{link}}")
		return spec
	}
	_, err := s.service.Create(t.Context(), staff.System(), about(delivery.Email), "without a page")
	if f, ok := errors.AsType[*fault.Fields](err); !ok || f.List[0].Key != "rule.empty_link" {
		t.Fatalf("without pages: %v", err)
	}
	s.service.DropPage, s.launcher.DropPage = page, page
	s.approvals.Publisher.DropPage = page
	_, err = s.service.Create(t.Context(), staff.System(), about(delivery.SMS), "over SMS")
	if f, ok := errors.AsType[*fault.Fields](err); !ok || f.List[0].Key != "rule.empty_link" {
		t.Errorf("over SMS: %v", err)
	}
	c := s.published(func(sp *campaign.Spec) { *sp = about(delivery.Email) })
	s.Must(s.launcher.Start(t.Context(), c.ID))
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	if n := s.Number(`select count(*) from campaigns where id = $1 and state in ('running', 'finished')`, c.ID); n != 1 {
		t.Errorf("the campaign was not launched")
	}
	subject, err := s.service.Subject(t.Context(), c)
	s.Must(err)
	if html := delivery.Render(nil, subject, delivery.Email, user.User{ID: 1}).HTML; !strings.Contains(html, `href="https://drop.example/d/page"`) {
		t.Errorf("the mail has no button: %s", html)
	}
	_, err = s.service.Preview(t.Context(), staff.System(), c.ID, 0, "en")
	s.Must(err)
}
