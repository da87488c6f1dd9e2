package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/localstack/network"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/lab/bench/load"
	"dropbell/lab/bench/stack"
)

// audience is the number of users of the campaign, and of the reminders of a firing.
const audience = 10_000

// inserted is the number below the ids of coupons that are inserted for payments. Claims get smaller ids.
const inserted = 1_000_000_000

// operations measures everything at the present delay.
func (b *bench) operations(ctx context.Context, ms int, console *stack.Visitor) error {
	if err := b.requests(ctx, ms); err != nil {
		return err
	}
	if err := b.campaigns(ctx, ms, console); err != nil {
		return err
	}
	if err := b.firings(ctx, ms, "a firing: "+strconv.Itoa(audience)+" reminders in the app, from due to recorded", audience, delivery.App); err != nil {
		return err
	}
	return b.firings(ctx, ms, "a firing: one reminder by webhook, with the call of the provider", 1, delivery.Webhook)
}

// each calls do one after another and records how long a call takes and how many round trips of
// web follow each other in it. The first calls are not counted: they open connections and prepare
// statements.
func (b *bench) each(name string, ms int, do func(user int) error) error {
	const first = 12
	var took []time.Duration
	var postgres, redis []float64
	for i := range b.times + first {
		b.calls++
		b.paths.postgres.Record()
		b.paths.redis.Record()
		begin := time.Now()
		if err := do(b.calls); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if i >= first {
			took = append(took, time.Since(begin))
			postgres = append(postgres, float64(network.InSequence(b.paths.postgres.Recorded())))
			redis = append(redis, float64(network.InSequence(b.paths.redis.Recorded())))
		}
	}
	b.trips[name] = fmt.Sprintf("%.0f / %.0f", stack.Median(postgres), stack.Median(redis))
	b.record(name, ms, took)
	return nil
}

// requests measures lone requests of end users and of the payment service.
func (b *bench) requests(ctx context.Context, ms int) error {
	later, err := b.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	durable, err := b.open(ctx, false)
	if err != nil {
		return err
	}
	gate, err := b.open(ctx, true)
	if err != nil {
		return err
	}
	post := func(path, body string, fields ...string) func(int) error {
		return func(user int) error {
			token, err := load.Token(secret, user)
			if err != nil {
				return err
			}
			return b.call(ctx, http.MethodPost, path, token, body, fields...)
		}
	}
	claim := func(id int64) string { return `{"template_id":"` + strconv.FormatInt(id, 10) + `"}` }
	coupon := func(user int) string { return "/coupons/" + strconv.Itoa(inserted+user) }
	for _, o := range []struct {
		name string
		do   func(user int) error
	}{
		{"a reservation", post("/reservations", reservation(later.ID, 0))},
		{"a reservation with an `Idempotency-Key`", func(user int) error {
			return post("/reservations", reservation(later.ID, 0), "Idempotency-Key", "key-"+strconv.Itoa(user))(user)
		}},
		{"a claim, `claim_mode` `durable`", post("/claims", claim(durable))},
		{"a claim behind the gate", post("/claims", claim(gate))},
	} {
		if err := b.each(o.name, ms, o.do); err != nil {
			return err
		}
	}
	from := b.calls + 1
	if _, err := b.SQL.Exec(ctx, `insert into coupons (id, template_id, user_id, claim_id, origin, issued_at, expires_at)
		overriding system value select $4 + n, $1, n, $4 + n, 'claim', now(), now() + interval '1 day' from generate_series($2::bigint, $3) n`, later.ID, from, from+b.times+12, inserted); err != nil {
		return err
	}
	lock := func(user int) error {
		return b.call(ctx, http.MethodPost, coupon(user)+"/lock", key, `{"order_id":"order-`+strconv.Itoa(user)+`","order_amount":1000000}`)
	}
	if err := b.each("a payment: lock", ms, lock); err != nil {
		return err
	}
	confirmed := from
	if err := b.each("a payment: confirm", ms, func(int) error {
		user := confirmed
		confirmed++
		return b.call(ctx, http.MethodPost, coupon(user)+"/confirm", key, `{"order_id":"order-`+strconv.Itoa(user)+`"}`)
	}); err != nil {
		return err
	}
	return b.each("a page of the inbox", ms, func(user int) error {
		token, err := load.Token(secret, user)
		if err != nil {
			return err
		}
		return b.call(ctx, http.MethodGet, "/inbox", token, "")
	})
}

// open returns a drop that is on sale.
func (b *bench) open(ctx context.Context, gate bool) (int64, error) {
	t, err := b.Drop(ctx, time.Hour)
	if err != nil || !gate {
		if err == nil {
			_, err = b.SQL.Exec(ctx, `update templates set opens_at = date_trunc('second', now()) - interval '1 hour' where id = $1`, t.ID)
		}
		return t.ID, err
	}
	if _, err := b.SQL.Exec(ctx, `update templates set claim_mode = 'gate' where id = $1`, t.ID); err != nil {
		return 0, err
	}
	client, err := b.RedisClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	const shards = 2
	return t.ID, errors.Join(stack.FillShards(ctx, client, t.ID, shards), b.ActivateGate(ctx, t.ID, shards))
}

// call makes a request of the API and expects success. fields are pairs.
func (b *bench) call(ctx context.Context, method, path, credential, body string, fields ...string) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+b.web.Addr+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+credential)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := b.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %s answers %d: %s", method, path, res.StatusCode, answer)
	}
	return err
}

// campaigns sends a campaign over the app and reads its page in the console.
func (b *bench) campaigns(ctx context.Context, ms int, console *stack.Visitor) error {
	var cut []time.Duration
	for range b.runs {
		took, err := b.SendCampaign(ctx, campaign.Spec{Channel: delivery.App, Content: stack.Wording("Hello"), Audience: campaign.Audience{Kind: campaign.Everybody}}, audience)
		if err != nil {
			return err
		}
		cut = append(cut, took.Cut)
	}
	b.record("a page of a campaign's audience: "+strconv.Itoa(audience)+" users cut and stored", ms, cut)
	var id int64
	if err := b.SQL.QueryRow(ctx, `select max(id) from campaigns`).Scan(&id); err != nil {
		return err
	}
	return b.each("the page of a campaign in the console", ms, func(int) error { return console.Read(ctx, "/campaigns/"+strconv.FormatInt(id, 10)) })
}

// firings records how long after its instant the last outcome of a slot with n reminders on the
// channel was recorded.
func (b *bench) firings(ctx context.Context, ms int, name string, n int, c delivery.Channel) error {
	var took []time.Duration
	for range b.runs {
		last, err := b.fire(ctx, n, c)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, last)
	}
	b.record(name, ms, took)
	return nil
}

// fire fires the slot of a new drop and returns how long after its instant the last outcome was
// recorded.
func (b *bench) fire(ctx context.Context, n int, c delivery.Channel) (time.Duration, error) {
	t, err := b.Drop(ctx, 2*time.Hour)
	if err == nil {
		err = b.Reserve(ctx, t.ID, n, stack.Bit(c))
	}
	if err == nil {
		err = b.FireSoon(ctx, t, stack.Ahead(n))
	}
	if err == nil {
		err = b.WaitFinished(ctx, t.ID)
	}
	if err != nil {
		return 0, err
	}
	l, err := b.Lateness(ctx, t.ID, n)
	return l.Last, err
}

// large compares a firing of many reminders in the app without a delay and with 1 ms each way, in
// turns.
func (b *bench) large(ctx context.Context) error {
	var ratios []float64
	for range b.runs {
		took := map[int]time.Duration{}
		for _, ms := range []int{0, 1} {
			b.delay(ms)
			if err := b.Empty(ctx); err != nil {
				return err
			}
			var err error
			if took[ms], err = b.fire(ctx, b.many, delivery.App); err != nil {
				return err
			}
		}
		ratios = append(ratios, took[1].Seconds()/took[0].Seconds())
		fmt.Printf("a firing of %d reminders: %.2f s without a delay, %.2f s with 1 ms each way\n", b.many, took[0].Seconds(), took[1].Seconds())
	}
	fmt.Printf("%s of the time without a delay (aim: at most 1.33)\n", stack.Spread(ratios))
	return nil
}
