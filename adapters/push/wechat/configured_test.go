package wechat_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/push/wechat"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// phones is a service of the environment with one answer.
type phones delivery.Result

func (p phones) Push(context.Context, delivery.Message) []delivery.Result {
	return []delivery.Result{delivery.Result(p)}
}
func (phones) Name() string { return "phones" }
func (phones) Close() error { return nil }

// configuredAs is a sender with the services as providers 1, 2, … of all shops.
func configuredAs(t *testing.T, environment []push.Service, services ...push.ConfiguredService) *push.Sender {
	t.Helper()
	s := push.New(push.Options{}, environment...)
	var list []push.Configured
	for i, service := range services {
		list = append(list, push.Configured{Provider: int64(i + 1), Order: i, Service: service})
	}
	s.Set(list)
	return s
}

func newService(t *testing.T, cfg wechat.Config) *wechat.Service {
	t.Helper()
	s, err := wechat.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestOneConsentOfTwoMiniPrograms: a user has an account in each of two mini programs. A mini
// program that has certainly sent nothing does not hold up the other. The consent is kept as
// long as one of the two is to be tried again.
func TestOneConsentOfTwoMiniPrograms(t *testing.T) {
	first, second := newWeChat(t), newWeChat(t)
	second.AppID = "wxfedcba9876543210"
	other := strings.Repeat("y", 28)
	both := []user.Device{account(first, openID), account(second, other)}
	s := configuredAs(t, nil, newService(t, config(first)), newService(t, config(second)))

	second.Fail("", pushtest.Fault{Reason: "45011"})
	if r := s.Send(t.Context(), to(both...))[0]; r.Status != delivery.Throttled || r.ConsentUsed || !r.Apart || r.Via != 2 {
		t.Errorf("the first has no consent and the second asks for a pause: %+v", r)
	}
	second.Heal()
	second.Accept(other)
	first.Fail("", pushtest.Fault{Reason: "48001"})
	if r := s.Send(t.Context(), to(both...))[0]; r.Status != delivery.Delivered || !r.ConsentUsed || r.Via != 2 || second.Count() == 0 {
		t.Errorf("the first is not configured well: %+v", r)
	}
	if r := s.Send(t.Context(), to(both...))[0]; r.Status != delivery.Transient || r.ConsentUsed || r.Via != 1 {
		t.Errorf("the second has no consent and the first is to be tried again: %+v", r)
	}
	first.Fail("", pushtest.Fault{Reason: "-1"}) // which leaves open whether the message was taken
	second.Accept(other)
	if n, r := second.Count(), s.Send(t.Context(), to(both...))[0]; r.Status != delivery.Transient || r.ConsentUsed || second.Count() != n {
		t.Errorf("the first may have taken the message: %+v", r)
	}
	first.Heal()
	s = configuredAs(t, nil, newService(t, config(first)))
	if r := s.Send(t.Context(), to(both...))[0]; !r.Skip || !r.ConsentUsed {
		t.Errorf("the only one has no consent: %+v", r)
	}
}

// TestAProviderThatCannotBeMade: only messages of this provider wait.
func TestAProviderThatCannotBeMade(t *testing.T) {
	w := newWeChat(t)
	s := configuredAs(t, nil, wechat.NewUnusable(w.AppID))
	if !s.Serves(1) {
		t.Error("messages are skipped since there is no sender")
	}
	if r := s.Send(t.Context(), to(account(w, openID)))[0]; r.Status != delivery.Throttled || !r.Apart || !r.Held || !r.Unsent || r.After < 30*time.Second || r.ConsentUsed || r.Via != 1 {
		t.Errorf("with a consent: %+v", r)
	}
	without := to(account(w, openID))
	without[0].Consented = false
	if r := s.Send(t.Context(), without)[0]; !r.Skip || r.Reason != delivery.ReasonNoConsent {
		t.Errorf("without a consent: %+v", r)
	}
	if r := s.Send(t.Context(), to(user.Device{Platform: user.IOS, Token: "aa"}))[0]; r.Status != delivery.Permanent {
		t.Errorf("a user without an account: %+v", r)
	}
	w.Accept(openID)
	s = configuredAs(t, nil, wechat.NewUnusable(w.AppID), newService(t, config(w)))
	if r := s.Send(t.Context(), to(account(w, openID)))[0]; r.Status != delivery.Delivered || r.Via != 2 {
		t.Errorf("another provider of the mini program: %+v", r)
	}
}

// TestAPauseOfWeChatDelaysNoPhone: a phone is tried again as soon as the phone's own service
// permits.
func TestAPauseOfWeChatDelaysNoPhone(t *testing.T) {
	w := newWeChat(t)
	w.Fail("", pushtest.Fault{Reason: "45009"})
	for name, c := range map[string]struct {
		phone phones
		want  delivery.Result
	}{
		"failed":      {phones{After: time.Second}, delivery.Result{After: time.Second}},
		"wants pause": {phones{Status: delivery.Throttled, After: time.Second}, delivery.Result{Status: delivery.Throttled, After: time.Second}},
		"gone":        {phones{Status: delivery.Permanent}, delivery.Result{Status: delivery.Throttled, After: 10 * time.Minute, Apart: true}},
		"took it":     {phones{Status: delivery.Delivered}, delivery.Result{Status: delivery.Delivered}},
	} {
		s := configuredAs(t, []push.Service{c.phone}, newService(t, config(w)))
		if r := s.Send(t.Context(), to(account(w, openID)))[0]; r.Status != c.want.Status || r.After != c.want.After || r.Apart != c.want.Apart {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestMessagesPerMinuteHoldUpNoPhone: a message beyond the messages per minute waits a minute at
// most, and does not fail.
func TestMessagesPerMinuteHoldUpNoPhone(t *testing.T) {
	w := newWeChat(t)
	cfg := config(w)
	cfg.PerMinute = 2
	s := configuredAs(t, nil, newService(t, cfg))
	var messages []delivery.Message
	for range 20 {
		w.Accept(openID)
		messages = append(messages, to(account(w, openID))...)
	}
	var waits []time.Duration
	for _, r := range s.Send(t.Context(), messages) {
		switch {
		case r.Status == delivery.Throttled && r.Held && r.Unsent && r.Apart && !r.ConsentUsed:
			waits = append(waits, r.After)
		case r.Status != delivery.Delivered:
			t.Errorf("%+v", r)
		}
	}
	if slices.Sort(waits); w.Count() != 1 || len(waits) != 19 || waits[0] != 30*time.Second || waits[1] != time.Minute || waits[18] != time.Minute {
		t.Errorf("%d arrived, the others wait %v", w.Count(), waits)
	}
}
