package claimgate

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/lab/bench/stack"
)

// stored reads the gate's data from the database, without a cache.
type stored struct {
	couponsdb.Gates
	dropsdb.Templates
}

// refill measures how long after Redis was emptied the first claim of a drop is accepted. counts
// are the numbers of coupons that the drops have already issued. In each run a user with a
// coupon is refused a second coupon.
func refill(ctx context.Context, s *stack.Stack, counts []int, shards, runs int) error {
	client, err := redis.Open(s.RedisURL)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, issued := range counts {
		drop, err := issuedDrop(ctx, s, issued)
		if err != nil {
			return err
		}
		var took []float64
		for range runs {
			first, err := firstClaim(ctx, s, client, drop, issued, shards)
			if err != nil {
				return err
			}
			took = append(took, first.Seconds())
		}
		fmt.Printf("%d issued, %d shards: first claim after Redis was emptied: median %.3f s of %.3f\n", issued, shards, stack.Median(took), took)
	}
	return nil
}

// issuedDrop makes an open drop behind the gate. Users 1 to issued have one coupon each, with
// the idempotency key that the API gives to a tap.
func issuedDrop(ctx context.Context, s *stack.Stack, issued int) (int64, error) {
	t, err := s.Drop(ctx, time.Hour)
	if err != nil {
		return 0, err
	}
	for _, sql := range []string{
		`update templates set claim_mode = 'gate', opens_at = date_trunc('second', now()) - interval '1 hour', stock = 100000000, issued = $2::bigint,
			version = version + 1 where id = $1`,
		`insert into claim_counts (template_id, user_id, issued) select $1::bigint, n, 1 from generate_series(1, $2::bigint) n`,
		`insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
			select $1::bigint, n, (random() * 9e18)::bigint + 1, 'claim', $1::bigint::text || '/' || n, now(), now() + interval '1 day' from generate_series(1, $2::bigint) n`,
	} {
		if _, err := s.SQL.Exec(ctx, sql, t.ID, issued); err != nil {
			return 0, err
		}
	}
	if _, err := s.SQL.Exec(ctx, `vacuum (analyze) claim_counts, coupons`); err != nil {
		return 0, err
	}
	_, err = s.SQL.Exec(ctx, `checkpoint`)
	return t.ID, err
}

// firstClaim empties Redis while a keeper runs, and claims until a claim is accepted.
func firstClaim(ctx context.Context, s *stack.Stack, client goredis.UniversalClient, drop int64, issued, shards int) (time.Duration, error) {
	store := couponsdb.NewGates(s.DB)
	keeper := &gate.Keeper{Store: store, Shards: redisgate.NewShards(client), Now: time.Now, Divide: gate.Divider(shards),
		Writer: &gate.Writer{Stream: redisgate.NewStream(client, "bench"), Recorder: couponsdb.NewGateRecorder(s.DB)}}
	if err := keeper.Reconcile(ctx, drop); err != nil {
		return 0, err
	}
	listening, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- redisgate.Listen(listening, client, redisgate.Calls{Deaf: keeper.CallAll, Unwritten: keeper.Call,
			Missing: func(id int64) { _ = keeper.Rescue(listening, id) }})
	}()
	defer func() { stop(); <-ended }()
	err := stack.Until(ctx, 10*time.Millisecond, func() (bool, error) {
		listeners, err := client.PubSubNumSub(ctx, "gate:wake").Result()
		return listeners["gate:wake"] > 0, err
	})
	if err != nil {
		return 0, err
	}
	gates := redisgate.New(client, stored{store, dropsdb.NewTemplates(s.DB)}, redisgate.Options{})
	try := func(by user.ID) error {
		for {
			_, err := gates.Claim(ctx, claim.Request{ID: claim.NewID(uint64(time.Now().UnixNano()), drop), TemplateID: drop, UserID: by, Origin: claim.ByTap})
			if fault.KindOf(err) != fault.Unavailable {
				return err
			}
		}
	}
	if err := client.FlushDB(ctx).Err(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := try(user.ID(issued) + 1 + user.ID(time.Now().UnixNano()%1e12)); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if issued > 0 {
		if err := try(user.ID(issued)); !errors.Is(err, claim.ErrLimit) {
			return 0, fmt.Errorf("a user who has a coupon claims another: %v", err)
		}
	}
	// The claims are written before Redis is emptied again.
	for n := 1; n > 0; {
		n = 0
		for shard := range shards {
			done, err := keeper.Writer.Step(ctx, drop, shard)
			if err != nil {
				return 0, err
			}
			n += done
		}
	}
	return took, keeper.Reconcile(ctx, drop)
}
