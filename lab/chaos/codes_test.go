package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"dropbell/domain/claim"
	"dropbell/domain/redeemcode"
	"dropbell/musttest"
)

// TestCodesBehindTheGate redeems codes of a drop behind the gate over HTTP, while real processes
// are killed at the worst moments. A code gives one coupon to one user, and is never used up
// without a coupon.
func TestCodesBehindTheGate(t *testing.T) {
	t.Parallel()
	c := newClaims(t, rush{codes: 12, patience: 20 * time.Second})
	s := c.openCodes("gate", 3*time.Second)
	client, err := c.stack.RedisClient()
	musttest.OK(t, err)
	defer client.Close()
	wait(time.Until(s.opensAt.Add(time.Second)), c.ctx.Done())

	if a := s.redeem(1, "1111-1111-1111-1111", uuid.NewString()); a.status != http.StatusUnprocessableEntity || a.code != redeemcode.ErrInvalid.Code {
		t.Errorf("a forged code: %+v", a)
	}
	s.issued(1, s.codes[0])
	s.used(1, s.codes[0]) // twice
	s.used(2, s.codes[0]) // by another user

	// Two at once: one has it, the other hears why not.
	var told [2]told
	var both sync.WaitGroup
	for i := range told {
		both.Go(func() { told[i] = s.redeem(int64(11+i), s.codes[1], uuid.NewString()) })
	}
	both.Wait()
	s.oneOf(told[:], 11, 12)

	// The claim is accepted by a web process that dies before the claim is written. Its user
	// repeats the request at another process and gets the same claim.
	worker := c.fleet.workers
	for _, m := range worker {
		m.process.Pause()
	}
	key := uuid.NewString()
	first := s.redeem(21, s.codes[2], key)
	for _, m := range c.fleet.webs[:2] {
		c.fleet.kill(m)
	}
	again := s.redeem(21, s.codes[2], key)
	if !first.positive() || again.claim != first.claim {
		t.Errorf("promised %+v, repeated %+v", first, again)
	}
	for _, m := range worker {
		m.process.Resume()
	}
	if b := s.became(21, first); b.state != string(claim.Issued) {
		t.Errorf("promised and then %+v", b)
	}
	for _, m := range c.fleet.webs[:2] {
		c.fleet.start(m)
		musttest.OK(t, m.process.Ready(c.ctx, time.Minute))
	}

	// The claim is written, and every process that would have marked the code dies. The database
	// refuses the next attempt, and then the mark is set.
	s.issued(31, s.codes[3])
	marks, err := client.Keys(c.ctx, "dropbell:codes:*").Result()
	if err != nil || len(marks) != 1 {
		t.Fatalf("marks: %v %v", marks, err)
	}
	musttest.OK(t, client.Del(c.ctx, marks...).Err())
	s.used(32, s.codes[3])
	if n, err := client.BitCount(c.ctx, marks[0], nil).Result(); err != nil || n == 0 {
		t.Errorf("%d codes are marked, %v", n, err)
	}

	// An emptied Redis: a used code stays used, an unused one is as good as before.
	musttest.OK(t, client.FlushAll(c.ctx).Err())
	for i, code := range s.codes[:4] {
		s.used(int64(41+i), code)
	}
	for i, code := range s.codes[4:] {
		s.issued(int64(51+i), code)
	}
	c.calm(s.template)
	if rows := s.rows(s.template); len(rows) != len(s.codes) {
		t.Errorf("%d coupons of %d codes", len(rows), len(s.codes))
	}
}

// issued redeems an unused code.
func (s *codeSale) issued(by int64, code string) {
	s.t.Helper()
	a := s.redeem(by, code, uuid.NewString())
	if !a.positive() {
		s.t.Fatalf("user %d: %+v", by, a)
	}
	if b := s.became(by, a); b.state != string(claim.Issued) || b.coupon == "" {
		s.t.Fatalf("user %d was told %+v, and it became %+v", by, a, b)
	}
}

// used tries a code that has already given its coupon. The attempt is refused at once or, before
// the code is marked, a little later. In the end every attempt is refused at once.
func (s *codeSale) used(by int64, code string) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; wait(20*time.Millisecond, s.ctx.Done()) {
		a := s.redeem(by, code, uuid.NewString())
		if a.status == http.StatusConflict && a.code == redeemcode.ErrUsed.Code {
			return
		}
		b := s.became(by, a)
		if !a.positive() || b.state != string(claim.Failed) || b.reason != redeemcode.ErrUsed.Code || time.Now().After(end) {
			s.t.Fatalf("user %d tries a used code: %+v, which became %+v", by, a, b)
		}
	}
}

// oneOf checks that one of two users has the coupon and the other was told.
func (s *codeSale) oneOf(list []told, users ...int64) {
	s.t.Helper()
	won := 0
	for i, a := range list {
		b := a
		if a.positive() {
			b = s.became(users[i], a)
		}
		switch {
		case b.state == string(claim.Issued):
			won++
		case b.code != redeemcode.ErrUsed.Code && b.reason != redeemcode.ErrUsed.Code:
			s.t.Errorf("user %d: %+v", users[i], b)
		}
	}
	if won != 1 {
		s.t.Errorf("%d of two have the coupon of one code", won)
	}
}

// TestKeyOfADeadProcess: a web process is killed in the middle of a reservation. Another process
// carries out the same request: after five seconds if the key was stored before the reservation,
// at once if key and reservation are stored together.
func TestKeyOfADeadProcess(t *testing.T) {
	t.Parallel()
	c := newClaims(t, rush{patience: 30 * time.Second})
	d := c.crowd.publish(c.ctx, "Dead key", time.Hour)
	for i, way := range []struct {
		channel string // as it is written in the body
		begun   string // asks whether the request has come as far as it can
		within  time.Duration
		created bool // the repetition gets the answer that the first request would have had
	}{
		{`\u0061pp`, `select exists (select from idempotency_keys where key = $1)`, 7 * time.Second, false},
		{`app`, `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%as a (template_id, user_id, bits, actor, key,%' and $1 <> '')`, 0, true},
	} {
		c.killWhileReserving(d.id, int64(7+i), way.channel, way.begun, way.within, way.created)
	}
}

func (c *claims) killWhileReserving(drop int64, user int64, channel, begun string, within time.Duration, created bool) {
	t := c.t
	t.Helper()
	const slow = 10 * time.Second
	// Reservations now wait for this lock.
	tx, err := c.stack.SQL.Begin(c.ctx)
	musttest.OK(t, err)
	if _, err := tx.Exec(c.ctx, `select from slots where template_id = $1 for update`, drop); err != nil {
		t.Fatal(err)
	}
	doomed := c.fleet.webs[0]
	at := &client{t: t, webs: []string{"http://" + doomed.addr}, http: c.crowd.http}
	key := uuid.NewString()
	body := fmt.Sprintf(`{"template_id":"%d","shop_number":"10","reminders":[{"channel":"%s","minutes":5}]}`, drop, channel)
	q := call{method: "POST", path: "/reservations", user: user, body: json.RawMessage(body)}
	cut := make(chan error, 1)
	go func() {
		_, err := at.once(c.ctx, q, key, []byte(body))
		cut <- err
	}()
	far, stop := context.WithTimeout(c.ctx, time.Minute)
	defer stop()
	for waits := false; !waits; wait(10*time.Millisecond, far.Done()) {
		if err := c.stack.SQL.QueryRow(far, begun, key).Scan(&waits); err != nil {
			t.Fatalf("the request does not come so far: %v", err)
		}
	}
	c.fleet.kill(doomed)
	killed := time.Now()
	if err := <-cut; err == nil {
		t.Fatal("the request was answered before its process was killed")
	}
	musttest.OK(t, tx.Rollback(c.ctx))
	r, final := c.crowd.sendAs(c.ctx, q, key)
	took := time.Since(killed)
	if !final || !r.ok() || created && r.status != http.StatusCreated {
		t.Fatalf("repeated: %d %s", r.status, r.body)
	}
	t.Logf("channel %s: carried out %v after the kill", channel, took.Round(100*time.Millisecond))
	c.fleet.start(doomed)
	musttest.OK(t, doomed.process.Ready(c.ctx, time.Minute))
	if took > within+slow {
		t.Errorf("it took %v", took)
	}
	var slots int64
	if err := c.stack.SQL.QueryRow(c.ctx, `select slots from reservations where template_id = $1 and user_id = $2`, drop, user).Scan(&slots); err != nil || slots != 1 {
		t.Errorf("reserved: %d, %v", slots, err)
	}
}
