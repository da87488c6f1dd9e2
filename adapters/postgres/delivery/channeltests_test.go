package delivery_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/domain/user"
)

// testFixture requests and sends test messages.
type testFixture struct {
	*fixture
	store  deliverydb.ChannelTests
	tests  *testmessage.ChannelTests
	tester *testmessage.Tester
	mail   *recordingSender
}

// recordingSender is a provider that records its messages.
type recordingSender struct {
	channel delivery.Channel
	mu      sync.Mutex
	got     []delivery.Message
	answer  delivery.Result
	during  func()
}

func (b *recordingSender) Channel() delivery.Channel { return b.channel }
func (b *recordingSender) ChunkSize() int            { return 10 }
func (b *recordingSender) Send(_ context.Context, ms []delivery.Message) []delivery.Result {
	if b.during != nil {
		b.during()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, ms...)
	return delivery.Repeat(b.answer, len(ms))
}

func newTestFixture(t *testing.T) *testFixture {
	w := newFixture(t)
	b := &testFixture{fixture: w, store: deliverydb.NewChannelTests(w.DB), mail: &recordingSender{channel: delivery.Email, answer: delivery.Result{Status: delivery.Delivered}}}
	b.tests = &testmessage.ChannelTests{Store: b.store, Configured: delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS, delivery.Webhook)}
	b.tester = &testmessage.Tester{Store: b.store, Senders: map[delivery.Channel]delivery.Sender{delivery.Email: b.mail}, Now: pgtest.Clock}
	return b
}

func (b *testFixture) ask(to string, change ...func(*testmessage.TestWish)) testmessage.ChannelTest {
	b.Helper()
	w := testmessage.TestWish{Channel: delivery.Email, Recipient: to, Locale: "zh-CN"}
	for _, c := range change {
		c(&w)
	}
	t, err := b.tests.Start(b.Context(), pgtest.Operator, w)
	b.Must(err)
	return t
}

func (b *testFixture) last() testmessage.ChannelTest {
	b.Helper()
	list, err := b.tests.Tests(b.Context(), pgtest.Operator, delivery.Email, 1)
	b.Must(err)
	if len(list) != 1 {
		b.Fatal("there is no test")
	}
	return list[0]
}

func TestAChannelTestIsSentOnce(t *testing.T) {
	b := newTestFixture(t)
	asked := b.ask(" lin@example.com ")
	if asked.State != testmessage.TestWaiting || asked.ByUser {
		t.Fatalf("%+v", asked)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := b.tester.Run(context.Background(), asked.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(b.mail.got) != 1 {
		t.Fatalf("sent %d times", len(b.mail.got))
	}
	m := b.mail.got[0]
	if m.To.Email != "lin@example.com" || m.Subject.Kind != delivery.KindTest || !strings.Contains(m.Content.Title, "测试消息") {
		t.Errorf("%+v %+v", m.To, m.Content)
	}
	got := b.last()
	if got.State != testmessage.TestDone || got.Result != testmessage.TestDelivered || got.Recipient != "" || got.FinishedAt == nil {
		t.Errorf("%+v", got)
	}
	if n := b.Number(`select count(*) from audit where action = 'channel.test' and object_id = 'email'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	if n := b.Number(`select count(*) from audit where to_jsonb(audit)::text like '%lin@%'`) +
		b.Number(`select count(*) from outbox where payload::text like '%lin@%'`) + b.Number(`select count(*) from channel_tests where to_jsonb(channel_tests)::text like '%lin@%'`); n != 0 {
		t.Errorf("the address is kept in %d places", n)
	}
	if n := b.Number(`select count(*) from outbox where topic = 'channeltest.created.v1'`); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestAChannelTestToAUserAboutADrop(t *testing.T) {
	b := newTestFixture(t)
	tpl := b.Published(2 * time.Hour)
	email, locale := "ada@example.com", "en"
	b.Upsert(user.Change{ID: 1001, Email: &email, Locale: &locale})
	b.ask("1001", func(w *testmessage.TestWish) { w.TemplateID = tpl.ID })
	b.Must(b.tester.Sweep(t.Context()))
	if m := b.mail.got[0]; m.To.Email != email || m.To.ID != 1001 || m.Subject.TemplateName != tpl.Name || !strings.Contains(m.Content.Text, tpl.Name) {
		t.Errorf("%+v %+v", m.To, m.Content)
	}
	b.ask("1002") // there is no such user
	b.Must(b.tester.Sweep(t.Context()))
	if got := b.last(); got.Result != testmessage.TestPermanent || !strings.Contains(got.Detail, "no contact") || len(b.mail.got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestChannelTestsHaveTheirOwnKeys: two tests never look like repetitions of one
// message to a provider.
func TestChannelTestsHaveTheirOwnKeys(t *testing.T) {
	b := newTestFixture(t)
	for range testmessage.TestsPerMember {
		b.ask("lin@example.com")
	}
	b.Must(b.tester.Sweep(t.Context()))
	keys := map[string]bool{}
	for _, m := range b.mail.got {
		keys[m.IdempotencyKey()] = true
	}
	if len(keys) != testmessage.TestsPerMember {
		t.Errorf("%d keys for %d messages", len(keys), len(b.mail.got))
	}
}

func TestProvidersAnswersToAChannelTest(t *testing.T) {
	b := newTestFixture(t)
	for _, c := range []struct {
		answer delivery.Result
		want   testmessage.TestResult
		detail string
	}{
		{delivery.Result{Status: delivery.Permanent, Detail: "550 no such mailbox lin@example.com"}, testmessage.TestPermanent, "550 no such mailbox …"},
		{delivery.Result{Status: delivery.Throttled}, testmessage.TestThrottled, ""},
		{delivery.Result{Detail: "timed out"}, testmessage.TestTransient, "timed out"},
	} {
		b.mail.answer = c.answer
		b.ask("lin@example.com")
		b.Must(b.tester.Sweep(t.Context()))
		if got := b.last(); got.Result != c.want || got.Detail != c.detail || got.State != testmessage.TestDone {
			t.Errorf("%+v: %+v", c.answer, got)
		}
	}
	b.tester.Senders = nil
	b.ask("lin@example.com")
	b.Must(b.tester.Sweep(t.Context()))
	if got := b.last(); got.Result != testmessage.TestPermanent || got.Detail == "" {
		t.Errorf("without a sender: %+v", got)
	}
}

// TestAWorkerDiesInAChannelTest: a worker that dies during the call leaves a test
// with an unknown outcome. The test is not sent again, and a late result of that
// worker changes nothing.
func TestAWorkerDiesInAChannelTest(t *testing.T) {
	b := newTestFixture(t)
	asked := b.ask("lin@example.com")
	b.mail.during = func() {
		b.Exec(`update channel_tests set lease_until = clock_timestamp() - interval '1 second'`)
		if ids, err := b.store.OpenTests(t.Context(), 10); err != nil || len(ids) != 0 {
			t.Errorf("%v %v", ids, err)
		}
	}
	b.Must(b.tester.Run(t.Context(), asked.ID))
	if got := b.last(); got.Result != testmessage.TestUnknown || got.Recipient != "" {
		t.Errorf("%+v", got)
	}
	b.Must(b.tester.Sweep(t.Context()))
	b.Must(b.tester.Run(t.Context(), asked.ID))
	if len(b.mail.got) != 1 {
		t.Errorf("sent %d times", len(b.mail.got))
	}
}

func TestChannelTestsAreChecked(t *testing.T) {
	b := newTestFixture(t)
	for _, c := range []struct {
		channel delivery.Channel
		to      string
		err     error
	}{
		{delivery.App, "1", testmessage.ErrNotTestable}, {delivery.WebPush, "1", delivery.ErrChannelUnavailable}, {77, "1", delivery.ErrChannelUnavailable},
		{delivery.Email, "", fault.ErrInvalid}, {delivery.Email, "nobody", fault.ErrInvalid}, {delivery.Email, "a b@example.com", fault.ErrInvalid},
		{delivery.Email, "-1", fault.ErrInvalid}, {delivery.SMS, "+1", fault.ErrInvalid}, {delivery.SMS, "lin@example.com", fault.ErrInvalid},
		{delivery.Webhook, "lin@example.com", fault.ErrInvalid}, {delivery.Webhook, "99999999999999999999", fault.ErrInvalid},
	} {
		if _, err := b.tests.Start(t.Context(), pgtest.Operator, testmessage.TestWish{Channel: c.channel, Recipient: c.to}); !errors.Is(err, c.err) {
			t.Errorf("%v to %q: %v, want %v", c.channel, c.to, err, c.err)
		}
	}
	for _, role := range []staff.Role{"", staff.Viewer, staff.Marketer} {
		by := staff.Actor{Label: "staff:9", Role: role}
		if _, err := b.tests.Start(t.Context(), by, testmessage.TestWish{Channel: delivery.Email, Recipient: "lin@example.com"}); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("%s may test: %v", role, err)
		}
		if _, err := b.tests.Tests(t.Context(), by, delivery.Email, 1); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("%s may look: %v", role, err)
		}
	}
	if n := b.Number(`select count(*) from channel_tests`); n != 0 {
		t.Errorf("%d tests were stored", n)
	}
}

func TestChannelTestsAreLimited(t *testing.T) {
	b := newTestFixture(t)
	var mine, refused atomic.Int64
	var all sync.WaitGroup
	for range 3 * testmessage.TestsPerMember {
		all.Go(func() {
			_, err := b.tests.Start(context.Background(), pgtest.Operator, testmessage.TestWish{Channel: delivery.Email, Recipient: "lin@example.com"})
			after, ok := errors.AsType[*fault.RetryAfter](err)
			switch {
			case err == nil:
				mine.Add(1)
			case errors.Is(err, testmessage.ErrTooManyTests) && ok && after.After > 0 && after.After <= time.Minute:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if mine.Load() != testmessage.TestsPerMember || refused.Load() != 2*testmessage.TestsPerMember {
		t.Errorf("%d were allowed and %d refused", mine.Load(), refused.Load())
	}
	b.Exec(`update channel_tests set created_at = created_at - interval '1 minute'`)
	b.ask("lin@example.com")
	b.Exec(`insert into channel_tests (channel, recipient, by_user, due_at, created_by) select 1, 'x', false, now(), 'staff:' || n from generate_series(1, $1) n`, testmessage.TestsPerChannel)
	if _, err := b.tests.Start(t.Context(), pgtest.Operator, testmessage.TestWish{Channel: delivery.Email, Recipient: "lin@example.com"}); !errors.Is(err, testmessage.ErrTooManyTests) {
		t.Errorf("one more than the channel takes: %v", err)
	}
}

// TestOutcomeOfATest: a member who sends a test waits for its outcome, for a
// limited time.
func TestOutcomeOfATest(t *testing.T) {
	b := newTestFixture(t)
	asked := b.ask("lin@example.com")
	if now, err := b.tests.Outcome(t.Context(), asked); err != nil || now.State != testmessage.TestWaiting { // no patience
		t.Errorf("%+v %v", now, err)
	}
	b.tests.Patience = localstack.Patience(t)
	var sending sync.WaitGroup
	sending.Go(func() {
		if err := b.tester.Run(context.Background(), asked.ID); err != nil {
			t.Error(err)
		}
	})
	now, err := b.tests.Outcome(t.Context(), asked)
	sending.Wait()
	if err != nil || now.Result != testmessage.TestDelivered || now.Recipient != "" {
		t.Errorf("%+v %v", now, err)
	}
	if _, err := b.tests.Outcome(t.Context(), testmessage.ChannelTest{ID: asked.ID + 1}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of a test that does not exist: %v", err)
	}
}
