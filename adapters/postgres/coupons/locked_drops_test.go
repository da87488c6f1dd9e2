package coupons_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// waits is how long an operation on a drop without a lock may take in this test, which runs
// with the race detector next to other tests. Groups that wait for the locked drop until its
// lock ends take seconds; see [rush.hold].
const waits = 1500 * time.Millisecond

// rush sends claims of several drops to one gate. A session holds a lock on one drop, as psql
// would. Claims of the other drops must not be delayed.
type rush struct {
	*claimFixture
	held   template.Template
	others []template.Template
	users  user.ID

	mu      sync.Mutex
	refused int             // claims of the held drop
	took    []time.Duration // by claims of the drops that are not locked
}

func newRush(t *testing.T, stock int64) *rush {
	r := &rush{claimFixture: newClaimFixture(t, 1)}
	r.held = r.Open(1_000_000, 1, nil)
	for range 3 {
		r.others = append(r.others, r.Open(stock, 1, nil))
	}
	return r
}

// claim claims a coupon of the drop for a user who has none.
func (r *rush) claim(drop template.Template, key string) {
	r.mu.Lock()
	r.users++
	q := claimtest.Tap(drop, r.users, key)
	r.mu.Unlock()
	start := time.Now()
	_, err := r.Claim(r.Context(), q)
	took := time.Since(start)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case drop.ID != r.held.ID:
		r.took = append(r.took, took)
		if err != nil && !errors.Is(err, claim.ErrSoldOut) {
			r.Errorf("a claim of another drop after %v: %v", took, err)
		}
	case err == nil:
		r.Error("a coupon of a drop that is locked")
	case fault.KindOf(err) != fault.Unavailable || fault.CodeOf(err) != "overloaded":
		r.Errorf("a claim of the drop that is locked: %v", err)
	default:
		r.refused++
	}
}

// run lets callers claim coupons of all drops until refusals claims of the locked drop have
// been refused.
func (r *rush) run(callers, refusals int) {
	over := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.refused >= refusals || r.Failed()
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := 0; !over(); i++ {
				r.claim(r.others[i%len(r.others)], "")
			}
		})
		all.Go(func() {
			for !over() {
				r.claim(r.held, "")
			}
		})
	}
	all.Wait()
}

// usually returns the p95 of n claims by callers of the drops without a lock, while no drop is
// locked: how slow the machine is.
func (r *rush) usually(callers, n int) time.Duration {
	r.took = nil
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range n / callers {
				r.claim(r.others[i%len(r.others)], "")
			}
		})
	}
	all.Wait()
	slices.Sort(r.took)
	p95 := r.took[len(r.took)*95/100]
	r.took = nil
	return p95
}

// slowest checks the claims of drops that are not locked. It fails if more than a few claims
// took longer than waits; a few may have shared a first group with the locked drop. It also
// fails if any claim took so long that its caller would have given up. Where the machine is slow,
// usual is long, and the limits are longer.
func (r *rush) slowest(usual time.Duration) {
	slices.Sort(r.took)
	last := r.took[len(r.took)-1]
	p95 := r.took[len(r.took)*95/100]
	r.Logf("%d claims of other drops: p95 %v, slowest %v; %d of the locked drop were refused; without a lock p95 %v", len(r.took), p95, last, r.refused, usual)
	if p95 > couponsdb.LockWait+2*usual || last > waits+4*usual {
		r.Errorf("claims of other drops took up to %v, p95 %v, and without a lock p95 %v", last, p95, usual)
	}
	if r.refused == 0 {
		r.Error("no claim of the locked drop was answered")
	}
}

// TestALockedDropStopsNoOtherClaims: a session holds the row of one drop, and its claims keep
// coming. Claims of other drops are answered, and claims of the locked drop are refused. When
// the lock ends, claims of the drop are accepted again.
func TestALockedDropStopsNoOtherClaims(t *testing.T) {
	for _, c := range []struct {
		name  string
		stock int64 // of the other drops
		hold  string
	}{
		{"first coupons", 1_000_000, `select from templates where id = $1 for update`},
		{"last coupons", 20, `select from templates where id = $1 for update`},
		{"a job of grants", 1_000_000, `select pg_advisory_xact_lock(hashtextextended('dropbell:claims', $1))`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRush(t, c.stock)
			for _, drop := range r.others { // so that the fast path knows their terms
				r.claim(drop, "")
			}
			_, err := r.Claim(t.Context(), claimtest.Tap(r.held, 1_000_000, ""))
			r.Must(err)
			usual := r.usually(48, 480)
			_, release := r.Hold(c.hold, r.held.ID)
			r.run(24, 2000)
			r.slowest(usual)
			release()
			r.eventually("the drop goes on", func() error {
				_, err := r.Claim(t.Context(), claimtest.Tap(r.held, 1_000_001, "again"))
				return err
			})
			for _, drop := range append(r.others, r.held) {
				r.Balance(drop.ID)
			}
			if n := len(r.Coupons(r.held.ID)); n != 2 {
				t.Errorf("%d coupons of the drop that was locked", n)
			}
		})
	}
}

// eventually tries again until try succeeds.
func (r *rush) eventually(what string, try func() error) {
	r.Helper()
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if err = try(); err == nil {
			return
		}
	}
	r.Fatalf("%s: %v", what, err)
}

// TestALockedDropKeepsItsRepetitions: claims that met the lock are stored once.
func TestALockedDropKeepsItsRepetitions(t *testing.T) {
	r := newRush(t, 100)
	_, err := r.Claim(t.Context(), claimtest.Tap(r.held, 1, "before"))
	r.Must(err)
	_, release := r.Hold(`select from templates where id = $1 for update`, r.held.ID)
	done := make(chan error, 20)
	for by := range user.ID(20) {
		go func() {
			_, err := r.Claim(t.Context(), claimtest.Tap(r.held, 100+by, "k"))
			done <- err
		}()
	}
	r.Blocked(1)
	release() // within the time that a locked drop waits alone
	for range 20 {
		if err := <-done; err != nil {
			t.Errorf("a claim that waited for a moment: %v", err)
		}
	}
	if n := len(r.Coupons(r.held.ID)); n != 21 {
		t.Errorf("%d coupons", n)
	}
	claimtest.Holds(t, r, r.held.ID, 21, 1)
}

// TestAHaltedWriterOfGrantsStopsNobody: a process that was suspended between reading and
// writing holds a lock on a drop. The server ends the process's transaction, and grants of the
// drop go on.
func TestAHaltedWriterOfGrantsStopsNobody(t *testing.T) {
	r := newRush(t, 100)
	halted, err := postgres.Open(t.Context(), r.SQL.Config().ConnString(), postgres.Options{AppName: "halted", MaxConns: 4, TransactionIdle: time.Second})
	r.Must(err)
	t.Cleanup(halted.Close)
	tx, err := halted.Pool.Begin(t.Context())
	r.Must(err)
	_, err = tx.Exec(t.Context(), `select from templates where id = $1 for no key update`, r.held.ID)
	r.Must(err)
	group := func(drop template.Template, by user.ID) []claim.Request {
		q := claimtest.Tap(drop, by, "")
		q.Origin, q.Key = claim.ByGrant, "1:"
		return []claim.Request{q}
	}
	if _, err := r.gates[0].Group(t.Context(), group(r.held, 1)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a grant of the drop: %v", err)
	}
	if _, err := r.gates[0].Group(t.Context(), group(r.others[0], 2)); err != nil {
		t.Errorf("a grant of another drop: %v", err)
	}
	r.eventually("the server ends the halted session", func() error {
		_, err := r.gates[0].Group(t.Context(), group(r.held, 3))
		return err
	})
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the halted process was not ended")
	}
}

// TestALockedDropStopsNoOtherWriter: accepted claims of other drops are written meanwhile.
func TestALockedDropStopsNoOtherWriter(t *testing.T) {
	r := newRush(t, 100)
	recorder := couponsdb.NewGateRecorder(r.DB)
	write := func(drop template.Template, by user.ID) error {
		groups := []gate.Group{{Entry: "1-1", Epoch: 1, At: pgtest.Clock(), Claims: []gate.Accepted{{ID: claim.NewID(uint64(by), drop.ID), UserID: by, Origin: claim.ByTap}}}}
		_, err := recorder.Write(t.Context(), drop.ID, 0, groups)
		return err
	}
	_, release := r.Hold(`select from templates where id = $1 for update`, r.held.ID)
	for by := range user.ID(5) {
		if err := write(r.held, by+1); fault.KindOf(err) != fault.Unavailable { // before the lock ends
			t.Errorf("the drop that is locked: %v", err)
		}
		r.Must(write(r.others[0], by+1))
	}
	release()
	r.Must(write(r.held, 1))
	if a, b := len(r.Coupons(r.held.ID)), len(r.Coupons(r.others[0].ID)); a != 1 || b != 5 {
		t.Errorf("%d and %d coupons", a, b)
	}
}

// TestLockedCouponsStopNoOtherPayments: a session holds coupons of one drop. Payments with
// these coupons are refused soon, and leave enough connections for other payments.
func TestLockedCouponsStopNoOtherPayments(t *testing.T) {
	p := newPaymentFixture(t)
	other := p.Published(time.Hour)
	free := p.issue()
	var held []int64
	for range 40 {
		held = append(held, p.issue())
	}
	_, release := p.Hold(`select from coupons where id = any($1) for update`, held)
	over, refusals := make(chan struct{}), make([]int, len(held))
	var all sync.WaitGroup
	for i, id := range held {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if _, err := p.lock(id, "A"); fault.CodeOf(err) != "overloaded" {
					t.Errorf("a locked coupon: %v", err)
				}
				refusals[i]++
			}
		})
	}
	var took []time.Duration
	pay := func(id int64) {
		start := time.Now()
		_, err := p.lock(id, "B")
		p.Must(err)
		_, err = p.steps.Confirm(p.Context(), "key:1 till", id, "B")
		p.Must(err)
		_, err = p.steps.Refund(p.Context(), "key:1 till", id, "B")
		p.Must(err)
		took = append(took, time.Since(start))
	}
	for i := range 40 {
		pay(p.issueTo(int64(100+i), other.ID))
	}
	if slices.Sort(took); took[len(took)/2] > couponsdb.LockWait || took[len(took)-1] > 2*waits {
		t.Errorf("payments of another drop took %v, at most %v", took[len(took)/2], took[len(took)-1])
	}
	t.Logf("payments of another drop: median %v, slowest %v", took[len(took)/2], took[len(took)-1])
	close(over)
	all.Wait()
	if slices.Contains(refusals, 0) {
		t.Errorf("payments of locked coupons were answered %v times", refusals)
	}
	pay(free) // of the drop with the locked coupons
	release()
	for _, id := range held {
		if c, err := p.lock(id, "C"); err != nil || c.Coupon.State != coupon.Locked {
			t.Errorf("after the lock: %+v, %v", c.Coupon, err)
		}
	}
}

// TestAPaymentThatIsRefusedChangesNothing: the payment met a lock, changed nothing, and is
// repeated.
func TestAPaymentThatIsRefusedChangesNothing(t *testing.T) {
	p := newPaymentFixture(t)
	id := p.issue()
	_, release := p.Hold(`select from coupons where id = $1 for update`, id)
	if _, err := p.steps.Lock(t.Context(), "key:1 till", id, coupon.Order{ID: "A", Amount: 2500}); fault.KindOf(err) != fault.Unavailable {
		t.Fatalf("%v", err)
	}
	release()
	_, err := p.lock(id, "A")
	p.Must(err)
	p.tally(coupon.Tally{Issued: 1, Locked: 1})
}
