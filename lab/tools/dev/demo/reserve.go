package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

type reminder struct {
	Channel string `json:"channel"`
	Minutes int    `json:"minutes"`
}

// booking is the reservation of one user.
type booking struct {
	user      int64
	reminders []reminder
}

// choice is a value and its weight: how often it is chosen relative to the other values.
type choice[T any] struct {
	value  T
	weight int
}

func choose[T any](r *rand.Rand, from []choice[T]) T {
	total := 0
	for _, c := range from {
		total += c.weight
	}
	n := r.IntN(total)
	for _, c := range from {
		if n -= c.weight; n < 0 {
			return c.value
		}
	}
	return from[len(from)-1].value
}

var (
	channels = []choice[string]{{"app", 70}, {"email", 15}, {"sms", 10}, {"webhook", 5}}
	// Users prefer round numbers.
	minutes = []choice[int]{{5, 34}, {10, 24}, {15, 12}, {20, 6}, {25, 2}, {30, 12}, {35, 1}, {40, 2}, {45, 4}, {50, 1}, {55, 1}, {60, 7}}
	amounts = []choice[int]{{1, 60}, {2, 28}, {3, 12}}
)

// Spread says how reservations fall.
type Spread struct {
	Users       int
	FiveMinutes bool // only the last slot before the opening; otherwise all twelve
}

// bookings draws the reservations of different users. The first user is left out.
func bookings(r *rand.Rand, s Spread) []booking {
	var drawn []booking
	for _, n := range r.Perm(LastUser - FirstUser)[:s.Users] {
		b := booking{user: int64(FirstUser + 1 + n)}
		for range choose(r, amounts) {
			next := reminder{Channel: choose(r, channels), Minutes: 5}
			if !s.FiveMinutes {
				next.Minutes = choose(r, minutes)
			}
			if !slices.Contains(b.reminders, next) {
				b.reminders = append(b.reminders, next)
			}
		}
		drawn = append(drawn, b)
	}
	return drawn
}

// Reserve lets users reserve reminders on d and returns the number of new reminders. progress is
// called now and then with the number of users done.
func (c *Client) Reserve(ctx context.Context, d Drop, s Spread, progress func(users int)) (int, error) {
	var users, reminders atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(callers)
	for _, b := range s.bookings(d.ID) {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := c.reserve(ctx, d, b); err != nil {
				return fmt.Errorf("reserve for user %d: %w", b.user, err)
			}
			reminders.Add(int64(len(b.reminders)))
			if n := users.Add(1); n%1000 == 0 {
				progress(int(n))
			}
			return nil
		})
	}
	err := g.Wait()
	return int(reminders.Load()), err
}

func (c *Client) reserve(ctx context.Context, d Drop, b booking) error {
	return c.call(ctx, request{method: "POST", path: "/reservations", user: b.user, body: map[string]any{
		"template_id": d.ID, "shop_number": d.Shop, "reminders": b.reminders,
	}}, nil)
}
