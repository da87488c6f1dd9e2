package campaigns_test

import (
	"fmt"
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// TestReceivedRows lists the messages of several campaigns for one user: sent,
// skipped because of the shop's limit, and in flight.
func TestReceivedRows(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(20, 1)
	s.Exec(`insert into shops values (10, 'Tea house', 'Asia/Shanghai'), (11, 'Bakery', 'Europe/Berlin')`)
	s.Exec(`insert into campaign_limits (shop_number, per_day, per_week) values (10, 1, 3), (11, 0, 0)`)
	send := func(name string, shop int64, audience campaign.Audience) campaign.Campaign {
		c := s.running(func(spec *campaign.Spec) { spec.Name, spec.Shop, spec.Audience = name, shop, audience })
		return c
	}
	everybody := campaign.Audience{Kind: campaign.Everybody}
	deliver := func() {
		s.Must(s.deliverer(pgtest.NewSink(delivery.Webhook, 100)).Drain(t.Context(), delivery.Webhook))
	}
	first := send("first", 10, everybody)
	deliver()
	second := send("second", 10, everybody)
	deliver()
	s.settled(first)
	s.settled(second)
	send("others", 0, campaign.Audience{Kind: campaign.Named, Users: ids(1, 2, 3)})
	bread := send("bread", 11, campaign.Audience{Kind: campaign.Named, Users: ids(6, 7, 8)})

	received := func(to user.ID, shops ...int64) (campaign.ReceivedRows, string) {
		t.Helper()
		m, err := s.campaigns.ReceivedRows(t.Context(), to, shops)
		s.Must(err)
		text := ""
		for _, l := range m.Letters {
			text += fmt.Sprintf("%s %d %s %s %s; ", l.Name, l.Shop, l.Channel, l.Outcome, l.Reason)
			if (l.Outcome == delivery.InFlight) != l.At.IsZero() || l.BatchID == 0 || l.CountsAt.IsZero() {
				t.Errorf("%+v", l)
			}
		}
		return m, text
	}
	m, text := received(7)
	if text != "bread 11 webhook in_flight ; second 10 webhook skipped frequency_cap; first 10 webhook sent ; " {
		t.Error(text)
	}
	if m.Limits[10] != (campaign.Limits{PerDay: 1, PerWeek: 3}) || m.Letters[0].CampaignID != bread.ID || m.Letters[1].ShopName != "Tea house" || !m.Passed.IsZero() || m.Now.IsZero() {
		t.Errorf("%+v", m)
	}
	if _, text := received(7, 11); text != "bread 11 webhook in_flight ; " {
		t.Errorf("of one shop: %s", text)
	}
	for _, stranger := range []user.ID{21, 9_007_199_254_740_993} {
		if _, text := received(stranger); text != "" {
			t.Errorf("user %d: %s", stranger, text)
		}
	}
	if _, text := received(2); text != "others 0 webhook in_flight ; second 10 webhook skipped frequency_cap; first 10 webhook sent ; " {
		t.Error(text)
	}
}

// TestReceivedRowsAreBounded: if there are very many campaigns, only the newest are read, and
// the result says from which instant on it may be incomplete.
func TestReceivedRowsAreBounded(t *testing.T) {
	s := newCampaignFixture(t)
	s.Fill("campaigns", "generate_series(0, 400) n", pgtest.Row{"state": "finished", "name": pgtest.SQL("'c' || n"),
		"started_at": pgtest.SQL("date_trunc('hour', now()) - n * interval '1 minute'")})
	s.Fill("batches", "campaigns", pgtest.Row{"kind": "campaign", "owner_id": pgtest.SQL("id"), "to_user": 9, "state": "done", "due": pgtest.Bitmap(1, 5, 9), "due_count": 9,
		"started_at": pgtest.SQL("now()"), "finished_at": pgtest.SQL("now()")})
	m, err := s.campaigns.ReceivedRows(t.Context(), 5, nil)
	s.Must(err)
	if len(m.Letters) != 200 || m.Letters[0].Name != "c0" || m.Letters[199].Name != "c199" {
		t.Fatalf("%d letters", len(m.Letters))
	}
	var passed bool
	s.Must(s.SQL.QueryRow(t.Context(), `select $1 = (select started_at from campaigns where name = 'c200')`, m.Passed).Scan(&passed))
	if !passed {
		t.Errorf("passed %v", m.Passed)
	}
}
