package console

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
)

// counted is a store that counts how often it is asked.
type counted struct {
	reminder.Cockpit
	mu           sync.Mutex
	looks, spans int
	begun        time.Time
	known        []reminder.CockpitRow
}

func (c *counted) look(known []reminder.CockpitRow) reminder.Cockpit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looks++; c.looks == 1 {
		c.begun = time.Now()
	}
	c.known = known
	return c.Cockpit
}

func (c *counted) lookBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans++
}

// countedStore gives the counter the store's name for its method, which the
// embedded value has taken.
type countedStore struct{ *counted }

func (c countedStore) Cockpit(_ context.Context, _ int64, known []reminder.CockpitRow) (reminder.Cockpit, error) {
	return c.look(known), nil
}

func (c countedStore) Spans(context.Context, int64, time.Duration) ([]reminder.Span, error) {
	c.lookBack()
	return nil, nil
}

func TestChannelStatusPage(t *testing.T) {
	g := newRig(t, func(d *Deps) {
		d.Circuits = func(context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
			all[delivery.SMS] = delivery.Circuit{State: delivery.CircuitOpen, Failures: 12, Detail: "HTTP 503"}
			all[delivery.Email] = delivery.Circuit{State: delivery.CircuitClosed, HeldUntil: time.Now().Add(time.Minute)}
			return all, nil
		}
	})
	channels := postgres.NewChannels(g.db)
	g.must(channels.RecordCalls(t.Context(), "a", []postgres.ProviderCalls{{Channel: delivery.Email, Calls: 4, Messages: 40, Failed: 10,
		Total: 400 * time.Millisecond, Slowest: 250 * time.Millisecond, Error: "451 try later"}}))
	d := g.published(10, 2*time.Hour)
	g.sending(d, 12, 2, 1000, 40)
	g.exec(`update batches set due_at = now() - interval '90 seconds'`)
	b := g.as(staff.Operator)
	b.get("/channels").is(200).has("paused by the provider", "The provider asked for a pause until",
		"provider failing", "The provider failed 12 times in a row: HTTP 503", "960 messages are on their way, the oldest for 1 min 30 s",
		"4 calls in the last minute, 100 ms on average, 250 ms at most.", "25% of the messages got no successful answer.", "Last error: 451 try later",
		"No limit of messages per second.", "/channels/sms/rate", "/channels/sms/test").hasNot("/channels/app/test")
	b.htmx().get("/channels").is(200).has("provider failing").hasNot("<html")
}

func TestChannelRate(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Operator)
	b.get("/channels/sms/rate").is(200).has("Rate of SMS", `value="0"`)
	for _, bad := range []string{"", "lots", "-1", "1000001", "99999999999999999999"} {
		b.post("/channels/sms/rate", url.Values{"rate_per_second": {bad}}).is(http.StatusUnprocessableEntity)
	}
	b.post("/channels/sms/rate", url.Values{"rate_per_second": {"250"}, "reason": {"their new contract"}}).to("/channels")
	b.get("/channels").is(200).has("The rate of SMS has been changed.", "At most 250 messages per second.")
	b.get("/audit?kind=channel").is(200).has("changed the rate of", "their new contract", ">250<")
	// Who answers an old question learns what somebody else has answered.
	old := url.Values{"rate_per_second": {"90"}, "was_rate_per_second": {"0"}}
	b.post("/channels/sms/rate", old).is(http.StatusConflict).has("somebody has changed this to 250", `value="90"`, `name="was_rate_per_second" value="250"`)
	b.get("/channels").is(200).has("At most 250 messages per second.")
	old.Set("was_rate_per_second", "250")
	b.post("/channels/sms/rate", old).to("/channels")
	b.get("/channels").is(200).has("At most 90 messages per second.")
	b.get("/channels/sms/rate").is(200).has(`name="was_rate_per_second" value="90"`)
	b.get("/channels/pigeon/rate").is(http.StatusNotFound)
	g.as(staff.Marketer).get("/channels/sms/rate").is(http.StatusForbidden)
}

// Shops share the channels: an operator who is limited to some finds no
// buttons but the reason, and is told it by every address behind them.
func TestLimitedOperatorsLeaveChannelsAlone(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Operator, 10)
	const why = "All shops use this channel"
	b.get("/channels").is(200).has(why, "/channels/sms/test").hasNot("/channels/sms/pause", "/channels/sms/rate")
	b.get(templateURL(d.ID) + "/cockpit").is(200).has(why).hasNot("/channels/sms/pause")
	for _, path := range []string{"/channels/sms/pause", "/channels/sms/resume", "/channels/sms/rate"} {
		b.get(path).is(http.StatusForbidden).has("access to all shops")
		b.post(path, url.Values{"reason": {"mine"}, "rate_per_second": {"1"}}).is(http.StatusForbidden).has("access to all shops")
		b.post(path, url.Values{}).is(http.StatusForbidden)
	}
	b.do(http.MethodDelete, "/monitor/queues/api/queues/deliver-sms", nil).is(http.StatusForbidden)
	b.get("/monitor/queues").is(http.StatusForbidden).has("access to all shops") // tasks are of every shop
	b.get("/queues").is(http.StatusForbidden)
	b.get("/").is(200).hasNot(`href="/queues"`)
	settings, err := g.Settings.Settings(t.Context())
	g.must(err)
	if s := settings[delivery.SMS]; s.Paused || s.RatePerSecond != 0 {
		t.Errorf("the channel was changed: %+v", s)
	}
	all := g.as(staff.Operator)
	all.get("/channels").is(200).has("/channels/sms/pause").hasNot(why)
	all.post("/channels/sms/pause", url.Values{"reason": {"provider"}}).to("/channels")
}

func TestChannelTestPage(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Operator)
	page := "/channels/email/test"
	b.get(page).is(200).has("Test E-mail", "Nobody has sent a test message yet.")
	b.post(page, url.Values{"recipient": {"lin@"}, "template": {"77"}}).is(http.StatusUnprocessableEntity).has("there is no such template", `value="lin@"`)
	b.post(page, url.Values{"recipient": {"lin@"}}).is(http.StatusUnprocessableEntity).has("must be an e-mail address or the number of a user")
	b.post(page, url.Values{"recipient": {"lin@example.com"}, "template": {"1"}}).to(page)
	b.get(page).is(200).has("The test message is on its way.", "waiting", "To an address", `data-live="`).hasNot("lin@example.com")
	sent := ""
	tester := &delivery.Tester{Store: postgres.NewChannelTests(g.db), Now: g.now, Senders: map[delivery.Channel]delivery.Sender{
		delivery.Email: provider{delivery.Email, func(m delivery.Message) delivery.Result {
			sent = m.To.Email + " " + m.Content.Title
			return delivery.Result{Status: delivery.Permanent, Detail: "550 no such mailbox"}
		}}}}
	g.must(tester.Sweep(t.Context()))
	if sent != "lin@example.com Test message: "+d.Name {
		t.Errorf("sent %q", sent)
	}
	b.get(page).is(200).has("refused", "550 no such mailbox").hasNot("data-live")
	for range delivery.TestsPerMember - 1 {
		b.post(page, url.Values{"recipient": {"1001"}}).to(page)
	}
	b.post(page, url.Values{"recipient": {"1001"}}).is(http.StatusUnprocessableEntity).has("Too many test messages.")
	b.get("/channels/app/test").is(200).has("no provider to test").hasNot(`name="recipient"`)
	b.post("/channels/app/test", url.Values{"recipient": {"1001"}}).is(http.StatusUnprocessableEntity)
	b.get("/channels/webhook/test").is(200).has("WEBHOOK_URL")
	b.post("/channels/webhook/test", url.Values{"recipient": {"1001"}}).is(http.StatusUnprocessableEntity)
	b.get("/audit?kind=channel").is(200).has("sent a test message over").hasNot("lin@example.com")
	g.as(staff.Marketer).get(page).is(http.StatusForbidden)
}

// Somebody limited to shops cannot learn the names of others' drops.
func TestChannelTestAboutAnotherShopsDrop(t *testing.T) {
	g := newRig(t)
	g.published(10, 2*time.Hour)
	b := g.as(staff.Operator, 11)
	b.post("/channels/email/test", url.Values{"recipient": {"1001"}, "template": {"1"}}).is(http.StatusUnprocessableEntity).has("there is no such template")
}
