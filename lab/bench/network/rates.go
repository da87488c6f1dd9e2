package network

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"dropbell/lab/bench/load"
	"dropbell/lab/bench/stack"
)

// mostPerSecond and mostPayments are more requests than two cores answer.
const (
	mostPerSecond = 40_000
	mostPayments  = 15_000
)

// behind is how many coupons a confirmation is behind the newest lock: more than the callers, so
// that its lock was answered.
const behind = 2048

// rates prints how many requests a second many callers make without a delay and with 1 ms each
// way, in turns: reservations, claims, and locks and confirmations of coupons.
func (b *bench) rates(ctx context.Context) error {
	for _, kind := range []struct {
		name string
		// requests prepares a repetition and returns its i-th request.
		requests func(ctx context.Context) (func(to []byte, i int64) []byte, error)
	}{{"reserve", b.reserving}, {"claim", b.claiming}, {"pay", b.paying}} {
		var ratios []float64
		for range b.runs {
			rate := map[int]float64{}
			for _, ms := range []int{0, 1} {
				b.delay(ms)
				request, err := kind.requests(ctx)
				if err != nil {
					return fmt.Errorf("%s: %w", kind.name, err)
				}
				r, err := load.Run(load.Plan{Addr: b.web.Addr, Connections: b.callers, Warmup: time.Second, Duration: b.lasting, Expect: []int{200, 201}, Request: request})
				if err == nil && r.Failures > 0 {
					err = fmt.Errorf("%d of %d requests failed, e.g. %s", r.Failures, r.Requests, r.Example)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", kind.name, err)
				}
				rate[ms] = r.PerSecond
			}
			ratios = append(ratios, rate[1]/rate[0])
			fmt.Printf("%d callers %s: %.0f/s without a delay, %.0f/s with 1 ms each way\n", b.callers, kind.name, rate[0], rate[1])
		}
		fmt.Printf("%s: %s of the rate without a delay (aim: at least 0.9)\n", kind.name, stack.Spread(ratios))
	}
	return nil
}

// atMost is more requests than are made in a repetition at so many a second.
func (b *bench) atMost(perSecond int) int {
	return int((b.lasting + time.Second).Seconds()) * perSecond
}

func (b *bench) reserving(ctx context.Context) (func([]byte, int64) []byte, error) {
	drop, err := b.Drop(ctx, 3*time.Hour)
	if err != nil {
		return nil, err
	}
	return b.byUsers("/api/v1/reservations", reservation(drop.ID, 0))
}

func (b *bench) claiming(ctx context.Context) (func([]byte, int64) []byte, error) {
	drop, err := b.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return b.byUsers("/api/v1/claims", `{"template_id":"`+strconv.FormatInt(drop, 10)+`"}`)
}

// byUsers returns requests with the same body, each of another user.
func (b *bench) byUsers(path, body string) (func([]byte, int64) []byte, error) {
	tokens, err := load.Tokens(secret, b.atMost(mostPerSecond))
	return func(to []byte, i int64) []byte { return load.Post(to, path, tokens[i%int64(len(tokens))], "", body) }, err
}

// paying locks a coupon with each request, and with each second request confirms the coupon that
// was locked long enough before.
func (b *bench) paying(ctx context.Context) (func([]byte, int64) []byte, error) {
	drop, err := b.Drop(ctx, 3*time.Hour)
	if err != nil {
		return nil, err
	}
	n := int64(b.atMost(mostPayments))
	b.paid += n + 1
	first := int64(2*inserted) + b.paid
	if _, err := b.SQL.Exec(ctx, `insert into coupons (id, template_id, user_id, claim_id, origin, issued_at, expires_at)
		overriding system value select $1 + n, $2, n + 1, $1 + n, 'claim', now(), now() + interval '1 day' from generate_series(0, $3::bigint) n`, first, drop.ID, n); err != nil {
		return nil, err
	}
	return func(to []byte, i int64) []byte {
		at, step, body := i/2, "lock", `,"order_amount":1000000}`
		switch {
		case i%2 == 1 && at >= behind:
			at, step, body = at-behind, "confirm", `}`
		case i%2 == 1: // nothing to confirm yet: locks a coupon from the end
			at = n - at
		}
		id := strconv.FormatInt(first+at, 10)
		return load.Post(to, "/api/v1/coupons/"+id+"/"+step, key, "", `{"order_id":"order-`+id+`"`+body)
	}, nil
}
