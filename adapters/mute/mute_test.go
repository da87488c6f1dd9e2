package mute

import (
	"testing"
	"time"

	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
)

func TestContract(t *testing.T) {
	t.Parallel()
	for _, c := range delivery.AllChannels() {
		sendertest.Run(t, sendertest.Harness{Accepting: func(*testing.T) delivery.Sender { return Senders(Profiles{})[c] }})
	}
}

// A sender refuses and fails as often as it was measured; messages of the app never fail.
func TestAnswersAreAsMeasured(t *testing.T) {
	t.Parallel()
	all := Senders(Profiles{delivery.Email: {Refused: 1}, delivery.SMS: {Failed: 1}, delivery.App: {Refused: 1}})
	for c, want := range map[delivery.Channel]delivery.Status{delivery.Email: delivery.Permanent, delivery.SMS: delivery.Transient, delivery.App: delivery.Delivered, delivery.Webhook: delivery.Delivered} {
		for _, r := range all[c].Send(t.Context(), sendertest.Messages(c, 5)) {
			if r.Status != want {
				t.Errorf("%s answers %v, want %v", c, r.Status, want)
			}
		}
	}
}

// A channel takes as many messages in a while as its rate says, and a second's worth at once.
func TestPace(t *testing.T) {
	t.Parallel()
	p := NewPace(Profiles{delivery.Email: {PerSecond: 100}})
	load := delivery.Load{Channel: delivery.Email, Messages: 100}
	if wait, _ := p.Admit(t.Context(), load); wait != 0 {
		t.Errorf("the first load waits %s", wait)
	}
	if wait, _ := p.Admit(t.Context(), load); wait != 0 {
		t.Errorf("the second load waits %s although nothing was sent in the last second", wait)
	}
	if wait, reason := p.Admit(t.Context(), load); wait <= 0 || wait > time.Second || reason == "" {
		t.Errorf("the third load waits %s: %s", wait, reason)
	}
	if wait, _ := p.Admit(t.Context(), delivery.Load{Channel: delivery.App, Messages: 1e6}); wait != 0 {
		t.Errorf("the app waits %s", wait)
	}
}
