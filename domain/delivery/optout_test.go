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
