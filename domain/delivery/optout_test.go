package delivery

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

// recordingProvider keeps the messages it is given.
type recordingProvider struct {
	*provider
	kept []Message
}

func (l *recordingProvider) Send(ctx context.Context, ms []Message) []Result {
	l.kept = append(l.kept, ms...)
	return l.provider.Send(ctx, ms)
}

// Mails offer the way out, each reader their own; tests and other channels do not.
func TestMessagesOfferTheWayOut(t *testing.T) {
	for _, c := range []struct {
		channel Channel
		kind    Kind
		want    bool
	}{{Email, KindReminder, true}, {Email, KindCampaign, true}, {Email, KindTest, false}, {SMS, KindReminder, false}} {
		synctest.Test(t, func(t *testing.T) {
			p := newProvider(c.channel, 10, 0)
			d := newFakeStore(c.channel, 3, time.Hour)
			d.subject.Kind = c.kind
			r := newFixture(t, d, p)
			r.OptOutURL = func(id user.ID, ch Channel) string { return fmt.Sprintf("https://x.example/u/%d-%s", id, ch) }
			var got []string
			r.Senders[c.channel] = &recordingProvider{provider: p}
			r.must()
			for _, m := range r.Senders[c.channel].(*recordingProvider).kept {
				if m.OptOutURL != "" {
					got = append(got, m.OptOutURL)
				}
			}
			want := fmt.Sprintf("https://x.example/u/%d-%s", d.due[0], c.channel)
			if c.want && (len(got) != 3 || got[0] != want) || !c.want && len(got) > 0 {
				t.Errorf("%s %s: %q", c.channel, c.kind, got)
			}
		})
	}
}

// TestSkipsAreRecordedWithTheRest: in the app and in small batches the skips of opted-out users
// are recorded by the same checkpoint as the other outcomes, whichever way the batch ends. A
// checkpoint that is repeated after an outage of the store has them too.
func TestSkipsAreRecordedWithTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		channel  Channel
		users    int
		optedOut []user.ID
		refused  int
		attempts int
		want     map[Outcome]int
	}{
		"sent":                {App, 10, []user.ID{2, 3}, 0, 1, map[Outcome]int{Sent: 8, Skipped: 2}},
		"everybody opted out": {App, 2, []user.ID{1, 2}, 0, 1, map[Outcome]int{Skipped: 2}},
		"the store was away":  {App, 10, []user.ID{2}, 2, 3, map[Outcome]int{Sent: 9, Skipped: 1}},
		"one call of texts":   {SMS, 10, []user.ID{2, 3}, 0, 1, map[Outcome]int{Sent: 8, Skipped: 2}},
		"no text":             {SMS, 2, []user.ID{1, 2}, 0, 1, map[Outcome]int{Skipped: 2}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(c.channel, c.users, time.Hour), newProvider(c.channel, 1000, 0))
			for _, id := range c.optedOut {
				r.depot.optedOut[id] = true
			}
			r.depot.refuse = func(attempt int) error {
				if attempt <= c.refused {
					return errAway
				}
				return nil
			}
			r.must()
			r.want(c.want)
			if r.depot.attempts != c.attempts || r.depot.exceptions[2].Reason != ReasonOptedOut {
				t.Errorf("%s: %d checkpoints, %+v", name, r.depot.attempts, r.depot.exceptions[2])
			}
		})
	}
}
