package sms_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// budget is one of a single process.
type budget struct {
	mu   sync.Mutex
	left int64
	err  error
}

func (b *budget) Take(_ context.Context, parts int64) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || b.left < parts {
		return false, b.err
	}
	b.left -= parts
	return true, nil
}

func (b *budget) GiveBack(_ context.Context, parts int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += parts
	return nil
}

func TestContractOfAGuard(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender {
			return &sms.Guard{Sender: newSender(t, sms.Config{URL: start(t, new(provider))}), Countries: []string{"CN"}, Budget: &budget{left: 100_000}}
		},
		Unreachable: func(u *user.User) { u.Phone = "+14155552671" },
	})
}

func TestCountries(t *testing.T) {
	p := new(provider)
	g := &sms.Guard{Sender: newSender(t, sms.Config{URL: start(t, p)}), Countries: []string{"CN", "HK"}}
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
	if len(p.calls) != 1 || len(p.calls[0].Messages) != 2 {
		t.Errorf("got calls %+v", p.calls)
	}
}

func TestTheBudgetEnds(t *testing.T) {
	p := new(provider)
	messages := sendertest.Messages(delivery.SMS, 10)
	each := int64(sms.Parts(messages[0]))
	b := &budget{left: 6*each + each - 1}
	g := &sms.Guard{Sender: newSender(t, sms.Config{URL: start(t, p)}), Budget: b}
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
	if r := g.Send(t.Context(), messages)[5]; r.Status != delivery.Throttled || !r.Apart {
		t.Errorf("without a database: got %+v", r)
	}
}
