package consoletest

import (
	"context"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

// Publishing is the form that the question before a publication sends, with the number that sending
// to everybody asks for.
func (b *Browser) Publishing(page string) url.Values {
	b.Helper()
	q := b.Get(page + "/publish").Is(200)
	f := url.Values{"version": {q.Field("version")}, "alone_up_to": {q.Field("alone_up_to")}}
	if strings.Contains(q.Body, `name="reach_shown"`) {
		f.Set("reach_shown", q.Field("reach_shown"))
		f.Set("reach_typed", q.Field("reach_shown"))
	}
	return f
}

// Plan puts a draft of the shop (0 = none) on the calendar.
func (g *Fixture) Plan(name string, shop int64, at string) {
	g.Helper()
	g.Exec(`insert into campaigns (name, shop_number, channel, content, audience, starts_at, ends_at, state, creator, created_by)
		values ($1, nullif($2::bigint, 0), 0, '{"variants":[{"percent":100,"texts":{"":{"title":"a","body":"b"}}}]}', '{"kind":"all"}',
			$3::timestamptz, $3::timestamptz + interval '1 hour', 'draft', 'x', 'x')`, name, shop, at)
}

// SentOut returns a campaign that has been sent to n users, in two versions and a hold-out group.
// Every fifth user wants no mail, and the provider refuses some messages.
func (g *Fixture) SentOut(name string, shop int64, n int) campaign.Campaign {
	g.Helper()
	ctx, store := g.Context(), g.Stores.Campaigns
	g.Exec(`insert into users (id, email, opt_outs) select i, 'u' || i || '@example.com', case when i % 5 = 0 then 2 else 0 end from generate_series(1, $1::int) i on conflict do nothing`, n)
	texts := map[string]delivery.Text{"": {Title: "Hello", Body: "Come"}}
	spec := campaign.Spec{Shop: shop, Name: name, Channel: delivery.Email, Audience: campaign.Audience{Kind: campaign.Everybody},
		Content:  delivery.Copy{HoldOut: 20, Variants: []delivery.Variant{{Percent: 50, Texts: texts}, {Percent: 50, Texts: texts}}},
		StartsAt: g.Now().Add(-time.Second), EndsAt: g.Now().Add(time.Hour)}
	c, err := g.Campaigns.Create(ctx, staff.System(), spec, "")
	g.Must(err)
	_, err = g.Campaigns.Do(ctx, staff.System(), c.ID, 0, campaign.Publishing, "")
	g.Must(err)
	launcher := &campaign.Launcher{Store: store, Queue: idle{}, Now: g.Now, LeaseFor: 10 * time.Second}
	g.Must(launcher.Start(ctx, c.ID))
	g.Must(launcher.Cut(ctx, c.ID))
	d := &delivery.Service{Store: g.Stores.Batches, Queue: idle{}, Admission: idle{}, Policy: delivery.DefaultPolicy(), LeaseFor: 10 * time.Second,
		Random: rand.Float64, Now: g.Now, Guards: map[delivery.Kind]delivery.Guard{delivery.KindCampaign: &campaign.Guard{Store: store}},
		Senders: map[delivery.Channel]delivery.Sender{delivery.Email: Provider{delivery.Email, func(m delivery.Message) delivery.Result {
			if m.To.ID%49 == 4 {
				return delivery.Result{Status: delivery.Permanent, Detail: "550 <no> such mailbox"}
			}
			return delivery.Result{Status: delivery.Delivered}
		}}}}
	g.Must(d.Drain(ctx, delivery.Email))
	_, err = store.Settle(ctx)
	g.Must(err)
	c, err = store.Campaign(ctx, c.ID)
	g.Must(err)
	return c
}

// Count has the results of every campaign counted.
func (g *Fixture) Count() {
	g.Helper()
	g.Exec(`update campaigns set count_due_at = '-infinity'`)
	for {
		more, err := g.Stores.Campaigns.CountNext(g.Context())
		g.Must(err)
		if !more {
			return
		}
	}
}

type freeLock struct{}

func (freeLock) Take(context.Context, [32]byte, int64, time.Duration) (bool, error) {
	return true, nil
}

func (freeLock) Release(context.Context, [32]byte, int64) error { return nil }

// formsFilled is the instant from which the dates of all forms of a test program are counted, so
// that two forms filled in different minutes ask for the same times.
var formsFilled = sync.OnceValue(time.Now)

// minute is the layout of a date and time in a form.
const minute = "2006-01-02T15:04"

// CampaignForm returns a form of a campaign that can be saved. changes are pairs of a name and a
// value.
func CampaignForm(changes ...string) url.Values {
	f := url.Values{"name": {"Spring <b>"}, "audience": {"all"}, "channel": {"app"}, "title": {"Hello {{name|you}}"}, "body": {"Come"},
		"starts_at": {formsFilled().Add(time.Hour).Format(minute)}, "ends_at": {formsFilled().Add(48 * time.Hour).Format(minute)}}
	for i := 0; i < len(changes); i += 2 {
		f.Set(changes[i], changes[i+1])
	}
	return f
}
