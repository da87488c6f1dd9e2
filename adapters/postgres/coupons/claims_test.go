package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// claimFixture is a database with durable gates, on a pool of connections each.
type claimFixture struct {
	*fixture
	gates []*couponsdb.Claims
}

func newClaimFixture(t *testing.T, gates int) *claimFixture {
	t.Helper()
	h := &claimFixture{fixture: newFixture(t)}
	for range gates {
		h.gates = append(h.gates, h.gate(t))
	}
	return h
}

// gate returns one more gate that ends with the test.
func (h *claimFixture) gate(t *testing.T) *couponsdb.Claims {
	g := couponsdb.NewClaims(h.another(t), postgres.Grouping{})
	t.Cleanup(g.Close)
	return g
}

// another returns a pool of its own, as another process has one.
func (h *claimFixture) another(t *testing.T) *postgres.DB {
	db, err := postgres.Open(context.WithoutCancel(t.Context()), h.SQL.Config().ConnString(), postgres.Options{AppName: "gate", MaxConns: 4})
	h.Must(err)
	t.Cleanup(db.Close)
	return db
}

// Claim claims at one of the gates.
func (h *claimFixture) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	return h.gates[rand.IntN(len(h.gates))].Claim(ctx, r)
}

func (h *claimFixture) Open(stock int64, limit int, change func(*template.Spec)) template.Template {
	h.Helper()
	s := pgtest.Spec(-time.Minute)
	s.Stock, s.PerUserLimit = stock, limit
	if change != nil {
		change(&s)
	}
	opens, closes := s.OpensAt, s.ClosesAt
	s.OpensAt, s.ClosesAt = pgtest.Clock().Truncate(time.Second).Add(time.Hour), pgtest.Clock().Truncate(time.Second).Add(2*time.Hour)
	t, err := h.Service.Create(h.Context(), pgtest.Actor, s, "")
	h.Must(err)
	h.Do(t.ID, template.Publishing)
	h.Exec(`update templates set opens_at = $2, closes_at = $3 where id = $1`, t.ID, opens, closes)
	t, err = h.Service.Template(h.Context(), pgtest.Actor, t.ID)
	h.Must(err)
	return t
}

func (h *claimFixture) Draft() template.Template {
	t, err := h.Service.Create(h.Context(), pgtest.Actor, pgtest.Spec(time.Hour), "")
	h.Must(err)
	return t
}

func (h *claimFixture) Do(id int64, tr template.Transition) {
	h.Helper()
	_, err := h.Service.Do(h.Context(), pgtest.Actor, id, 0, tr, "test")
	h.Must(err)
}

func (h *claimFixture) Raise(id, stock int64) {
	h.Helper()
	t, err := h.Service.Template(h.Context(), staff.System(), id)
	h.Must(err)
	s := t.Spec
	s.Stock = stock
	_, err = h.Service.Edit(h.Context(), pgtest.Actor, id, template.Edition{Version: t.Version, Spec: s})
	h.Must(err)
}

func (h *claimFixture) Doors(id int64, doors []template.Door) {
	h.Helper()
	t, err := h.Service.Template(h.Context(), staff.System(), id)
	h.Must(err)
	t.Doors = doors
	_, err = h.Templates.SaveDoors(h.Context(), t, nil, staff.Entry{Actor: staff.System(), Action: "template.doors", ObjectKind: "template"})
	h.Must(err)
}

func (h *claimFixture) Household(by user.ID, household string) {
	h.Helper()
	h.Exec(`insert into users (id, household) values ($1, $2) on conflict (id) do update set household = excluded.household`, by, household)
}

func (h *claimFixture) Coupons(id int64) []claim.Claim {
	h.Helper()
	rows, err := h.SQL.Query(h.Context(), `select claim_id, template_id, user_id, 'issued', id, '', issued_at from coupons where template_id = $1 order by id`, id)
	h.Must(err)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[claim.Claim])
	h.Must(err)
	return list
}

func (h *claimFixture) Balance(id int64) (total, issued int64) {
	h.Helper()
	h.Must(h.SQL.QueryRow(h.Context(), `select stock, issued from templates where id = $1`, id).Scan(&total, &issued))
	counted := h.Number(`select coalesce(sum(issued), 0) from claim_counts where template_id = $1`, id)
	curve := h.Number(`select coalesce(sum(issued), 0) from claim_seconds where template_id = $1`, id)
	announced := h.Number(`select coalesce(sum((i ->> 'issued')::bigint), 0) from outbox, jsonb_array_elements(payload -> 'issued') i
		where topic = 'coupons.issued.v1' and i ->> 'template_id' = $1::text`, fmt.Sprint(id))
	if counted != issued || curve != issued || announced != issued {
		h.Errorf("template %d: %d issued, %d counted per user, %d per second, %d announced", id, issued, counted, curve, announced)
	}
	return total, issued
}

func TestDurableGateKeepsTheContract(t *testing.T) {
	claimtest.Run(t, func(t *testing.T) claimtest.Harness { return newClaimFixture(t, 1) })
}

func TestDurableGatesOfTwoNodesKeepTheContract(t *testing.T) {
	claimtest.Run(t, func(t *testing.T) claimtest.Harness { return newClaimFixture(t, 2) })
}

// TestARushWithAKilledNode claims at three nodes. One node loses its database
// connections in the middle. Requests without an answer are repeated with the
// same key.
func TestARushWithAKilledNode(t *testing.T) {
	const stock, users = 50, 200
	h := newClaimFixture(t, 2)
	doomedDB := h.another(t)
	doomed := couponsdb.NewClaims(doomedDB, postgres.Grouping{MaxGroup: 8})
	t.Cleanup(doomed.Close)
	drop := h.Open(stock, 1, nil)
	nodes := []*couponsdb.Claims{h.gates[0], h.gates[1], doomed}
	var all sync.WaitGroup
	var mu sync.Mutex
	won := map[user.ID]claim.Claim{}
	for i := range users {
		all.Go(func() {
			by := user.ID(i + 1)
			for try := range 10 {
				got, err := nodes[(i+try)%3].Claim(t.Context(), claimtest.Tap(drop, by, "one wish"))
				mu.Lock()
				if before, again := won[by]; err == nil && again && before.ID != got.ID {
					t.Errorf("user %d was told of two claims: %+v and %+v", by, before, got)
				}
				if err == nil {
					won[by] = got
				}
				mu.Unlock()
				if err != nil && fault.KindOf(err) != fault.Unavailable && !errors.Is(err, claim.ErrSoldOut) {
					t.Errorf("user %d: %v", by, err)
				}
			}
		})
	}
	all.Go(func() {
		for h.Number(`select issued from templates where id = $1`, drop.ID) == 0 {
			if t.Context().Err() != nil {
				return
			}
		}
		// The node's sessions end wherever they are, also inside transactions.
		h.Exec(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'gate' and pid <> pg_backend_pid()
			order by pid desc limit 4`)
	})
	all.Wait()
	for by, c := range won {
		if c.CouponID == 0 || c.UserID != by {
			t.Errorf("user %d was answered %+v", by, c)
		}
	}
	if len(won) != stock {
		t.Errorf("%d users were told that they won, want %d", len(won), stock)
	}
	claimtest.Holds(t, h, drop.ID, stock, 1)
}

func TestOneGroupIsDecidedInItsOrder(t *testing.T) {
	h := newClaimFixture(t, 1)
	a, b := h.Open(2, 1, nil), h.Open(100, 2, nil)
	draft := h.Draft()
	ask := func(drop template.Template, by user.ID, key string) claim.Request {
		return claimtest.Tap(drop, by, key)
	}
	group := []claim.Request{
		ask(a, 1, "k"), ask(b, 1, ""), ask(a, 1, "k"), ask(a, 1, "other"), ask(draft, 1, ""), ask(b, 1, "k"),
		ask(b, 1, "x"), ask(b, 1, ""), ask(a, 2, ""), ask(a, 3, ""), ask(b, 4, "y"), ask(a, 2, ""),
	}
	verdicts, err := h.gates[0].Group(t.Context(), group)
	h.Must(err)
	want := []error{nil, nil, nil, claim.ErrLimit, template.ErrNotFound, claim.ErrIdempotency,
		nil, claim.ErrLimit, nil, claim.ErrSoldOut, nil, claim.ErrSoldOut}
	for i, v := range verdicts {
		if !errors.Is(v.Err, want[i]) || (v.Claim != nil) != (want[i] == nil) || v.Claim != nil && v.Claim.CouponID == 0 {
			t.Errorf("request %d: %+v, %v, want %v", i, v.Claim, v.Err, want[i])
		}
	}
	if verdicts[2].Claim != nil && *verdicts[2].Claim != *verdicts[0].Claim {
		t.Errorf("the repetition in the group got %+v, the first %+v", verdicts[2].Claim, verdicts[0].Claim)
	}
	if h.Balance(a.ID); h.Number(`select count(*) from outbox where topic = 'coupons.issued.v1'`) != 1 {
		t.Error("a group announces itself once")
	}
	claimtest.Holds(t, h, a.ID, 2, 1)
	claimtest.Holds(t, h, b.ID, 3, 2)
}

// TestKeyMeetsKeyOfAnotherTemplate sends one key to two templates at once, from
// two nodes whose transactions lock different rows.
func TestKeyMeetsKeyOfAnotherTemplate(t *testing.T) {
	h := newClaimFixture(t, 2)
	a, b := h.Open(1000, 1000, nil), h.Open(1000, 1000, nil)
	for round := range 30 {
		var all sync.WaitGroup
		errs := make([]error, 2)
		for i, drop := range []template.Template{a, b} {
			all.Go(func() {
				_, errs[i] = h.gates[i].Claim(t.Context(), claimtest.Tap(drop, 1, fmt.Sprint("round", round)))
			})
		}
		all.Wait()
		first, second := errs[0], errs[1]
		if (first == nil) == (second == nil) || first != nil && !errors.Is(first, claim.ErrIdempotency) ||
			second != nil && !errors.Is(second, claim.ErrIdempotency) {
			t.Fatalf("round %d: %v and %v, want one coupon and one conflict", round, first, second)
		}
	}
}

func TestGrantsKnowNoWindow(t *testing.T) {
	h := newClaimFixture(t, 1)
	hours := func(opens, closes int) func(*template.Spec) {
		return func(s *template.Spec) {
			now := pgtest.Clock().Truncate(time.Second)
			s.OpensAt, s.ClosesAt = now.Add(time.Duration(opens)*time.Hour), now.Add(time.Duration(closes)*time.Hour)
		}
	}
	grant := func(drop template.Template, by user.ID) error {
		_, err := h.Claim(t.Context(), claim.Request{ID: claim.NewID(rand.Uint64(), drop.ID), TemplateID: drop.ID, UserID: by,
			Origin: claim.ByGrant, Key: fmt.Sprintf("1:%d:%d", drop.ID, by)})
		return err
	}
	early, late, byCode := h.Open(5, 1, hours(1, 2)), h.Open(5, 1, hours(-2, -1)), h.Open(5, 1, func(s *template.Spec) { s.Obtain = template.ByCode })
	for _, drop := range []template.Template{early, late, byCode} {
		h.Must(grant(drop, 1))
	}
	if n, err := h.Service.CloseEnded(t.Context(), 10); err != nil || n != 1 {
		t.Fatalf("closed %d, %v", n, err)
	}
	h.Must(grant(late, 2)) // closed by the clock
	h.Do(early.ID, template.Closing)
	if err := grant(early, 2); !errors.Is(err, claim.ErrEnded) {
		t.Errorf("closed by staff: %v", err)
	}
	h.Must(grant(early, 1)) // the repetition of the grant
	expired := h.Open(5, 1, nil)
	h.Exec(`update templates set valid_until = now() - interval '1 second', valid_hours = 0 where id = $1`, expired.ID)
	if err := grant(expired, 1); !errors.Is(err, claim.ErrEnded) {
		t.Errorf("a coupon that has expired already: %v", err)
	}
	for by := user.ID(2); by <= 5; by++ {
		h.Must(grant(byCode, by))
	}
	if err := grant(byCode, 6); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("no stock: %v", err)
	}
	claimtest.Holds(t, h, early.ID, 1, 1)
	claimtest.Holds(t, h, late.ID, 2, 1)
	claimtest.Holds(t, h, byCode.ID, 5, 1)
}

// TestAcceptedElsewhere writes claims that another gate has accepted. The drop's
// window is not checked again; stock and limit are. Writing the same claims again
// changes nothing.
func TestAcceptedElsewhere(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.Open(2, 1, nil)
	at := pgtest.Clock().Add(-time.Minute)
	accepted := func(id claim.ID, by user.ID) claim.Request {
		return claim.Request{ID: id, TemplateID: drop.ID, UserID: by, Origin: claim.ByTap, AcceptedAt: at}
	}
	h.Do(drop.ID, template.Pausing)
	group := []claim.Request{accepted(11, 1), accepted(12, 1), accepted(13, 2), accepted(14, 3)}
	for _, want := range [][]error{{nil, claim.ErrLimit, nil, claim.ErrSoldOut}, {nil, claim.ErrSoldOut, nil, claim.ErrSoldOut}} {
		verdicts, err := h.gates[0].Group(t.Context(), group)
		h.Must(err)
		for i, v := range verdicts {
			if !errors.Is(v.Err, want[i]) {
				t.Errorf("claim %d: %v, want %v", group[i].ID, v.Err, want[i])
			}
		}
	}
	for _, c := range claimtest.Holds(t, h, drop.ID, 2, 1) {
		if !c.At.Equal(at) {
			t.Errorf("coupon %+v was issued at another instant than it was accepted", c)
		}
	}
}

func TestLooksAtClaims(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.Open(10, 1, nil)
	r := claimtest.Tap(drop, 5, "key")
	want, err := h.Claim(t.Context(), r)
	h.Must(err)
	got, err := h.gates[0].ByID(t.Context(), 5, r.ID)
	if err != nil || got.CouponID != want.CouponID || got.UserID != 5 || !got.At.Equal(want.At) || got.State != claim.Issued {
		t.Errorf("by id: %+v, %v, want %+v", got, err, want)
	}
	if _, err := h.gates[0].ByID(t.Context(), 5, r.ID+1); !errors.Is(err, claim.ErrNotFound) {
		t.Errorf("unknown id: %v", err)
	}
	if _, err := h.gates[0].ByID(t.Context(), 6, r.ID); !errors.Is(err, claim.ErrNotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := h.gates[0].Repetition(t.Context(), claim.RepeatKey{Origin: claim.ByTap, Key: r.Key}); err != nil || got.ID != r.ID {
				t.Errorf("by key: %+v, %v", got, err)
			}
			if _, err := h.gates[0].Repetition(t.Context(), claim.RepeatKey{Origin: claim.ByCode, Key: r.Key}); !errors.Is(err, claim.ErrNotFound) {
				t.Errorf("by another origin's key: %v", err)
			}
		})
	}
	all.Wait()
	var hours float64
	h.Must(h.SQL.QueryRow(t.Context(), `select extract(epoch from expires_at - issued_at)::float8 / 3600 from coupons where claim_id = $1`, r.ID).Scan(&hours))
	if hours != 48 {
		t.Errorf("the coupon is valid for %v hours, want 48", hours)
	}
}

func TestAKeyIsNotTooLong(t *testing.T) {
	h := newClaimFixture(t, 1)
	r := claimtest.Tap(h.Open(1, 1, nil), 1, "")
	r.Key = string(make([]byte, claim.MaxKey+1))
	if _, err := h.Claim(t.Context(), r); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a long key: %v", err)
	}
}
