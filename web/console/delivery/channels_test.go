package delivery_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestChannelStatusPage(t *testing.T) {
	g := consoletest.New(t, consoletest.Breakers(func(context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
		all[delivery.SMS] = delivery.Circuit{State: delivery.CircuitOpen, Failures: 12, Detail: "HTTP 503"}
		all[delivery.Email] = delivery.Circuit{State: delivery.CircuitClosed, HeldUntil: time.Now().Add(time.Minute)}
		return all, nil
	}))
	channels := g.Stores.Channels
	g.Must(channels.RecordCalls(t.Context(), "a", []deliverydb.ProviderCalls{{Channel: delivery.Email, Calls: 4, Messages: 40, Failed: 10,
		Total: 400 * time.Millisecond, Slowest: 250 * time.Millisecond, Error: "451 try later"}}))
	d := g.Published(10, 2*time.Hour)
	g.Sending(d, 12, 2, 1000, 40)
	g.Exec(`update batches set due_at = now() - interval '90 minutes 10 seconds'`)
	b := g.As(staff.Operator)
	b.Get("/channels").Is(200).Has("Provider pause", "The provider asked for a pause until",
		"Provider failing", "The provider failed 12 times in a row: HTTP 503", "960 messages are on their way, the oldest for 1 h 30 min",
		"4 calls in the last minute, 100 ms on average, 250 ms at most.", "25% of the messages were not accepted.", "Last error: 451 try later",
		"No limit of messages per second.", "/channels/sms/rate", "/channels/sms/test").HasNot("/channels/app/test")
	b.Htmx().Get("/channels").Is(200).Has("Provider failing").HasNot("<html")
}

func TestChannelRate(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	b.Get("/channels/sms/rate").Is(200).Has("Rate of SMS", `value="0"`)
	for _, bad := range []string{"", "lots", "-1", "1000001", "99999999999999999999"} {
		b.Post("/channels/sms/rate", url.Values{"rate_per_second": {bad}}).Is(http.StatusUnprocessableEntity)
	}
	b.Post("/channels/sms/rate", url.Values{"rate_per_second": {"250"}, "reason": {"their new contract"}}).To("/channels")
	b.Get("/channels").Is(200).Has("The rate of SMS has been changed.", "At most 250 messages per second.")
	b.Get("/audit?kind=channel").Is(200).Has("changed the rate of", "their new contract", ">250<")
	// A form with an outdated rate shows the stored one.
	old := url.Values{"rate_per_second": {"90"}, "was_rate_per_second": {"0"}}
	b.Post("/channels/sms/rate", old).Is(http.StatusConflict).Has("was changed to 250", `value="90"`, `name="was_rate_per_second" value="250"`)
	b.Get("/channels").Is(200).Has("At most 250 messages per second.")
	old.Set("was_rate_per_second", "250")
	b.Post("/channels/sms/rate", old).To("/channels")
	b.Get("/channels").Is(200).Has("At most 90 messages per second.")
	b.Get("/channels/sms/rate").Is(200).Has(`name="was_rate_per_second" value="90"`)
	b.Get("/channels/pigeon/rate").Is(http.StatusNotFound)
	g.As(staff.Marketer).Get("/channels/sms/rate").Is(http.StatusForbidden)
}

// The shops share the channels. An operator who is limited to some shops finds the reason instead
// of buttons, and every address behind the buttons refuses with the same reason.
func TestLimitedOperatorsLeaveChannelsAlone(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Operator, 10)
	const why = "All shops use this channel"
	b.Get("/channels").Is(200).Has(why, "/channels/sms/test").HasNot("/channels/sms/pause", "/channels/sms/rate")
	b.Get(shell.TemplateURL(d.ID) + "?tab=live").Is(200).Has(why).HasNot("/channels/sms/pause")
	for _, path := range []string{"/channels/sms/pause", "/channels/sms/resume", "/channels/sms/rate"} {
		b.Get(path).Is(http.StatusForbidden).Has("access to all shops")
		b.Post(path, url.Values{"reason": {"mine"}, "rate_per_second": {"1"}}).Is(http.StatusForbidden).Has("access to all shops")
		b.Post(path, url.Values{}).Is(http.StatusForbidden)
	}
	b.Do(http.MethodDelete, "/monitor/queues/api/queues/deliver-sms", nil).Is(http.StatusForbidden)
	b.Get("/monitor/queues").Is(http.StatusForbidden).Has("access to all shops") // tasks are of every shop
	b.Get("/queues").Is(http.StatusForbidden)
	b.Get("/").Is(200).HasNot(`href="/queues"`)
	settings, err := g.Settings.Settings(t.Context())
	g.Must(err)
	if s := settings[delivery.SMS]; s.Paused || s.RatePerSecond != 0 {
		t.Errorf("the channel was changed: %+v", s)
	}
	all := g.As(staff.Operator)
	all.Get("/channels").Is(200).Has("/channels/sms/pause").HasNot(why)
	all.Post("/channels/sms/pause", url.Values{"reason": {"provider"}}).To("/channels")
}

func TestChannelTestPage(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Operator)
	page := "/channels/email/test"
	b.Get(page).Is(200).Has("Test E-mail", "No test messages yet.")
	b.Post(page, url.Values{"recipient": {"lin@"}, "template": {"77"}}).Is(http.StatusUnprocessableEntity).Has("there is no such drop", `value="lin@"`)
	b.Post(page, url.Values{"recipient": {"lin@"}}).Is(http.StatusUnprocessableEntity).Has("must be an e-mail address or the number of a customer")
	b.Post(page, url.Values{"recipient": {"lin@example.com"}, "template": {"1"}}).To(page)
	b.Get(page).Is(200).Has("The test message is on its way.", "Waiting", "To an address", `data-live="`).HasNot("lin@example.com")
	sent := ""
	tester := &testmessage.Tester{Store: g.Stores.ChannelTests, Now: g.Now, Senders: map[delivery.Channel]delivery.Sender{
		delivery.Email: consoletest.NewProvider(delivery.Email, func(m delivery.Message) delivery.Result {
			sent = m.To.Email + " " + m.Content.Title
			return delivery.Result{Status: delivery.Permanent, Detail: "550 no such mailbox"}
		})}}
	g.Must(tester.Sweep(t.Context()))
	if sent != "lin@example.com Test message: "+d.Name {
		t.Errorf("sent %q", sent)
	}
	b.Get(page).Is(200).Has("Refused", "550 no such mailbox").HasNot("data-live")
	for range testmessage.TestsPerMember - 1 {
		b.Post(page, url.Values{"recipient": {"1001"}}).To(page)
	}
	b.Post(page, url.Values{"recipient": {"1001"}}).Is(http.StatusUnprocessableEntity).Has("Too many test messages.")
	b.Get("/channels/app/test").Is(200).Has("no provider to test").HasNot(`name="recipient"`)
	b.Post("/channels/app/test", url.Values{"recipient": {"1001"}}).Is(http.StatusUnprocessableEntity)
	b.Get("/channels/webhook/test").Is(200).Has("WEBHOOK_URL")
	b.Post("/channels/webhook/test", url.Values{"recipient": {"1001"}}).Is(http.StatusUnprocessableEntity)
	b.Get("/audit?kind=channel").Is(200).Has("sent a test message over").HasNot("lin@example.com")
	g.As(staff.Marketer).Get(page).Is(http.StatusForbidden)
}

// Staff who are limited to shops cannot learn the names of other shops' drops.
func TestChannelTestAboutAnotherShopsDrop(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	b := g.As(staff.Operator, 11)
	b.Post("/channels/email/test", url.Values{"recipient": {"1001"}, "template": {"1"}}).Is(http.StatusUnprocessableEntity).Has("there is no such drop")
}

func TestChannelPages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	b.Get("/channels").Is(200).Has("SMTP server", "Ready", "Not configured", "WEBHOOK_URL")
	b.Get("/channels/email/pause").Is(200).Has("Pause E-mail?", "Reason")
	b.Post("/channels/email/pause", url.Values{"reason": {"provider is down"}}).To("/channels")
	b.Get("/channels").Is(200).Has("E-mail is paused.", "provider is down", "/channels/email/resume")
	b.Post("/channels/email/resume", nil).To("/channels")
	b.Get("/channels").Is(200).Has("E-mail is resumed.").HasNot("provider is down")
	b.Get("/channels/pigeon/pause").Is(404)
	b.Get("/audit?kind=channel").Is(200).Has("paused", "resumed", "channel email")
	g.As(staff.Marketer).Get("/channels").Is(200).HasNot("/channels/email/pause")
}

// Two admins pause one channel: the second admin is shown the first admin's reason.
func TestPausingAPausedChannel(t *testing.T) {
	g := consoletest.New(t)
	first, second := g.As(staff.Operator), g.As(staff.Admin)
	first.Post("/channels/sms/pause", url.Values{"reason": {"the provider is down"}}).To("/channels")
	first.Post("/channels/sms/pause", url.Values{"reason": {"the provider is down"}}).To("/channels")
	second.Post("/channels/sms/pause", url.Values{"reason": {"mine"}}).Is(http.StatusConflict).
		Has("The operator has already paused it", "“the provider is down”", `mine`)
	settings, err := g.Settings.Settings(t.Context())
	g.Must(err)
	if s := settings[2]; !s.Paused || s.PausedBy != "The operator" || s.PausedReason != "the provider is down" {
		t.Errorf("%+v", s)
	}
	if g.Number(`select count(*) from audit where action = 'channel.pause'`) != 1 {
		t.Error("recorded twice")
	}
}
