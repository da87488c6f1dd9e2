package delivery_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/push"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/push/wechat"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/worker/campaigns"
	workerdelivery "dropbell/worker/delivery"
	"dropbell/worker/senders"
	"dropbell/worker/workertest"
)

// brokenPhones is a push service of the environment that fails for every iPhone.
type brokenPhones struct{}

func (brokenPhones) Name() string { return "phones" }
func (brokenPhones) Close() error { return nil }
func (brokenPhones) Push(_ context.Context, m delivery.Message) (answers []delivery.Result) {
	for _, d := range m.To.Devices {
		if d.Platform == user.IOS {
			answers = append(answers, delivery.Result{Unsent: true, Detail: "phones are down"})
		}
	}
	return answers
}

// TestTheCircuitsOfAMixedChunk: one push call carries messages to a mini program and to phones.
// Each circuit breaker records its own provider's answers once, also for a user with both. A
// call without a message to a phone leaves the probe of the phones' circuit breaker to the next
// call.
func TestTheCircuitsOfAMixedChunk(t *testing.T) {
	const mini = 7
	w := pgtest.New(t)
	client, err := redis.Open(localstack.RedisServer(t).URL())
	w.Must(err)
	t.Cleanup(func() { _ = client.Close() })
	server := pushtest.NewWeChat()
	t.Cleanup(server.Close)
	service, err := wechat.New(wechat.Config{AppID: server.AppID, Secret: server.Secret, Template: server.Template, URL: server.URL,
		Data: "thing1 = {{drop}}\ntime2 = {{opens_at}}\nthing3 = {{in}}"})
	w.Must(err)
	t.Cleanup(func() { _ = service.Close() })
	breaker := redis.NewBreaker(client, redis.BreakerConfig{})
	// deliver sends one chunk to so many users with an iPhone, with an account, and with both.
	deliver := func(phones, accounts, both user.ID) {
		t.Helper()
		alone := workertest.AloneFor(1)
		stores, pacer, circuits := app.NewStores(w.DB), redis.NewPacer(client, alone), senders.NewBreakers(client, alone, slog.New(slog.DiscardHandler))
		admission := workerdelivery.NewAdmission(stores.Channels, pacer, campaigns.NewLimits(stores.Campaigns, pacer), circuits, nil)
		sender := push.New(push.Options{}, brokenPhones{})
		sender.Configurable(circuits, nil)
		sender.Set([]push.Configured{{Provider: mini, Service: service}})
		tpl := w.Published(30 * time.Minute)
		for id := user.ID(1); id <= phones+accounts+both; id++ {
			w.Reserve(tpl, id, pgtest.Reminders(delivery.WebPush, 5)...)
			if id <= phones || id > phones+accounts {
				_, err := w.Users.PutDevice(t.Context(), id, user.Device{Platform: user.IOS, Token: fmt.Sprintf("%064x", id)}, "")
				w.Must(err)
			}
			if id > phones {
				account := user.Device{Platform: user.WeChat, Token: fmt.Sprintf("openid-of-user-number-%06d", id), App: server.AppID}
				server.Accept(account.Token)
				_, err := w.Users.PutDevice(t.Context(), id, account, "")
				w.Must(err)
				_, err = w.Reservations.SetConsent(t.Context(), tpl.ID, id, 1, true)
				w.Must(err)
			}
		}
		queue := &pgtest.MemoryQueue{}
		w.Must(w.Timers(queue).Fire(t.Context(), w.DueNow(tpl, 1).ID))
		deliverer := w.Deliverer(queue, sender)
		deliverer.Admission = admission
		w.Must(deliverer.RunNext(t.Context(), delivery.WebPush))
	}

	w.Must(client.HSet(t.Context(), "breaker:webpush", "state", redis.StateOpen, "until", 1, "backoff", 5000).Err())
	deliver(0, 3, 0)
	if n := server.Count(); n != 3 {
		t.Fatalf("%d messages", n)
	}
	if wait, state, err := breaker.Admit(t.Context(), delivery.WebPush); wait != 0 || state != redis.StateHalfOpen || err != nil {
		t.Errorf("the next probe waits %v, %s, %v", wait, state, err)
	}

	failures := func(of map[int64]int) {
		t.Helper()
		for provider, want := range of {
			if s, err := breaker.Of(provider).State(t.Context(), delivery.WebPush); err != nil || s.Failures != want {
				t.Errorf("provider %d: %+v, %v; want %d failures", provider, s, err, want)
			}
		}
	}
	w.Must(client.FlushDB(t.Context()).Err())
	deliver(0, 0, 3)
	if n := server.Count(); n != 6 {
		t.Errorf("%d messages", n)
	}
	failures(map[int64]int{0: 1, mini: 0})

	w.Must(client.FlushDB(t.Context()).Err())
	server.Fail("", pushtest.Fault{Reason: "48001"})
	deliver(1, 3, 0)
	failures(map[int64]int{0: 1, mini: 3})
}
