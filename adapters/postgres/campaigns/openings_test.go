package campaigns_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

const claimPage = "https://shop.example/claim"

func trackedAs(owner int64, id user.ID, variant int, target string) string {
	if target != "" {
		return fmt.Sprintf("https://drop.example/l/%d-%s-%d-to-%d", owner, id, variant, campaign.TargetMark(target))
	}
	return fmt.Sprintf("https://drop.example/l/%d-%s-%d", owner, id, variant)
}

// Recipients get links of their own, in messages and in the inbox. A test message shows the
// target of the link.
func TestCampaignLinksAreTracked(t *testing.T) {
	s := newCampaignFixture(t)
	tpl := s.fixture.Published(time.Hour)
	s.Exec(`update templates set claim_url = $1 where id = $2`, claimPage, tpl.ID)
	s.users(3, 1)
	spec := func(channel delivery.Channel, name string) func(*campaign.Spec) {
		return func(sp *campaign.Spec) {
			sp.Name, sp.Channel, sp.GrantTemplate, sp.Content = name, channel, tpl.ID, text("Come", "See {{link}}")
		}
	}
	c, app := s.running(spec(delivery.Webhook, "hook")), s.running(spec(delivery.App, "app"))
	var mu sync.Mutex
	read := map[user.ID]string{}
	hook := pgtest.NewSink(delivery.Webhook, 2)
	hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		mu.Lock()
		defer mu.Unlock()
		read[m.To.ID] = m.Content.Text
		return delivery.Result{Status: delivery.Delivered}
	}
	d := s.deliverer(hook, pgtest.NewSink(delivery.App, 1000))
	d.Guards, d.LinkURL = nil, trackedAs
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	s.Must(d.Drain(t.Context(), delivery.App))
	for id := user.ID(1); id <= 3; id++ {
		if want := "See " + trackedAs(c.ID, id, 0, ""); read[id] != want {
			t.Errorf("user %d reads %q, want %q", id, read[id], want)
		}
	}
	_, err := s.service.Test(t.Context(), staff.System(), c.ID, 2, nil)
	s.Must(err)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	if read[2] != "See "+claimPage {
		t.Errorf("the test reads %q", read[2])
	}
	s.Exec(`with p as (insert into providers (channel, kind, name, enabled, changed, created_by) values (4, 'webhook', 'First', true, 1, 'x') returning id)
		insert into batch_providers (batch_id, provider_id, sent_count) select b.id, p.id, 1 from batches b, p where b.kind = 'test'`)
	s.Exec(`update campaigns set content = jsonb_set(content, '{variants,1}', '{"percent": 0, "texts": {"": {"title": "B", "body": "Other {{link}}"}}}') where id = $1`, c.ID)
	_, err = s.service.Test(t.Context(), staff.System(), c.ID, 2, new(1))
	s.Must(err)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	if read[2] != "Other "+claimPage {
		t.Errorf("the test of the other version reads %q", read[2])
	}
	if n := s.Number(`select count(*) from batch_providers`); n != 0 {
		t.Error("the test names the provider of the test before it")
	}

	reader := s.Inbox
	reader.Track = trackedAs
	inbox, err := reader.Page(t.Context(), 3, time.Time{}, 10)
	s.Must(err)
	if len(inbox.Items) != 1 || !strings.Contains(inbox.Items[0].Text, trackedAs(app.ID, 3, 0, "")) || inbox.Items[0].ClaimURL != claimPage {
		t.Errorf("inbox %+v", inbox.Items)
	}
}

// A link that replaced an address in a text leads to that address and is counted like the link to
// the claim page, also in a campaign about no drop. The link of the campaign itself comes before the
// claim page of its drop.
func TestLinksInTextsAreCounted(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(3, 1)
	ctx := t.Context()
	c := s.running(func(sp *campaign.Spec) {
		sp.Name, sp.Content = "Menu", text("Come", "[Menu](https://shop.example/menu)")
	})
	follow := func(id user.ID, target uint32) (string, error) {
		to, err := s.campaigns.Open(ctx, campaign.Reader{CampaignID: c.ID, UserID: id, Target: target})
		return to.URL, err
	}
	for id := range user.ID(2) {
		if url, err := follow(id+1, campaign.TargetMark("https://shop.example/menu")); err != nil || url != "https://shop.example/menu" {
			t.Errorf("leads to %q %v", url, err)
		}
	}
	for _, target := range []uint32{0, 1, campaign.TargetMark("https://shop.example/other")} {
		if _, err := follow(3, target); !errors.Is(err, user.ErrLink) {
			t.Errorf("an unknown address: %v", err)
		}
	}
	if n := s.Number(`select count(*) from campaign_openings where campaign_id = $1`, c.ID); n != 2 {
		t.Errorf("%d readers are counted", n)
	}
	s.Exec(`update campaigns set content = jsonb_set(content, '{link}', '"https://shop.example/own"') where id = $1`, c.ID)
	if url, err := follow(3, 0); err != nil || url != "https://shop.example/own" {
		t.Errorf("the link leads to %q %v", url, err)
	}
}

func TestOpeningsCountOnce(t *testing.T) {
	s := newCampaignFixture(t)
	tpl := s.fixture.Published(time.Hour)
	s.users(2, 1)
	ctx, nowhere := t.Context(), s.running(nil)
	c := s.published(func(sp *campaign.Spec) { sp.Name, sp.GrantTemplate = "Linked", tpl.ID })
	open := func(id int64, u user.ID) (string, error) {
		to, err := s.campaigns.Open(ctx, campaign.Reader{CampaignID: id, UserID: u, Variant: 1})
		return to.URL, err
	}
	refused := func(what string, id int64) {
		t.Helper()
		_, err := open(id, 1)
		_, err2 := s.campaigns.Target(ctx, campaign.Reader{CampaignID: id, UserID: 1})
		if !errors.Is(err, user.ErrLink) || !errors.Is(err2, user.ErrLink) {
			t.Errorf("%s: %v, %v", what, err, err2)
		}
	}
	s.Exec(`update templates set claim_url = $1 where id = $2`, claimPage, tpl.ID)
	refused("not sent", c.ID)
	refused("about no template", nowhere.ID)
	refused("unknown", 999)
	s.Must(s.launcher.Start(ctx, c.ID))
	if to, err := s.campaigns.Target(ctx, campaign.Reader{CampaignID: c.ID, UserID: 1}); err != nil || to.URL != claimPage {
		t.Errorf("leads to %+v %v", to, err)
	}
	if n := s.Number(`select count(*) from campaign_openings`); n != 0 {
		t.Errorf("%d noted before anybody opened a link", n)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if url, err := open(c.ID, user.ID(1+i%2)); err != nil || url != claimPage {
				t.Errorf("leads to %q %v", url, err)
			}
		})
	}
	all.Wait()
	if n := s.Number(`select count(*) from campaign_openings where campaign_id = $1 and variant = 1`, c.ID); n != 2 {
		t.Errorf("%d openings, want 2", n)
	}
	s.Exec(`update templates set claim_url = '' where id = $1`, tpl.ID)
	if to, err := s.campaigns.Open(ctx, campaign.Reader{CampaignID: c.ID, UserID: 1, Variant: 1}); err != nil || to != (campaign.Destination{TemplateID: tpl.ID}) {
		t.Errorf("a drop without a claim address: %+v %v", to, err)
	}

	s.Exec(`update campaigns set archived = true, starts_at = now() - interval '12 days', ends_at = now() - interval '11 days' where id = $1`, c.ID)
	s.Clean()
	if n := s.Number(`select count(*) from campaign_openings`); n != 0 {
		t.Errorf("%d openings are kept for ever", n)
	}
}
