package senders

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/redis"
	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/worker/workertest"
)

const providersKey = "a key of at least thirty-two bytes"

// miniPrograms are the providers of push in a database and Redis of their own.
type miniPrograms struct {
	*pgtest.Fixture
	redis   string
	service *provider.Service
}

func newMiniPrograms(t *testing.T) *miniPrograms {
	t.Helper()
	w := pgtest.On(t, localstack.Database(t))
	box, err := seal.New(provider.SealPurpose, providersKey)
	w.Must(err)
	return &miniPrograms{w, localstack.RedisServer(t).URL(), &provider.Service{Store: app.NewStores(w.DB).Providers, Box: box, Keyed: true, IsCountry: sms.IsCountry}}
}

func (m *miniPrograms) create(url, secret string, of *pushtest.WeChat) int64 {
	m.Helper()
	p, err := m.service.Create(m.Context(), staff.System(), provider.Input{Kind: provider.WeChat, Spec: provider.Spec{Name: "Tea House", Weight: 1, Enabled: true,
		Settings: map[string]string{"app_id": of.AppID, "template": of.Template, "url": url, "data": "thing1 = {{drop}}\ntime2 = {{opens_at}}\nthing3 = {{in}}"}},
		Secrets: map[string]string{"app_secret": secret}}, "")
	m.Must(err)
	return p.ID
}

// routes returns the senders of a worker that has the key.
func (m *miniPrograms) routes(key string) *Senders {
	m.Helper()
	client, err := redis.Open(m.redis)
	m.Must(err)
	m.Cleanup(func() { _ = client.Close() })
	r := &Senders{App: &app.App{DB: m.DB, Stores: app.NewStores(m.DB), Redis: client, Log: slog.New(slog.DiscardHandler), Config: config.Config{ProvidersKeys: []string{key}, ProvidersPrivate: true}},
		metrics: newMetrics(prometheus.NewRegistry()), calls: &calls{}, ByChannel: map[delivery.Channel]delivery.Sender{}, Breakers: NewBreakers(client, workertest.AloneFor(1), slog.New(slog.DiscardHandler))}
	err = r.route(nil)
	m.Must(err)
	m.Cleanup(func() { _ = r.close() })
	m.Must(r.Refresh(m.Context()))
	return r
}

func consented(of *pushtest.WeChat, openID string) []delivery.Message {
	messages := sendertest.Messages(delivery.WebPush, 1)
	messages[0].To.Devices, messages[0].Consented = []user.Device{{Platform: user.WeChat, App: of.AppID, Token: openID}}, true
	return messages
}

// TestAProviderOfPushThatNoKeyOpens: its messages wait, like messages of the other channels.
func TestAProviderOfPushThatNoKeyOpens(t *testing.T) {
	wechat := pushtest.NewWeChat()
	t.Cleanup(wechat.Close)
	m := newMiniPrograms(t)
	id := m.create(wechat.URL, wechat.Secret, wechat)
	r := m.routes("another key of thirty-two bytes or more")
	if !r.push.Serves(0) {
		t.Error("its messages would be skipped")
	}
	if a := r.push.Send(t.Context(), consented(wechat, "openid-of-user-number-000001"))[0]; a.Status != delivery.Throttled || !a.Apart || !a.Unsent || a.After <= 0 || a.Via != id {
		t.Errorf("got %+v", a)
	}
	if s := r.Through(delivery.WebPush, id); s != nil {
		t.Error("a test has a sender")
	}
}

// TestAnAccessTokenBelongsToAServerAndASecret: a provider with the same AppID and another
// address or AppSecret does not get the token in use.
func TestAnAccessTokenBelongsToAServerAndASecret(t *testing.T) {
	wechat, elsewhere := pushtest.NewWeChat(), pushtest.NewWeChat()
	t.Cleanup(wechat.Close)
	t.Cleanup(elsewhere.Close)
	m := newMiniPrograms(t)
	first, same := m.create(wechat.URL, wechat.Secret, wechat), m.create(wechat.URL+"/", wechat.Secret, wechat)
	wrong, other := m.create(wechat.URL, "ffffffffffffffffffffffffffffffff", wechat), m.create(elsewhere.URL, elsewhere.Secret, wechat)
	r := m.routes(providersKey)
	const openID = "openid-of-user-number-000001"
	send := func(id int64, want delivery.Status) {
		t.Helper()
		wechat.Accept(openID)
		elsewhere.Accept(openID)
		if a := r.Through(delivery.WebPush, id).Send(t.Context(), consented(wechat, openID))[0]; a.Status != want {
			t.Errorf("provider %d: %+v", id, a)
		}
	}
	send(first, delivery.Delivered)
	send(same, delivery.Delivered)
	if n := wechat.Issued.Load(); n != 1 {
		t.Errorf("two providers that are alike asked for %d access tokens", n)
	}
	send(wrong, delivery.Transient)
	send(other, delivery.Delivered)
	if n := elsewhere.Issued.Load(); n != 1 {
		t.Errorf("the other server was asked for %d access tokens: it got that of the first one", n)
	}
}
