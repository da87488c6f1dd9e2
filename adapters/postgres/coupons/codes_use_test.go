package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// useFixture is a codeFixture with a gate that redeems its codes.
type useFixture struct {
	*codeFixture
	gate *couponsdb.Claims
}

func newUseFixture(t *testing.T) *useFixture {
	p := &useFixture{newCodeFixture(t), nil}
	p.gate = couponsdb.NewClaims(p.DB, postgres.Grouping{})
	t.Cleanup(p.gate.Close)
	return p
}

func (m *useFixture) claim(by user.ID, d template.Template, s redeemcode.Serial) (claim.Claim, error) {
	return m.gate.Claim(context.WithoutCancel(m.Context()), claim.Request{ID: claim.NewID(rand.Uint64(), d.ID), TemplateID: d.ID, UserID: by,
		Origin: claim.ByCode, Key: fmt.Sprint(int64(s))})
}

// TestRevokedWhileRedeeming: a hundred users redeem codes while staff revoke the
// batch. Every coupon belongs to a counted code, and redemptions after the
// committed revocation are refused.
func TestRevokedWhileRedeeming(t *testing.T) {
	m := newUseFixture(t)
	d := m.byCode(1000, 1000)
	b := m.ready(d, 400)
	var users sync.WaitGroup
	var mu sync.Mutex
	var issued, refused int64
	for u := range 8 {
		users.Go(func() {
			for i := range 50 {
				_, err := m.claim(user.ID(u+1), d, b.First+redeemcode.Serial(u*50+i))
				mu.Lock()
				switch {
				case err == nil:
					issued++
				case errors.Is(err, redeemcode.ErrInvalid):
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	for m.Number(`select count(*) from coupons`) < 20 {
		<-time.After(time.Millisecond)
	}
	revoked, err := m.staff.Revoke(t.Context(), pgtest.Clerk, d.ID, b.ID, "leaked")
	m.Must(err)
	afterwards := m.Number(`select count(*) from coupons`)
	users.Wait()
	if issued+refused != 400 || afterwards != issued || revoked.Used != issued || m.batch(b.ID).Used != issued {
		t.Errorf("issued %d and refused %d; %d coupons when revoked, counted %d", issued, refused, afterwards, m.batch(b.ID).Used)
	}
	if n := m.Number(`select issued from templates where id = $1`, d.ID); n != issued {
		t.Errorf("%d issued, the template says %d", issued, n)
	}
	_, err = m.staff.Revoke(t.Context(), pgtest.Clerk, d.ID, b.ID, "leaked")
	m.is(err, redeemcode.ErrRevoked)
	_, err = m.csv(d, 0)
	m.is(err, redeemcode.ErrNoCodes)
	_, err = m.csv(d, b.ID)
	m.is(err, redeemcode.ErrRevoked)
	if n := m.Number(`select count(*) from audit where action = 'codes.revoke' and reason = 'leaked' and (before->>'used')::int <= $1`, issued); n != 1 {
		t.Errorf("%d revocations are in the audit log", n)
	}
	// A user who already has a coupon keeps it; a repeated request returns the
	// same coupon.
	var by user.ID
	var s int64
	m.Must(m.SQL.QueryRow(t.Context(), `select user_id, origin_key::bigint from coupons limit 1`).Scan(&by, &s))
	if c, err := m.claim(by, d, redeemcode.Serial(s)); err != nil || c.CouponID == 0 {
		t.Errorf("a repetition after the revocation: %+v, %v", c, err)
	}
}

func TestUsedIsCountedPerBatch(t *testing.T) {
	m := newUseFixture(t)
	d, other := m.byCode(100, 100), m.byCode(100, 100)
	a, b, c := m.ready(d, 30), m.ready(other, 1), m.ready(d, 30)
	var users sync.WaitGroup
	for i := range redeemcode.Serial(20) {
		users.Go(func() {
			for range 2 { // the second one is a repetition and counts nothing
				for _, s := range []redeemcode.Serial{a.First + i, c.First + i} {
					if _, err := m.claim(user.ID(i+1), d, s); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	users.Wait()
	_, err := m.claim(1, other, b.First)
	m.Must(err)
	for _, want := range []struct {
		id, used int64
	}{{a.ID, 20}, {b.ID, 1}, {c.ID, 20}} {
		if got := m.batch(want.id).Used; got != want.used {
			t.Errorf("batch %d: %d used, want %d", want.id, got, want.used)
		}
	}
	supply, err := m.staff.Supply(t.Context(), pgtest.Clerk, d.ID)
	m.Must(err)
	if supply != (redeemcode.Supply{Outstanding: 20, Left: 60}) || supply.Excess() != 0 {
		t.Errorf("supply %+v", supply)
	}
	m.generate(d, 50)
	if supply, _ = m.staff.Supply(t.Context(), pgtest.Clerk, d.ID); supply.Outstanding != 70 || supply.Excess() != 10 {
		t.Errorf("with more codes than coupons: %+v", supply)
	}
	page, err := m.staff.Batches(t.Context(), pgtest.Clerk, redeemcode.Query{TemplateID: d.ID, Limit: 2})
	m.Must(err)
	rest, err := m.staff.Batches(t.Context(), pgtest.Clerk, redeemcode.Query{TemplateID: d.ID, Limit: 2, Before: page[1].ID})
	m.Must(err)
	if len(page) != 2 || page[1].ID != c.ID || len(rest) != 1 || rest[0].ID != a.ID {
		t.Errorf("pages %+v and %+v", page, rest)
	}
}

func TestCheck(t *testing.T) {
	m := newUseFixture(t)
	d := m.byCode(100, 100)
	b := m.ready(d, 3)
	codes := m.export(d, b.ID)
	verdict := func(by staff.Actor, typed string, want redeemcode.CheckResult) redeemcode.Finding {
		t.Helper()
		f, err := m.staff.Check(t.Context(), by, typed)
		m.Must(err)
		if f.Verdict != want {
			t.Errorf("%s, want %s", f.Verdict, want)
		}
		return f
	}
	verdict(pgtest.Clerk, "hello", redeemcode.Unreadable)
	verdict(pgtest.Clerk, strings.Repeat("0", 16), redeemcode.Forged)
	if f := verdict(pgtest.Clerk, strings.ToLower(codes[1]), redeemcode.Good); f.Place != 2 || f.Batch.ID != b.ID || f.Code.Text() != codes[1] || f.Use != nil {
		t.Errorf("a good code: %+v", f)
	}
	never, err := codeKeys(t, keyOne).Code(1, b.First+3)
	m.Must(err)
	verdict(pgtest.Clerk, never.Text(), redeemcode.NeverIssued)
	elsewhere := pgtest.Clerk
	elsewhere.Shops = []int64{99}
	if f := verdict(elsewhere, codes[0], redeemcode.Elsewhere); f.Batch.ID != 0 || f.Serial != 0 {
		t.Errorf("another shop's code: %+v", f)
	}
	c, err := m.claim(1001, d, b.First)
	m.Must(err)
	if f := verdict(pgtest.Clerk, codes[0], redeemcode.Spent); f.Use == nil || f.Use.UserID != 1001 || f.Use.CouponID != c.CouponID || f.Use.At.IsZero() {
		t.Errorf("a used code: %+v", f)
	}
	half := m.generate(d, 1)
	early, err := codeKeys(t, keyOne).Code(1, half.First)
	m.Must(err)
	verdict(pgtest.Clerk, early.Text(), redeemcode.NotReadyYet)
	_, err = m.staff.Revoke(t.Context(), pgtest.Clerk, d.ID, b.ID, "because")
	m.Must(err)
	verdict(pgtest.Clerk, codes[0], redeemcode.Spent)
	verdict(pgtest.Clerk, codes[1], redeemcode.Withdrawn)
	// A code of the same serial number, made with a key that is not the batch's
	// key.
	m.use(keyOne + "," + keyTwo)
	other, err := m.staff.Keys.Code(2, b.First+1)
	m.Must(err)
	verdict(pgtest.Clerk, other.Text(), redeemcode.NeverIssued)
}
