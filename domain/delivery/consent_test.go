package delivery

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

// mini is a provider of push that demands a consent for each message, as WeChat does.
func mini(t *testing.T, users int) *fixture {
	p := newProvider(WebPush, 20, 0)
	r := newFixture(t, newFakeStore(WebPush, users, time.Hour), p)
	r.depot.consents = map[user.ID]bool{}
	for _, id := range r.depot.due {
		u := r.depot.known[id]
		u.Devices = []user.Device{{Platform: user.WeChat, Token: "o", App: "wx"}}
		r.depot.known[id] = u
		r.depot.consents[id] = id%2 == 1
	}
	r.Senders[WebPush] = consentingProvider{p}
	return r
}

// consentingProvider hands over only messages with a consent.
type consentingProvider struct{ *provider }

func (p consentingProvider) Send(ctx context.Context, ms []Message) []Result {
	results := p.provider.Send(ctx, slices.DeleteFunc(slices.Clone(ms), func(m Message) bool { return !m.Consented }))
	all := make([]Result, len(ms))
	for i, m := range ms {
		if !m.Consented {
			all[i] = Result{Status: Permanent, Skip: true, Unsent: true, Held: true, Reason: ReasonNoConsent}
			continue
		}
		all[i], results = results[0], results[1:]
		all[i].ConsentUsed = all[i].Status == Delivered || all[i].Reason == ReasonNoConsent
	}
	return all
}

// TestConsentsAreUsedWithTheOutcome: only messages with consent are handed over. The checkpoint
// that records an outcome removes the consent that the message used, and no other consent.
func TestConsentsAreUsedWithTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mini(t, 100)
		r.provider.answer = func(id user.ID, times int) Result {
			switch {
			case id == 5 && times == 1:
				return Result{Detail: "timed out"} // the consent may be needed again
			case id == 7:
				return Result{Status: Permanent, Skip: true, Unsent: true, Reason: ReasonNoConsent} // refused by the service
			}
			return Result{Status: Delivered}
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 49, Skipped: 51})
		used := map[user.ID]int{}
		for _, p := range r.depot.checkpoints {
			for _, id := range p.ConsentsUsed {
				used[id]++
				recorded := slices.Contains(p.Sent, id) || slices.ContainsFunc(p.Exceptions, func(e Exception) bool { return e.UserID == id && e.Outcome == Skipped })
				if !recorded {
					t.Errorf("the consent of user %d was removed without an outcome", id)
				}
			}
		}
		for _, id := range r.depot.due {
			if want := int(id % 2); used[id] != want {
				t.Errorf("the consent of user %d was used %d times, want %d", id, used[id], want)
			}
		}
		if e := r.depot.exceptions[2]; e.Outcome != Skipped || e.Reason != ReasonNoConsent || e.Attempts != 0 {
			t.Errorf("without a consent: %+v", e)
		}
	})
}

// TestConsentsOfAnotherBatchAreWaitedFor: a batch waits while another batch may use the consents.
// Messages that a former run handed over have used their consents.
func TestConsentsOfAnotherBatchAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mini(t, 10)
		r.depot.accepted = []user.ID{3}
		r.depot.consentsErr = ErrConsentsTaken
		r.must()
		if len(r.provider.calls) != 0 || r.depot.done || r.depot.holder != nil {
			t.Errorf("%d calls while another batch may use the consents; done: %v", len(r.provider.calls), r.depot.done)
		}
		if p := r.depot.checkpoints[0]; !slices.Equal(p.Sent, []user.ID{3}) || !slices.Equal(p.ConsentsUsed, []user.ID{3}) {
			t.Errorf("of a former run: %+v", p)
		}
		r.depot.consentsErr = nil
		r.finish()
		r.want(map[Outcome]int{Sent: 5, Skipped: 5})
	})
}

// TestOtherMessagesHaveNoConsents: a correction is sent with none.
func TestOtherMessagesHaveNoConsents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mini(t, 10)
		r.depot.subject.Kind = KindCorrection
		r.depot.accepted = []user.ID{3}
		r.finish()
		r.want(map[Outcome]int{Sent: 1, Skipped: 9})
		for _, p := range r.depot.checkpoints {
			if len(p.ConsentsUsed) > 0 {
				t.Errorf("consents were used: %+v", p)
			}
		}
	})
}
