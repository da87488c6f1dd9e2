// Package testmessage sends the messages by which staff test a channel or a provider: the limit
// for a member, the content, and the outcome of each message.
package testmessage

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// Faults of test messages.
var (
	// ErrNotTestable is returned for the app, which has no provider: its inbox is derived from
	// recorded batches.
	ErrNotTestable = fault.New(fault.Invalid, "channel_not_testable", "this channel has no provider that could be tested; test another channel")
	// ErrTooManyTests is returned to a member who sends too many tests, with the time to wait.
	ErrTooManyTests = fault.New(fault.Throttled, "too_many_tests", "too many test messages; wait a moment")
)

// How many test messages may be sent in a minute.
const (
	TestsPerMember  = 5
	TestsPerChannel = 20
)

// TestState is where a test message is.
type TestState string

// The states.
const (
	TestWaiting TestState = "waiting"
	TestRunning TestState = "running"
	TestDone    TestState = "done"
)

// TestResult is the result of a test message.
type TestResult string

// The results: the provider's answer by [Status], or unknown because the worker died during the
// call.
const (
	TestDelivered TestResult = "delivered"
	TestTransient TestResult = "transient"
	TestThrottled TestResult = "throttled"
	TestPermanent TestResult = "permanent"
	TestUnknown   TestResult = "unknown"
)

// A ChannelTest is one message that staff send to see whether a channel works.
type ChannelTest struct {
	ID      int64
	Channel delivery.Channel
	// Provider is the id of the configured provider to test; 0 = the provider that the channel's
	// messages use, [Unsaved] = settings that are not stored.
	Provider int64
	// Recipient is an address or, with ByUser, the id of a user. It is deleted as soon as there
	// is a result.
	Recipient string
	ByUser    bool
	// TemplateID is the drop whose name and opening are in the message; 0 = none.
	TemplateID int64
	Locale     string
	// Draft is the text to test, as its editor shows it; nil = the text for test messages.
	Draft *message.Draft
	// DueAt is part of the idempotency key, so that providers treat two tests as different
	// messages.
	DueAt      time.Time
	State      TestState
	Result     TestResult // empty until done
	Detail     string     // the provider's words, without addresses
	Took       time.Duration
	CreatedBy  string
	CreatedAt  time.Time
	FinishedAt *time.Time
}

// A TestWish is the request for a test message.
type TestWish struct {
	Channel delivery.Channel
	// Provider is the id of a configured provider, 0 = whichever is used.
	Provider int64
	// Recipient is an e-mail address, a phone number with +, or the id of a user,
	// depending on the channel.
	Recipient  string
	TemplateID int64
	Locale     string
}

// test returns the test that w describes, or an error about its fields.
func (w TestWish) test(configured delivery.Available) (ChannelTest, error) {
	t := ChannelTest{Channel: w.Channel, Provider: w.Provider, Recipient: strings.TrimSpace(w.Recipient), TemplateID: w.TemplateID, Locale: w.Locale}
	switch {
	case w.Channel == delivery.App:
		return t, ErrNotTestable
	case w.Provider == 0 && !configured.Has(w.Channel):
		return t, delivery.ErrChannelUnavailable
	}
	e := &fault.Fields{}
	_, err := user.ParseID(t.Recipient)
	t.ByUser = err == nil
	switch {
	case t.ByUser:
	case t.Recipient == "":
		e.Add("recipient", "rule.required", "is required")
	case w.Channel == delivery.Email && !user.ValidEmail(t.Recipient):
		e.Add("recipient", "rule.test_email", "must be an e-mail address or the number of a user")
	case w.Channel == delivery.SMS && !user.ValidPhone(t.Recipient):
		e.Add("recipient", "rule.test_phone", "must be a phone number such as +8613800138000 or the number of a user")
	case w.Channel == delivery.WebPush, w.Channel == delivery.Webhook:
		e.Add("recipient", "rule.test_user", "must be the number of a user")
	}
	return t, e.Err()
}

// A TakenTest is a test that one worker has leased.
type TakenTest struct {
	ChannelTest
	Token   string
	Subject delivery.Subject
	To      user.User
}

// TestStore keeps test messages.
type TestStore interface {
	// CreateTest stores t for the workers, with its audit entry. It returns [ErrTooManyTests]
	// wrapped in a [fault.RetryAfter] if the member has sent too many.
	CreateTest(ctx context.Context, t ChannelTest, e staff.Entry) (ChannelTest, error)
	// BeginTest is CreateTest and TakeTest at once: no worker sees the test before it is leased.
	BeginTest(ctx context.Context, t ChannelTest, e staff.Entry, lasting time.Duration) (TakenTest, error)
	// Test returns one test, or [ErrNoWork] if there is none.
	Test(ctx context.Context, id int64) (ChannelTest, error)
	// Tests lists the channel's last tests, newest first.
	Tests(ctx context.Context, c delivery.Channel, limit int) ([]ChannelTest, error)
	// TakeTest leases a waiting test to one worker, or returns [ErrNoWork].
	TakeTest(ctx context.Context, id int64, lasting time.Duration) (TakenTest, error)
	// EndTest records the result and deletes the recipient, unless the worker no longer holds the
	// test.
	EndTest(ctx context.Context, t TakenTest) error
	// OpenTests ends tests whose worker has not answered for too long, and returns waiting tests.
	OpenTests(ctx context.Context, limit int) ([]int64, error)
}

// ChannelTests holds the use cases of staff around test messages.
type ChannelTests struct {
	Store      TestStore
	Configured delivery.Available
	// Patience is how long [ChannelTests.Outcome] waits for a result.
	Patience time.Duration
}

// Start enqueues a test message. It is sent even if the channel is paused or its circuit is open,
// so that operators can find out whether to resume. Start returns a [fault.Fields],
// [ErrChannelUnavailable], [ErrNotTestable] or [ErrTooManyTests].
func (s *ChannelTests) Start(ctx context.Context, by staff.Actor, w TestWish) (ChannelTest, error) {
	if err := by.May(staff.Operate, 0); err != nil {
		return ChannelTest{}, err
	}
	t, err := w.test(s.Configured)
	if err != nil {
		return t, err
	}
	t.CreatedBy = by.Label + " " + by.Name
	return s.Store.CreateTest(ctx, t, t.entry(by))
}

// entry is the audit entry about the test. The address itself stays out of the log.
func (t ChannelTest) entry(by staff.Actor) staff.Entry {
	to := "address"
	if t.ByUser {
		to = "user"
	}
	return staff.Entry{Actor: by, Action: "channel.test", ObjectKind: "channel", ObjectID: t.Channel.String(), After: map[string]string{"to": to}}
}

// SendDraft sends a text that is being written to the member who writes it: the recipient in w is
// the member's own. [ChannelTests.Outcome] returns its outcome. SendDraft returns a
// [fault.Fields] that names every rule that the draft breaks, or the errors of
// [ChannelTests.Start].
func (s *ChannelTests) SendDraft(ctx context.Context, by staff.Actor, shop int64, w TestWish, d message.Draft) (ChannelTest, error) {
	if err := mayTry(by, shop, d.Kind); err != nil {
		return ChannelTest{}, err
	}
	if err := checkDraft(w.Channel, d); err != nil {
		return ChannelTest{}, err
	}
	t, err := w.test(s.Configured)
	if err != nil {
		return t, err
	}
	d.Shop = shop
	t.Draft, t.CreatedBy = &d, by.Label+" "+by.Name
	return s.Store.CreateTest(ctx, t, staff.Entry{Actor: by, Action: "message.test", ObjectKind: "channel", ObjectID: t.Channel.String(), ShopNumber: shop,
		After: map[string]string{"kind": string(d.Kind), "language": d.Language}})
}

// mayTry returns an error unless the member may write texts of the kind for the shop. Shop 0 is a
// campaign of no shop, which members who are limited to shops cannot write.
func mayTry(by staff.Actor, shop int64, k message.Kind) error {
	switch {
	case k != message.Campaign:
		return by.May(staff.ManageTemplates, shop)
	case shop == 0 && len(by.Shops) > 0:
		return staff.ErrForbidden.Because("you are limited to shops; choose the campaign's")
	}
	return by.May(staff.ManageCampaigns, shop)
}

func checkDraft(c delivery.Channel, d message.Draft) error {
	if d.Kind != message.Campaign {
		return d.Text.Check(message.Key{Kind: d.Kind, Channel: message.Channel(c.String()), Language: d.Language})
	}
	e := &fault.Fields{}
	delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: d.Text.Title, Body: d.Text.Body, Blocks: d.Text.Blocks}}}}}.Check(e)
	return e.Err()
}

// testLook is how often the result of a test is looked for.
const testLook = 100 * time.Millisecond

// Outcome waits until the test has a result, at most for [ChannelTests.Patience], and returns the
// test.
func (s *ChannelTests) Outcome(ctx context.Context, t ChannelTest) (ChannelTest, error) {
	look := time.NewTicker(testLook)
	defer look.Stop()
	for waited := time.Duration(0); ; waited += testLook {
		now, err := s.Store.Test(ctx, t.ID)
		if err != nil || now.State == TestDone || waited >= s.Patience {
			return now, err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return now, nil
		}
	}
}

// Tests lists the channel's last tests, newest first.
func (s *ChannelTests) Tests(ctx context.Context, by staff.Actor, c delivery.Channel, limit int) ([]ChannelTest, error) {
	if err := by.May(staff.Operate, 0); err != nil {
		return nil, err
	}
	return s.Store.Tests(ctx, c, limit)
}

// A Tester sends test messages through the senders of ordinary messages. Workers use it.
type Tester struct {
	Store   TestStore
	Senders map[delivery.Channel]delivery.Sender
	// Through returns the sender of one configured provider, enabled or not; nil = there is no
	// such provider.
	Through func(c delivery.Channel, provider int64) delivery.Sender
	Now     func() time.Time
	// Texts has the texts of messages; nil = the built-in ones.
	Texts message.Source
	// DropPage returns the page of a drop without a claim address; see [delivery.Service].
	DropPage func(templateID int64) string
}

const (
	testTimeout = 20 * time.Second
	saveFor     = 30 * time.Second // how long the outcome is tried to be stored
	testLease   = testTimeout + saveFor
	testsAtOnce = 10
)

// Run sends the test unless another worker has leased it. Nothing is sent twice: a test whose
// worker dies is not repeated.
func (s *Tester) Run(ctx context.Context, id int64) error {
	t, err := s.Store.TakeTest(ctx, id, testLease)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	}
	begun := s.Now()
	t.record(s.send(ctx, t))
	t.Took = s.Now().Sub(begun)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
	defer cancel()
	return s.Store.EndTest(ctx, t)
}

func (s *Tester) send(ctx context.Context, t TakenTest) delivery.Result {
	sender := s.Senders[t.Channel]
	if t.Provider != 0 {
		sender = s.Through(t.Channel, t.Provider)
	}
	switch {
	case sender == nil:
		return delivery.Result{Status: delivery.Permanent, Detail: "this worker has no sender for the channel, or the provider cannot be used; see the log of worker"}
	case !t.Channel.Reaches(&t.To):
		return delivery.Result{Status: delivery.Permanent, Detail: "this recipient has no contact for the channel"}
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	content, values, err := s.content(ctx, t)
	if err != nil {
		return delivery.Result{Detail: delivery.CauseOf(err)}
	}
	m := delivery.Message{To: &t.To, Channel: t.Channel, Subject: &t.Subject, Content: &content, Values: values}
	return delivery.Attempt(ctx, sender, []delivery.Message{m})[0]
}

// content returns the content of the test: the draft as its editor shows it, or the text for test
// messages. values returns its variables.
func (s *Tester) content(ctx context.Context, t TakenTest) (c delivery.Content, values func() map[string]string, err error) {
	var book *message.Book
	if s.Texts != nil {
		if book, err = s.Texts.Book(ctx, t.Subject.Place(), t.Subject.TextsUpTo); err != nil {
			return delivery.Content{}, nil, err
		}
	}
	if s.DropPage != nil && t.Channel == delivery.Email {
		t.Subject.OwnPage(s.DropPage)
	}
	r := delivery.NewRenderer(book, t.Subject, t.Channel)
	values = func() map[string]string { return r.Values(t.To) }
	if t.Draft == nil {
		return *r.For(t.To), values, nil
	}
	facts := t.Subject.Facts()
	if sample := message.SampleFacts(t.Draft.Kind); t.TemplateID == 0 {
		sample.Shop, facts = facts.Shop, sample
	}
	facts.Minutes, facts.Days = message.SampleMinutes, message.SampleDays
	return t.Draft.Render(book, facts, message.Channel(t.Channel.String()), message.Reader{Name: t.To.Name, Zone: t.To.Zone()}), values, nil
}

func (t *TakenTest) record(r delivery.Result) {
	t.Detail = delivery.DetailOf(r.Detail)
	t.Result = map[delivery.Status]TestResult{delivery.Transient: TestTransient, delivery.Delivered: TestDelivered,
		delivery.Throttled: TestThrottled, delivery.Permanent: TestPermanent}[r.Status]
}

// Sweep runs tests that no task has run, and ends tests whose worker died during the call.
func (s *Tester) Sweep(ctx context.Context) error {
	ids, err := s.Store.OpenTests(ctx, testsAtOnce)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.Run(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
