package rehearsal

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A share has about 20,000 users at most, and so few that a wave ends before the next one.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reserved int64
		wave     time.Duration
		want     int64
	}{{0, 0, 1000}, {20_000, 0, 1000}, {40_000, 0, 500}, {1_000_000_000, 0, 1}, {100, 8 * time.Second, 1000}, {100, 64 * time.Second, 125}, {100, 100 * time.Hour, 1}, {200_000, 16 * time.Second, 100}} {
		if got := Share(c.reserved, c.wave); got != c.want {
			t.Errorf("%d users, a wave of %s: %d thousandths, want %d", c.reserved, c.wave, got, c.want)
		}
	}
}

func TestArrivals(t *testing.T) {
	t.Parallel()
	sum := func(list []int64) (n int64) {
		for _, v := range list {
			n += v
		}
		return n
	}
	for _, curve := range [][]int64{nil, make([]int64, 5)} {
		if got := Arrivals(1000, curve, 1e9); len(got) != 10 || got[0] != 300 || sum(got) != 1000 || !slices.IsSortedFunc(got, func(a, b int64) int { return int(b - a) }) {
			t.Errorf("the most come in the first second, and ever fewer: %v", got)
		}
	}
	// The earlier drop sold out in its second second; customers came on.
	if got := Arrivals(1000, []int64{90, 10}, 1e9); sum(got) != 1000 || got[0] < 600 || got[1] < 60 || got[9] == 0 || got[0] < got[1] || got[1] < got[9] {
		t.Errorf("by a curve: %v", got)
	}
	if got := Arrivals(1_000_000, []int64{1, 1}, 50); got[0] != 50 || got[9] != 50 {
		t.Errorf("at most 50 a second: %v", got)
	}
}

func TestSoldOutAfter(t *testing.T) {
	t.Parallel()
	for stock, want := range map[int64]time.Duration{100: time.Second, 50: 500 * time.Millisecond, 110: 2 * time.Second, 105: 1500 * time.Millisecond, 111: 0} {
		if got := SoldOutAfter([]int64{100, 10, 0}, stock); got != want {
			t.Errorf("%d coupons: %s, want %s", stock, got, want)
		}
	}
}

// Made-up users come through the doors as often as those who reserved did. If no door is for all, some are strangers. A shop's own users come through the last door.
func TestCrowd(t *testing.T) {
	t.Parallel()
	tenth := 100
	doors := []template.Door{{Who: template.ToList, Booked: &tenth}, {Who: template.ToCodes}}
	for _, c := range []struct {
		last template.Who
		want []int // by place, strangers first
	}{{template.ToAll, []int{0, 100, 450, 450}}, {template.ToSegment, []int{50, 100, 425, 425}}} {
		tpl := &template.Template{Doors: append(doors[:2:2], template.Door{Who: c.last})}
		got := make([]int, 4)
		for n := range 1000 {
			place, err := Crowd{}.Door(t.Context(), tpl, FirstUser+user.ID(n))
			if (place == 0) != errors.Is(err, claim.ErrCodeNeeded) {
				t.Fatal(place, err)
			}
			got[place]++
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v by place, want %v", c.last, got, c.want)
		}
		if place, err := (Crowd{}).Door(t.Context(), tpl, 7); place != 3 || err != nil {
			t.Errorf("%s: a user of the shop comes through door %d: %v", c.last, place, err)
		}
	}
	next := Customers(FirstUser, func(by user.ID) bool { return by%3 == 0 })
	if a, b := next(), next(); a%3 != 0 || b != a+3 {
		t.Errorf("customers %d and %d", a, b)
	}
}

// What is off in a part is off in the report.
func TestParts(t *testing.T) {
	t.Parallel()
	r := Report{Stock: 10}
	r.AddGate(10, 9, 5)
	r.AddDraw(30, 10, 5)
	r.AddStrangers(Result{Refused: 4})
	r.AddWaitlist(50, 5, 5, 9)
	r.AddPasses(3, 3, 12)
	r.AddEarly(7, 6)
	r.AddResult(30, 30, 29)
	if p, ok := r.Part(OfGate); !r.Sound() || !ok || p.Refused != 1 || len(r.Parts) != 7 {
		t.Errorf("%+v", r)
	}
	for what, add := range map[string]func(*Report){"more stored than accepted": func(r *Report) { r.AddGate(9, 10, 0) }, "too few winners": func(r *Report) { r.AddDraw(30, 9, 0) },
		"a coupon for a stranger": func(r *Report) { r.AddStrangers(Result{Issued: 1}) }, "a coupon that stays": func(r *Report) { r.AddWaitlist(50, 4, 5, 0) },
		"a customer without a pass": func(r *Report) { r.AddPasses(3, 2, 0) }, "an entry that is told nothing": func(r *Report) { r.AddResult(30, 29, 29) }} {
		r := Report{Stock: 10}
		if add(&r); r.Off != 1 {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// Customers come at their instants although no claim is answered before all have come. Each is another made-up user.
func TestRushIsOpen(t *testing.T) {
	t.Parallel()
	const n = 50
	var came sync.WaitGroup
	const again = n / impatient
	came.Add(n + again)
	var mu sync.Mutex
	seen := map[user.ID]bool{}
	tally := &Tally{}
	full, broken := fault.New(fault.Conflict, "sold_out", "there is none"), errors.New("broken")
	r := Rush{Seconds: []int64{n}, Now: time.Now, Next: Customers(FirstUser, Everybody), Tally: tally, Claim: func(_ context.Context, by user.ID, tap int) error {
		if tap == 2 {
			came.Done()
			came.Wait()
			return full
		}
		mu.Lock()
		seen[by] = true
		nth := len(seen)
		mu.Unlock()
		came.Done()
		came.Wait()
		switch {
		case nth <= 10:
			return nil
		case nth == n:
			return broken
		}
		return full
	}}.Run(t.Context())
	if r.Issued != 10 || r.Failed != 1 || r.Refused != n-11 || r.Came() != n || r.Twice != again || r.Again != 0 || len(r.Took) != n+again || tally.Answered.Load() != n+again || tally.Came.Load() != n || len(seen) != n {
		t.Errorf("%+v, %d users", r, len(seen))
	}
	for id := range seen {
		if id <= FirstUser {
			t.Errorf("user %d may be a real one", id)
		}
	}
	if r.Quantile(0.5) > r.Quantile(0.99) || (Result{}).Quantile(0.5) != 0 {
		t.Error("quantiles")
	}
}

func TestBottleneck(t *testing.T) {
	t.Parallel()
	for want, c := range map[Bottleneck]struct {
		r   Report
		cut time.Duration
	}{NoBottleneck: {Report{LateP99: 900, ClaimP99: 60, Sent: 980, Dead: 20}, time.Second}, OfClaims: {Report{ClaimP99: 1500, Expired: 1}, 0}, OfReminders: {Report{Expired: 4}, time.Minute}, OfProviders: {Report{Wave: 61_000}, 0}, OfRefusals: {Report{Sent: 970, Dead: 30}, 0}} {
		if c.r.Judge(c.cut); c.r.Bottleneck != want {
			t.Errorf("%+v is %s, want %s", c, c.r.Bottleneck, want)
		}
	}
	if (Report{Failed: 1}).Sound() != true || (Report{Oversold: 1}).Sound() || (Report{Off: 1}).Sound() {
		t.Error("sound")
	}
}
