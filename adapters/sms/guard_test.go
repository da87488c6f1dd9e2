package sms_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/jsonapi"
	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// budget is one of a single process.
type budget struct {
	mu    sync.Mutex
	left  int64
	day   time.Time
	asked int
	err   error
	drops map[int64]int64 // the budget left of drops that are limited
	money *int64          // micros that are left; nil = any
}

func (b *budget) Take(_ context.Context, owner delivery.BudgetOwner, size delivery.BudgetSize) (delivery.BudgetTaking, delivery.BudgetShort, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	parts := size.Parts
	if b.money != nil && *b.money < size.Micros {
		return delivery.BudgetTaking{}, delivery.BudgetMoneyShort, b.err
	}
	if left, limited := b.drops[owner.Drop]; limited && left < parts {
		return delivery.BudgetTaking{}, delivery.BudgetDropShort, b.err
	} else if limited {
		b.drops[owner.Drop] -= parts
	}
	if b.err != nil || b.left < parts {
		return delivery.BudgetTaking{}, delivery.BudgetDayShort, b.err
	}
	b.left -= parts
	if b.money != nil {
		*b.money -= size.Micros
	}
	return delivery.BudgetTaking{Day: b.day, BudgetOwner: owner}, delivery.BudgetEnough, nil
}

// GiveBack gives back to the budget of the same day. The budget of another day no longer exists.
func (b *budget) GiveBack(_ context.Context, from delivery.BudgetTaking, size delivery.BudgetSize) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, limited := b.drops[from.Drop]; limited {
		b.drops[from.Drop] += size.Parts
	}
	if from.Day.Equal(b.day) {
		b.left += size.Parts
		if b.money != nil {
			*b.money += size.Micros
		}
	}
	return nil
}

func start(t testing.TB) *smstest.JSON {
	t.Helper()
	p := smstest.NewJSON()
	t.Cleanup(p.Close)
	return p
}

func newSender(t testing.TB, address string) delivery.Sender {
	t.Helper()
	s, err := jsonapi.New(jsonapi.Config{URL: address, Token: smstest.JSONToken})
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContractOfAGuard(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender {
			return &sms.Guard{Sender: newSender(t, start(t).URL), Countries: []string{"CN"}, Budget: &budget{left: 100_000}}
		},
		Unreachable: func(u *user.User) { u.Phone = "+14155552671" },
	})
}

func TestCountries(t *testing.T) {
	p := start(t)
	g := &sms.Guard{Sender: newSender(t, p.URL), Countries: []string{"CN", "HK"}}
	messages := sendertest.Messages(delivery.SMS, 5)
	messages[1].To.Phone, messages[2].To.Phone, messages[3].To.Phone, messages[4].To.Phone = "+85291234567", "+14155552671", "+1", "+88213300000"
	results := g.Send(t.Context(), messages)
	for i, want := range []string{"", "", delivery.ReasonCountry, "", delivery.ReasonCountry} {
		if results[i].Reason != want {
			t.Errorf("message %d: got %+v", i, results[i])
		}
	}
	if results[2].Status != delivery.Permanent || results[2].Skip || !strings.Contains(results[2].Detail, "US") || results[3].Status != delivery.Permanent {
		t.Errorf("got %+v", results)
	}
	if p.Calls() != 1 || len(p.Sent()) != 2 {
		t.Errorf("got %d calls with %+v", p.Calls(), p.Sent())
	}
}

func TestTheBudgetEnds(t *testing.T) {
	p := start(t)
	messages := sendertest.Messages(delivery.SMS, 10)
	each := int64(sms.Parts(messages[0]))
	b := &budget{left: 6*each + each - 1}
	g := &sms.Guard{Sender: newSender(t, p.URL), Budget: b}
	messages[0].To.Phone = "+1" // refused, and given back
	delivered, skipped := 0, 0
	for _, r := range g.Send(t.Context(), messages) {
		switch {
		case r.Status == delivery.Delivered:
			delivered++
		case r.Skip && r.Reason == delivery.ReasonBudget:
			skipped++
		}
	}
	if delivered != 6 || skipped != 3 || b.left >= each {
		t.Errorf("%d were delivered, %d skipped, %d parts are left", delivered, skipped, b.left)
	}
	b.err = errors.New("the database is away")
	g = &sms.Guard{Sender: g.Sender, Budget: b} // that has not heard of the end
	if r := g.Send(t.Context(), messages)[5]; r.Status != delivery.Throttled || !r.Apart {
		t.Errorf("without a database: got %+v", r)
	}
}

// TestTheMoneyEnds: money is counted by the price of each number. A number without a price costs
// the highest price. A message that fits is sent although an earlier message did not fit.
func TestTheMoneyEnds(t *testing.T) {
	prices, err := delivery.ParseSMSPrices("86=0.05 CNY,1=0.4 CNY")
	musttest.OK(t, err)
	messages := sendertest.Messages(delivery.SMS, 4)
	each := int64(sms.Parts(messages[0]))
	messages[1].To.Phone, messages[2].To.Phone = "+14155552671", "+4915112345678"
	left := each * 500_000 // for two numbers of 86 and one number with the high price
	b := &budget{left: 1000, money: &left}
	g := &sms.Guard{Sender: newSender(t, start(t).URL), Budget: b, Prices: prices}
	results := g.Send(t.Context(), messages)
	for i, want := range []bool{true, true, false, true} {
		if r := results[i]; (r.Status == delivery.Delivered) != want || !want && (!r.Skip || r.Reason != delivery.ReasonBudget || !strings.Contains(r.Detail, "SMS_BUDGET_MONEY_PER_DAY")) {
			t.Errorf("message %d: %+v", i, r)
		}
	}
	if left != 0 || b.left != 1000-3*each {
		t.Errorf("%d micros and %d parts are left", left, b.left)
	}
	asked := b.asked
	if r := g.Send(t.Context(), messages[2:3])[0]; !r.Skip || b.asked != asked {
		t.Errorf("%+v after asking %d times", r, b.asked-asked)
	}
}

// TestTheBudgetIsGivenBack: the budget of a message that the provider has certainly not taken is
// given back to the day from which it was taken. Any other message may have been sent.
func TestTheBudgetIsGivenBack(t *testing.T) {
	b := &budget{left: 1000}
	sendTo := func(ctx context.Context, address string) {
		g := &sms.Guard{Sender: newSender(t, address), Budget: b}
		g.Send(ctx, sendertest.Messages(delivery.SMS, 1))
	}
	for name, status := range map[string]int{"401": 401, "404": 404, "400": 400, "429": 429, "500": 500, "sent": 0} {
		b.left = 1000
		p := start(t)
		p.Answer(status, "")
		sendTo(t.Context(), p.URL)
		if spent := b.left < 1000; spent != (name == "500" || name == "sent") {
			t.Errorf("%s: %d parts are left", name, b.left)
		}
	}
	b.left = 1000
	sendTo(t.Context(), "http://127.0.0.1:1/")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	sendTo(ended, start(t).URL)
	if b.left != 1000 {
		t.Errorf("of messages that were not handed over %d parts are left", b.left)
	}
	midnight := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.day, b.left = b.day.AddDate(0, 0, 1), 1000
		w.WriteHeader(401)
	}))
	t.Cleanup(midnight.Close)
	sendTo(t.Context(), midnight.URL)
	if b.left != 1000 {
		t.Errorf("the next day has %d parts", b.left)
	}
}

// TestABudgetThatIsUsedUp: a message that does not fit does not hold up a message that fits. A
// budget that is used up is not asked for each message.
func TestABudgetThatIsUsedUp(t *testing.T) {
	now := time.Date(2026, 11, 26, 23, 59, 0, 0, time.UTC)
	messages := sendertest.Messages(delivery.SMS, 5)
	for i := range messages {
		messages[i].Content = &delivery.Content{Text: "10 minutes"}
	}
	messages[0].Content = &delivery.Content{Text: strings.Repeat("x", 600)} // four parts
	b := &budget{left: 3}
	g := &sms.Guard{Sender: newSender(t, start(t).URL), Budget: b, Now: func() time.Time { return now }}
	var delivered []bool
	for _, r := range g.Send(t.Context(), messages) {
		delivered = append(delivered, r.Status == delivery.Delivered)
	}
	if !slices.Equal(delivered, []bool{false, true, true, true, false}) {
		t.Errorf("delivered: %v", delivered)
	}
	asked := b.asked
	for range 10 {
		g.Send(t.Context(), messages)
	}
	if b.asked != asked {
		t.Errorf("asked %d times in the same second", b.asked-asked)
	}
	b.left = 100
	now = now.Add(5 * time.Second)
	if r := g.Send(t.Context(), messages)[0]; r.Status != delivery.Delivered {
		t.Errorf("after five seconds: got %+v", r)
	}
	b.left = 0
	now = now.Add(53 * time.Second)
	g.Send(t.Context(), messages)
	b.left = 100
	now = now.Add(3 * time.Second) // the next day
	if r := g.Send(t.Context(), messages)[0]; r.Status != delivery.Delivered {
		t.Errorf("on the next day: got %+v", r)
	}
}

// TestTheBudgetOfADropEnds: a drop whose budget is used up does not hold up messages of another
// drop or of a campaign. Its budget is not asked for each message.
func TestTheBudgetOfADropEnds(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	messages := sendertest.Messages(delivery.SMS, 8)
	for i := range messages {
		subject := *messages[i].Subject
		subject.Kind, subject.TemplateID = delivery.KindReminder, int64(7+i%2)
		if i >= 6 {
			subject.Kind = delivery.KindCampaign
		}
		messages[i].Subject, messages[i].Content = &subject, &delivery.Content{Text: "10 minutes"}
	}
	b := &budget{left: 1000, drops: map[int64]int64{7: 2}}
	g := &sms.Guard{Sender: newSender(t, start(t).URL), Budget: b, Now: func() time.Time { return now }}
	var delivered []bool
	for _, r := range g.Send(t.Context(), messages) {
		delivered = append(delivered, r.Status == delivery.Delivered)
		if r.Status != delivery.Delivered && (!r.Skip || r.Reason != delivery.ReasonBudget || !strings.Contains(r.Detail, "SMS_BUDGET_PER_DROP")) {
			t.Errorf("got %+v", r)
		}
	}
	if !slices.Equal(delivered, []bool{true, true, true, true, false, true, true, true}) {
		t.Errorf("delivered: %v", delivered)
	}
	asked := b.asked
	g.Send(t.Context(), messages[4:5])
	if b.asked != asked {
		t.Error("asked again in the same second")
	}
	b.drops[7] = 1
	now = now.Add(5 * time.Second)
	if r := g.Send(t.Context(), messages[4:5])[0]; r.Status != delivery.Delivered {
		t.Errorf("after five seconds: got %+v", r)
	}
}
