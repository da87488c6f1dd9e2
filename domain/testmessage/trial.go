package testmessage

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
)

// Unsaved is the provider of a test with settings that are not stored.
const Unsaved int64 = -1

// A TrialSender is a sender that is made for one message.
type TrialSender interface {
	delivery.Sender
	Close() error
}

// Trials send test messages with the settings of a provider's form, before they are saved. They
// send in the process that has the form: its secrets are stored nowhere.
type Trials struct {
	Store     TestStore
	Providers *provider.Service
	// Sender makes the sender. The errors are of the settings, as a [fault.Fields].
	Sender func(p provider.Provider, secrets map[string]string) (TrialSender, error)
	Now    func() time.Time
	// Texts has the texts of messages; nil = the built-in ones.
	Texts message.Source
}

// Try sends one message to the recipient of w with the values of in, and returns the test with its
// result. For id and version see [provider.Service.Draft]. The limits are those of
// [ChannelTests.Start]. Try returns a [fault.Fields] that names every rule that in or the recipient
// breaks, and otherwise the errors of Draft and of [ChannelTests.Start].
//
// A process that dies during the call leaves a test that ends as unknown, without its recipient.
func (s *Trials) Try(ctx context.Context, by staff.Actor, id, version int64, in provider.Input, w TestWish) (ChannelTest, error) {
	p, secrets, err := s.Providers.Draft(ctx, by, id, version, in)
	broken := fieldsOf(err)
	if err != nil && broken == nil {
		return ChannelTest{}, err
	}
	w.Channel, w.Provider = p.Channel, Unsaved
	t, err := w.test(nil)
	if broken = append(broken, fieldsOf(err)...); len(broken) > 0 {
		return t, &fault.Fields{List: broken}
	}
	if err != nil {
		return t, err
	}
	sender, err := s.Sender(p, secrets)
	if err != nil {
		return t, err
	}
	defer sender.Close()
	t.CreatedBy = by.Label + " " + by.Name
	taken, err := s.Store.BeginTest(ctx, t, t.entry(by), testLease)
	if err != nil {
		return t, err
	}
	tester := Tester{Now: s.Now, Texts: s.Texts, Through: func(delivery.Channel, int64) delivery.Sender { return sender }}
	begun := s.Now()
	taken.record(tester.send(ctx, taken))
	taken.Took, taken.Detail = s.Now().Sub(begun), withoutSecrets(taken.Detail, secrets)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
	defer cancel()
	return taken.ChannelTest, s.Store.EndTest(ctx, taken)
}

func fieldsOf(err error) []fault.Field {
	if e, ok := err.(*fault.Fields); ok {
		return e.List
	}
	return nil
}

// shortestSecret is the length in bytes from which a part of a secret is masked in an answer.
const shortestSecret = 4

// withoutSecrets masks the secrets in a provider's answer, and a beginning of a secret at which the
// answer was cut.
func withoutSecrets(detail string, secrets map[string]string) string {
	for _, secret := range secrets {
		for _, v := range append(strings.Split(secret, "\n"), secret) {
			v = strings.TrimSpace(v)
			if len(v) < shortestSecret {
				continue
			}
			detail = strings.ReplaceAll(detail, v, "…")
			rest := strings.TrimSuffix(detail, "…")
			for n := len(v) - 1; n >= shortestSecret; n-- {
				if begun, ok := strings.CutSuffix(rest, v[:n]); ok {
					detail = begun + "…"
					break
				}
			}
		}
	}
	return detail
}
