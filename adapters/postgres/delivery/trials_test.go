package delivery_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
)

// trialSender is a recordingSender that counts its ends.
type trialSender struct {
	*recordingSender
	closed int
}

func (s *trialSender) Close() error { s.closed++; return nil }

// trials tries providers of SMS, whose sender is the second result. It keeps the secrets that the
// sender was made with.
func trials(t *testing.T) (*testFixture, *testmessage.Trials, *trialSender, *map[string]string) {
	b := newTestFixture(t)
	sender := &trialSender{recordingSender: &recordingSender{channel: delivery.SMS, answer: delivery.Result{Status: delivery.Delivered}}}
	given := map[string]string{}
	service := &provider.Service{Store: deliverydb.NewConfigured(b.DB), Box: providerBox(t, "key one"), Keyed: true, IsCountry: func(c string) bool { return len(c) == 2 }}
	return b, &testmessage.Trials{Store: b.store, Providers: service, Now: pgtest.Clock, Sender: func(_ provider.Provider, secrets map[string]string) (testmessage.TrialSender, error) {
		given = secrets
		return sender, nil
	}}, sender, &given
}

var toPhone = testmessage.TestWish{Recipient: "+4915207770123", Locale: "en"}

// The values of a form are tried and not stored: no provider, no secret, no address remains, also
// if the provider repeats the secret in its answer.
func TestAFormIsTriedAndNotStored(t *testing.T) {
	b, s, sender, given := trials(t)
	sender.answer = delivery.Result{Status: delivery.Permanent, Detail: "no account has the token very secret token, nor very sec"}
	got, err := s.Try(t.Context(), pgtest.Operator, 0, 0, twilioInput(), toPhone)
	b.Must(err)
	if got.State != testmessage.TestRunning && got.State != testmessage.TestDone || got.Result != testmessage.TestPermanent || got.Detail != "no account has the token …, nor …" {
		t.Errorf("%+v", got)
	}
	if len(sender.got) != 1 || sender.got[0].To.Phone != toPhone.Recipient || sender.closed != 1 || (*given)["key_secret"] != "very secret token" {
		t.Errorf("sent %+v, closed %d times", sender.got, sender.closed)
	}
	if n := b.Number(`select count(*) from providers`); n != 0 {
		t.Errorf("%d providers", n)
	}
	if n := b.Number(`select count(*) from channel_tests where state = 'done' and result = 'permanent' and recipient = '' and provider_id = -1`); n != 1 {
		t.Errorf("%d tests", n)
	}
	for _, kept := range []string{"secret", "15207770123"} {
		if n := b.Number(`select (select count(*) from channel_tests c where c::text like $1) + (select count(*) from audit a where a::text like $1) + (select count(*) from outbox o where o::text like $1)`, "%"+kept+"%"); n != 0 {
			t.Errorf("%q is kept in %d rows", kept, n)
		}
	}
	if n := b.Number(`select count(*) from audit where action = 'channel.test'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	b.Must(b.tester.Sweep(t.Context()))
	if len(sender.got) != 1 || b.Number(`select count(*) from outbox where topic = 'channeltest.created.v1'`) != 0 {
		t.Error("a worker sends the test as well")
	}
}

// A form of a stored provider is tried with the stored secrets that it does not replace, unless they
// would go to another server.
func TestAChangeIsTried(t *testing.T) {
	b, s, _, given := trials(t)
	p, err := s.Providers.Create(t.Context(), staff.System(), twilioInput(), "once")
	b.Must(err)
	in := twilioInput()
	in.Secrets, in.Settings = nil, map[string]string{"key_id": "AC2", "from": "+4915207770123"}
	_, err = s.Try(t.Context(), pgtest.Operator, p.ID, p.Version, in, toPhone)
	if b.Must(err); (*given)["key_secret"] != "very secret token" {
		t.Errorf("tried with %v", *given)
	}
	if n := b.Number(`select count(*) from providers where settings ->> 'key_id' = 'AC1'`); n != 1 {
		t.Error("the stored provider was changed")
	}
	if _, err := s.Try(t.Context(), pgtest.Operator, p.ID, p.Version+1, in, toPhone); !errors.Is(err, fault.ErrStale) {
		t.Errorf("a stale form: %v", err)
	}
	in.Settings["url"] = "https://collector.example"
	_, err = s.Try(t.Context(), pgtest.Operator, p.ID, p.Version, in, testmessage.TestWish{Recipient: "nobody"})
	f, ok := errors.AsType[*fault.Fields](err)
	if !ok || len(f.List) != 2 || f.List[0].Name != "key_secret" || f.List[1].Name != "recipient" {
		t.Errorf("another server, and no recipient: %v", err)
	}
	if _, err := s.Try(t.Context(), staff.Actor{Label: "staff:9", Role: staff.Marketer}, 0, 0, twilioInput(), toPhone); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("a marketer: %v", err)
	}
}

// Tries count with the other test messages of a member, and a process that dies during the call
// leaves a test that ends without its recipient.
func TestTriesAreLimitedAndEnd(t *testing.T) {
	b, s, sender, _ := trials(t)
	sender.during = func() {
		b.Exec(`update channel_tests set lease_until = clock_timestamp() - interval '1 second'`)
		if ids, err := b.store.OpenTests(context.WithoutCancel(t.Context()), 10); err != nil || len(ids) != 0 {
			t.Errorf("%v %v", ids, err)
		}
	}
	for range testmessage.TestsPerMember {
		_, err := s.Try(t.Context(), pgtest.Operator, 0, 0, twilioInput(), toPhone)
		b.Must(err)
	}
	if n := b.Number(`select count(*) from channel_tests where result = 'unknown' and recipient = ''`); n != testmessage.TestsPerMember {
		t.Errorf("%d tests ended as unknown", n)
	}
	_, err := s.Try(t.Context(), pgtest.Operator, 0, 0, twilioInput(), toPhone)
	if after, ok := errors.AsType[*fault.RetryAfter](err); !ok || !errors.Is(err, testmessage.ErrTooManyTests) || after.After > time.Minute {
		t.Errorf("one more: %v", err)
	}
	if len(sender.got) != testmessage.TestsPerMember || strings.Contains(err.Error(), "secret") {
		t.Errorf("sent %d times", len(sender.got))
	}
}
