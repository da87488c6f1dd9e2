package app

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/push/pushtest"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// TestProvidersOfStaffStayOutside: no kind of provider that staff configure connects to an
// address of the servers' network, not even by a name that resolves to it, unless
// PROVIDERS_PRIVATE permits this. A listener counts the connections.
func TestProvidersOfStaffStayOutside(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var connections atomic.Int64
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = c.Close()
		}
	}()
	apple, err := pushtest.NewAPNs()
	musttest.OK(t, err)
	google, err := pushtest.NewFCM()
	musttest.OK(t, err)
	t.Cleanup(apple.Close)
	t.Cleanup(google.Close)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	at := "localhost:" + port
	phone := func(p user.Platform, app, token string) *user.User {
		return &user.User{ID: 7, Devices: []user.Device{{Platform: p, App: app, Token: token}}}
	}
	mail, number := &user.User{ID: 7, Email: "ada@shop.example"}, &user.User{ID: 7, Phone: "+14155552671"}
	for _, c := range []struct {
		kind     provider.Kind
		settings map[string]string
		secrets  map[string]string
		to       *user.User
	}{
		{provider.SMTP, map[string]string{"url": "smtp://" + at + "?from=drops@shop.example"}, nil, mail},
		{provider.Webhook, map[string]string{"url": "http://" + at}, map[string]string{"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, mail},
		{provider.JSON, map[string]string{"url": "http://" + at}, map[string]string{"token": "a token of tests"}, number},
		{provider.Twilio, map[string]string{"url": "http://" + at, "key_id": "AC1", "from": "MG1"}, map[string]string{"key_secret": "secret"}, number},
		{provider.APNS, map[string]string{"url": "http://" + at, "key_id": apple.KeyID, "team_id": apple.TeamID, "topic": apple.Topic}, map[string]string{"key": string(apple.Key)},
			phone(user.IOS, apple.Topic, strings.Repeat("ab", 32))},
		{provider.FCM, map[string]string{"url": "http://" + at}, map[string]string{"account": strings.ReplaceAll(string(google.Account), google.URL, "http://"+at)},
			phone(user.Android, "", "a token of a phone")},
	} {
		channel, _ := c.kind.Channel()
		for _, private := range []bool{false, true} {
			before := connections.Load()
			p := provider.Provider{Kind: c.kind, Spec: provider.Spec{Settings: c.settings}, Channel: channel}
			s, _, err := ProviderSender(config.Config{ProvidersPrivate: private}, p, c.secrets, nil, nil)
			if err != nil {
				t.Errorf("%s: %v", c.kind, err)
				continue
			}
			results := s.Send(t.Context(), []delivery.Message{{Channel: channel, To: c.to,
				Subject: &delivery.Subject{Kind: delivery.KindTest, OwnerID: 1, DueAt: time.Now()}, Content: &delivery.Content{Title: "t", Text: "x"}}})
			if made := connections.Load() > before; made != private || results[0].Status == delivery.Delivered || !private && !strings.Contains(results[0].Detail, "not public") {
				t.Errorf("%s, private ones are called: %v: connected %v, %+v", c.kind, private, made, results[0])
			}
			_ = s.Close()
		}
	}
}
