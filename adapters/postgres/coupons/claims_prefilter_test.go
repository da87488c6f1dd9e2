package coupons_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// guarded is a claimFixture whose gates each have a prefilter.
type guarded struct {
	*claimFixture
	doormen []*claim.Prefilter
	looks   []*lookup.Templates
	memory  int
	mu      sync.Mutex
}

func newGuarded(t *testing.T, nodes int) *guarded {
	h := &guarded{claimFixture: newClaimFixture(t, nodes)}
	for _, g := range h.gates {
		look, err := lookup.New(h.Templates, pgtest.Clock)
		h.Must(err)
		h.looks = append(h.looks, look)
		h.doormen = append(h.doormen, &claim.Prefilter{Gate: g, Templates: look, Record: g, Now: pgtest.Clock, Answered: func(error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.memory++
		}})
	}
	return h
}

func (h *guarded) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	return h.doormen[rand.IntN(len(h.doormen))].Claim(ctx, r)
}

// forget does on every node what the event of a change does.
func (h *guarded) forget(id int64) {
	for _, l := range h.looks {
		l.Forget(id)
	}
}

// Open returns when every node finds the template: nodes look only now and then for ids beyond
// the newest id that they know.
func (h *guarded) Open(stock int64, limit int, change func(*template.Spec)) template.Template {
	h.Helper()
	t := h.claimFixture.Open(stock, limit, change)
	deadline := time.Now().Add(10 * time.Second)
	for _, l := range h.looks {
		for {
			_, err := l.Template(h.Context(), t.ID)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				h.Fatalf("template %d is not found: %v", t.ID, err)
			}
			<-time.After(5 * time.Millisecond) // a tenth of the time between two such looks
		}
	}
	return t
}

func (h *guarded) Do(id int64, tr template.Transition) { h.claimFixture.Do(id, tr); h.forget(id) }
func (h *guarded) Raise(id, stock int64)               { h.claimFixture.Raise(id, stock); h.forget(id) }
func (h *guarded) Doors(id int64, doors []template.Door) {
	h.claimFixture.Doors(id, doors)
	h.forget(id)
}

func TestGatesWithDoormenKeepTheContract(t *testing.T) {
	for name, nodes := range map[string]int{"one node": 1, "two nodes": 2} {
		t.Run(name, func(t *testing.T) {
			claimtest.Run(t, func(t *testing.T) claimtest.Harness { return newGuarded(t, nodes) })
		})
	}
}

// TestACrowdThatComesTooLate: claims of a sold-out drop are answered without transactions.
// Raised stock is seen at once even without an event, and so is the repetition of a claim that
// got such a coupon.
func TestACrowdThatComesTooLate(t *testing.T) {
	h := newGuarded(t, 2)
	drop := h.Open(10, 1, nil)
	for by := range user.ID(10) {
		if _, err := h.Claim(t.Context(), claimtest.Tap(drop, by+1, "k")); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for k := range 40 {
				_, err := h.Claim(t.Context(), claimtest.Tap(drop, user.ID(1000+40*i+k), "k"))
				if !errors.Is(err, claim.ErrSoldOut) {
					t.Errorf("too late: %v", err)
				}
			}
		})
	}
	all.Wait()
	if h.memory < 1800 {
		t.Errorf("only %d of 2000 were refused from memory", h.memory)
	}
	h.claimFixture.Raise(drop.ID, 11) // without an event
	// Neither node has noticed the change. The first node issues the coupon, the second node
	// finds it.
	first := claimtest.Tap(drop, 5000, "new")
	got, err := h.doormen[0].Claim(t.Context(), first)
	if err != nil {
		t.Fatalf("the raised stock is not seen: %v", err)
	}
	again := claimtest.Tap(drop, 5000, "new")
	if repeated, err := h.doormen[1].Claim(t.Context(), again); err != nil || repeated.ID != got.ID {
		t.Errorf("the repetition at the other node: %+v, %v; it was %+v", repeated, err, got)
	}
	if _, err := h.doormen[1].Claim(t.Context(), claimtest.Tap(drop, 5001, "late")); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("too late again: %v", err)
	}
	claimtest.Holds(t, h, drop.ID, 11, 1)
}
