package api_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/domain/claim"
	"dropbell/domain/redeemcode"
	"dropbell/web/api"
)

// memoryMarks are marks in the memory of the test.
type memoryMarks struct {
	mu   sync.Mutex
	used map[redeemcode.Serial]bool
}

func (m *memoryMarks) Used(_ context.Context, _ redeemcode.Batch, s redeemcode.Serial) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used[s], nil
}

func (m *memoryMarks) Mark(_ context.Context, _ redeemcode.Batch, s redeemcode.Serial) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used[s] = true
	return nil
}

func typed(code string) map[string]any { return map[string]any{"code": code} }

func (r *fixture) redeem(user any, code string, status int, want string) answer {
	r.Helper()
	return r.want(r.call(as(token(user)), "POST", "/redemptions", typed(code)), status, want)
}

func testRedeem(t *testing.T) {
	r := newFixture(t, nil)
	id := r.byCode(nil)
	codes := r.codes(id, 3)
	sloppy := " " + strings.ToLower(strings.NewReplacer("-", " ", "0", "o", "1", "I").Replace(codes[0]))
	me := as(token(7), "Idempotency-Key", "k")
	first := r.want(r.call(me, "POST", "/redemptions", typed(sloppy)), 201, "")
	if first.at("state") != "issued" || first.at("coupon_id") == nil || first.at("claim_id") == nil {
		t.Fatalf("redeemed: %s", first.Body)
	}
	again := r.want(r.call(me, "POST", "/redemptions", typed(sloppy)), 201, "")
	if again.Body.String() != first.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same request again: %s", again.Body)
	}
	r.redeem(7, codes[0], 409, "code_used")
	r.redeem(8, codes[0], 409, "code_used")
	coupon := r.want(r.call(as(token(7)), "GET", "/coupons", nil), 200, "")
	if coupon.at("coupons.0.coupon_id") != first.at("coupon_id") || coupon.at("coupons.1") != nil {
		t.Errorf("coupons: %s", coupon.Body)
	}
	r.want(r.call(as(token(7)), "GET", "/claims/"+first.at("claim_id").(string), nil), 200, "")
	service := as(r.keys["act-as-user"], "X-User-ID", "9")
	r.want(r.call(service, "POST", "/redemptions", typed(codes[1])), 201, "")
	if n := r.number(`select used from code_batches`); n != 2 {
		t.Errorf("%d codes are counted as used", n)
	}
	for _, body := range []string{`{}`, `{"code":""}`, `{"code":7}`, `{"code":"` + strings.Repeat("0", 201) + `"}`, `{"code":"x","more":1}`} {
		r.about = body
		if a := r.call(as(token(10)), "POST", "/redemptions", body); a.Code != 422 {
			t.Errorf("%s is answered %d %s", body, a.Code, a.Body)
		}
	}
	if strings.Contains(r.logs.String(), codes[0]) || strings.Contains(r.logs.String(), sloppy) {
		t.Error("a code is in the log")
	}
}

// TestRefusalsLeaveTheCodeUsable goes through every refusal of claims with one code.
func TestRefusalsLeaveTheCodeUsable(t *testing.T) {
	r := newFixture(t, nil)
	id := r.byCode(map[string]any{"stock": 2, "per_user_limit": 1})
	codes := r.codes(id, 4) // more than there is stock
	good := codes[3]
	r.exec(`update templates set opens_at = date_trunc('second', now()) + interval '1 hour' where id = $1`, id)
	r.redeem(7, good, 409, "not_started")
	r.exec(`update templates set opens_at = date_trunc('second', now()) - interval '2 hours' where id = $1`, id)
	r.exec(`update templates set closes_at = date_trunc('second', now()) - interval '1 hour' where id = $1`, id)
	r.redeem(7, good, 409, "ended")
	r.exec(`update templates set closes_at = date_trunc('second', now()) + interval '1 hour' where id = $1`, id)
	r.exec(`update templates set state = 'paused' where id = $1`, id)
	r.redeem(7, good, 409, "template_not_open")
	r.exec(`update templates set state = 'published' where id = $1`, id)
	r.redeem(7, codes[0], 201, "")
	r.redeem(7, good, 409, "limit_reached")
	r.redeem(8, codes[1], 201, "")
	r.redeem(9, good, 409, "sold_out")
	r.redeem(9, codes[0], 409, "code_used") // although it is sold out as well
	r.exec(`update templates set stock = 3 where id = $1`, id)
	r.redeem(9, good, 201, "")
	// Coupons obtained by code cannot be claimed without a code, and other coupons not by code.
	r.want(r.call(as(token(10)), "POST", "/claims", map[string]any{"template_id": id}), 409, "template_not_open")
}

// TestACodeThatIsTooLong is a mistake of the request, not a guess.
func TestACodeThatIsTooLong(t *testing.T) {
	r := newFixture(t, nil)
	for range 30 {
		if a := r.want(r.call(as(token(7)), "POST", "/redemptions", typed(strings.Repeat("é", 201))), 422, "invalid_request"); a.at("errors.0.location") != "body.code" {
			t.Fatalf("%s", a.Body)
		}
	}
	r.want(r.call(as(token(7)), "POST", "/redemptions", typed(strings.Repeat("é", 200))), 422, "code_invalid")
}

func TestRevokedAndUnready(t *testing.T) {
	r := newFixture(t, nil)
	id := r.byCode(nil)
	codes := r.codes(id, 2)
	r.redeem(7, codes[0], 201, "")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/codes/1/revoke", map[string]any{"reason": "leaked"}), 200, "")
	r.redeem(8, codes[1], 422, "code_invalid")
	r.redeem(8, codes[0], 422, "code_invalid")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/codes", map[string]any{"count": 1}), 202, "")
	next, err := couponsdb.NewCodes(r.db).Batch(t.Context(), 65)
	r.must(err)
	early, err := codeKeys(r).Code(1, next.First)
	r.must(err)
	r.redeem(8, early.Text(), 422, "code_invalid")
	r.work()
	r.redeem(8, early.Text(), 201, "")
	never, err := codeKeys(r).Code(1, next.First+1)
	r.must(err)
	r.redeem(8, never.Text(), 422, "code_invalid")
}

// unusedStore fails the test when it is used.
type unusedStore struct{ testing.TB }

func (u unusedStore) touched() error {
	u.Error("a store was asked about a code that was made up")
	return errors.New("asked")
}

func (u unusedStore) BatchOf(context.Context, redeemcode.Serial) (redeemcode.Batch, error) {
	return redeemcode.Batch{}, u.touched()
}

func (u unusedStore) Begin(context.Context, workdb.IdempotencyRequest, time.Duration) (workdb.Recorded, error) {
	return workdb.Recorded{}, u.touched()
}

func (u unusedStore) Renew(context.Context, workdb.IdempotencyRequest, time.Duration) error {
	return u.touched()
}

func (u unusedStore) Finish(context.Context, workdb.IdempotencyRequest, workdb.Recorded) error {
	return u.touched()
}
func (u unusedStore) Fail(context.Context, workdb.IdempotencyRequest) error { return u.touched() }

func TestForgedCodesTouchNoStore(t *testing.T) {
	r := newFixture(t, func(d *api.Deps) {
		d.Idempotency, d.Coupons.Redeemer.Batches = unusedStore{t}, unusedStore{t}
	})
	good, err := codeKeys(r).Code(1, 1)
	r.must(err)
	for i, code := range []string{"hello", strings.Repeat("0", 16), good.Text()[:18] + "0", "2" + good.Text()[1:]} {
		r.want(r.call(as(token(i+1), "Idempotency-Key", "k"), "POST", "/redemptions", typed(code)), 422, "code_invalid")
	}
}

// TestGuessingIsSlowedDown: after ten invalid codes, a user gets no answer about any code for a
// while, valid or invalid. Other users are not throttled.
func TestGuessingIsSlowedDown(t *testing.T) {
	r := newFixture(t, nil)
	id := r.byCode(nil)
	codes := r.codes(id, 3)
	for range 10 {
		r.redeem(7, "0000-0000-0000-0000", 422, "code_invalid")
	}
	held := r.redeem(7, codes[0], 429, "rate_limited")
	if held.Header().Get("Retry-After") == "" {
		t.Error("nobody says when to try again")
	}
	r.redeem(8, codes[0], 201, "")
	r.late.Store(int64(7 * time.Second)) // one guess flows back in six seconds
	r.redeem(7, codes[1], 201, "")
	r.redeem(7, "hello", 422, "code_invalid")
	r.redeem(7, "hello", 429, "rate_limited")
	for i := range 60 { // one address, many users
		r.call(as(token(1000+i)), "POST", "/redemptions", typed("hello"))
	}
	r.redeem(5000, codes[2], 429, "rate_limited")
	service := as(r.keys["act-as-user"], "X-User-ID", "5000")
	r.want(r.call(service, "POST", "/redemptions", typed(codes[2])), 201, "")
}

// dyingGate commits and then fails, like a process that dies before it answers.
type dyingGate struct {
	claim.Gate
	dies atomic.Bool
}

func (d *dyingGate) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	c, err := d.Gate.Claim(ctx, r)
	if err == nil && d.dies.CompareAndSwap(true, false) {
		return claim.Claim{}, postgres.ErrUnavailable
	}
	return c, err
}

// TestDyingBetweenCommitAndMark: the process dies after the coupon is committed and before the code
// is marked or the request is answered. A repetition with the same key gets the coupon. Other users
// are refused, and the mark is repaired.
func TestDyingBetweenCommitAndMark(t *testing.T) {
	gate := &dyingGate{}
	r := newFixture(t, func(d *api.Deps) {
		gate.Gate = d.Coupons.Redeemer.Gate
		d.Coupons.Redeemer.Gate = gate
	})
	server := localstack.RedisServer(t)
	client, err := redis.Open(server.URL())
	r.must(err)
	t.Cleanup(func() { _ = client.Close() })
	marks := redis.NewCodeMarks(client)
	r = r.with(func(d *api.Deps) { d.Coupons.Redeemer.Gate, d.Coupons.Redeemer.Marks = gate, marks })
	id := r.byCode(nil)
	codes := r.codes(id, 2)
	batch, err := couponsdb.NewCodes(r.db).Batch(t.Context(), 1)
	r.must(err)
	marked := func(s redeemcode.Serial) bool {
		used, err := marks.Used(t.Context(), batch, s)
		r.must(err)
		return used
	}
	for i, code := range codes {
		gate.dies.Store(true)
		me := as(token(7+i), "Idempotency-Key", "k")
		r.want(r.call(me, "POST", "/redemptions", typed(code)), 503, "overloaded")
		serial := batch.First + redeemcode.Serial(i)
		if marked(serial) {
			t.Fatal("marked by a process that died")
		}
		if i == 1 {
			r.redeem(99, code, 409, "code_used") // another user comes first, and the mark is repaired
			if !marked(serial) {
				t.Error("the mark did not heal")
			}
		}
		coupon := r.want(r.call(me, "POST", "/redemptions", typed(code)), 201, "")
		if n := r.number(`select id from coupons where user_id = $1`, 7+i); coupon.at("coupon_id") != fmt.Sprint(n) || !marked(serial) {
			t.Errorf("coupon %d, answered %s", n, coupon.Body)
		}
	}
	r.must(client.FlushAll(t.Context()).Err())
	r.redeem(98, codes[0], 409, "code_used")
	if !marked(batch.First) || marked(batch.First+1) {
		t.Error("an empty Redis does not learn again what it is asked about")
	}
	r.must(server.Kill())
	r.redeem(98, codes[1], 409, "code_used") // slower, and right
	if n := r.number(`select count(*) from coupons`); n != 2 {
		t.Errorf("%d coupons for two codes", n)
	}
}

// with returns another process over the same database, changed.
func (r *fixture) with(change func(*api.Deps)) *fixture {
	other := r.second()
	other.build(nil, change)
	return other
}

// TestOneCodeManyUsers: users on two nodes compete for a few codes, Redis is emptied meanwhile, and
// staff revoke a batch. Each code gives one coupon at most, and a code of the revoked batch none
// after the revocation.
func TestOneCodeManyUsers(t *testing.T) {
	r := newFixture(t, nil)
	server := localstack.RedisServer(t)
	client, err := redis.Open(server.URL())
	r.must(err)
	t.Cleanup(func() { _ = client.Close() })
	node := func() *fixture {
		found, err := lookup.NewCodes(couponsdb.NewCodes(r.db))
		r.must(err)
		return r.with(func(d *api.Deps) {
			d.Coupons.Redeemer.Batches, d.Coupons.Redeemer.Marks = found, redis.NewCodeMarks(client)
		})
	}
	nodes := []*fixture{node(), node()}
	id := r.byCode(map[string]any{"stock": 1000, "per_user_limit": 100})
	codes := r.codes(id, 20)
	doomed := r.codes(id, 20)
	began, patience := time.Now(), localstack.Patience(t)
	var users sync.WaitGroup
	var issued [40]atomic.Int32
	for u := range 16 {
		users.Go(func() {
			for _, i := range rand.Perm(40) {
				redeem := func() answer {
					return nodes[u%2].call(as(token(100+u)), "POST", "/redemptions", typed(append(codes, doomed...)[i]))
				}
				a := redeem()
				for a.Code == http.StatusServiceUnavailable && time.Since(began) < patience { // as clients do
					a = redeem()
				}
				switch {
				case a.Code == http.StatusCreated:
					issued[i].Add(1)
				case a.code() != "code_used" && !(i >= 20 && a.code() == "code_invalid") && a.code() != "rate_limited":
					t.Errorf("%d %s", a.Code, a.Body)
				}
				if i == 7 {
					client.FlushAll(t.Context())
				}
			}
		})
	}
	for r.number(`select count(*) from coupons`) < 10 {
		<-time.After(time.Millisecond)
	}
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/codes/65/revoke", map[string]any{"reason": "leaked"}), 200, "")
	const revoked = `select count(*) from coupons, code_batches b where b.id = 65 and origin_key::bigint >= b.first_serial and origin_key::bigint < b.first_serial + b.count`
	afterwards := r.number(revoked)
	users.Wait()
	if n := r.number(revoked); n != afterwards {
		t.Errorf("%d coupons of a revoked batch, %d when it was revoked", n, afterwards)
	}
	var sum int64
	for i := range issued {
		if n := issued[i].Load(); n > 1 {
			t.Errorf("code %d gave %d coupons", i, n)
		} else {
			sum += int64(n)
		}
	}
	if n := r.number(`select count(*) from coupons`); n != sum || n != r.number(`select sum(used) from code_batches`) {
		t.Errorf("%d coupons, %d answered, %d counted", n, sum, r.number(`select sum(used) from code_batches`))
	}
}
