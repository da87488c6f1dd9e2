package postgres_test

import (
	"context"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/cell"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// stores are the stores of the rush on one cell, and the cell's drop.
type stores struct {
	*pgtest.Fixture
	claims   *couponsdb.Claims
	payments *coupon.Service
	drop     template.Template
}

// cellsWithDrops starts a server for each cell, with a drop that is open.
func cellsWithDrops(t *testing.T, n cell.Number) (servers []*localstack.Postgres, cells []stores) {
	t.Helper()
	for i := range n {
		servers = append(servers, localstack.Primary(t))
		w := pgtest.On(t, servers[i].URL())
		_, err := workdb.NewCells(w.DB).Number(t.Context(), i, 0)
		w.Must(err)
		drop := w.Published(time.Hour)
		w.Exec(`update templates set stock = 1000`)
		cells = append(cells, stores{w, w.Claims(), &coupon.Service{Store: w.Payments, LockFor: time.Hour}, drop})
	}
	return servers, cells
}

// rush reserves, claims and pays as user i. The ids of the drop and of the coupon name the cell.
func rush(ctx context.Context, cells []stores, drop int64, i user.ID) error {
	c := cells[cell.Of(drop, 1)]
	if _, err := c.Reservations.Reserve(ctx, reminder.Change{TemplateID: drop, UserID: i, Bits: reminder.StoredBitmap(1)}); err != nil {
		return err
	}
	got, err := c.claims.Claim(ctx, claim.Request{ID: claim.NewID(uint64(i)<<32, drop), TemplateID: drop, UserID: i, Origin: claim.ByGrant, Key: claim.TapKey(i, "k")})
	if err != nil {
		return err
	}
	_, err = cells[cell.Of(got.CouponID, 1)].payments.Lock(ctx, "", got.CouponID, coupon.Order{ID: "A-" + i.String(), Amount: 6000})
	return err
}

// TestLostCellHoldsUpNoOther: while the server of one cell is halted, and after it was killed, the
// drop of the other cell neither waits nor fails, although callers of the lost cell wait in the same
// process. Afterwards the lost cell decides again.
func TestLostCellHoldsUpNoOther(t *testing.T) {
	servers, cells := cellsWithDrops(t, 2)
	next := user.ID(0)
	within := func(limit time.Duration, drop template.Template) error {
		next++
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return rush(ctx, cells, drop.ID, next)
	}
	for name, lose := range map[string]func() error{
		"halted": func() error { servers[1].Pause(); return nil },
		"killed": servers[1].Kill,
	} {
		for _, c := range cells {
			musttest.OK(t, within(10*time.Second, c.drop))
		}
		musttest.OK(t, lose())
		waiting, stop := context.WithCancel(t.Context())
		lost := make(chan error, 50)
		for i := range user.ID(cap(lost)) {
			go func() { lost <- rush(waiting, cells, cells[1].drop.ID, 1000+i) }()
		}
		for range 50 {
			if err := within(10*time.Second, cells[0].drop); err != nil {
				t.Errorf("cell 0 while cell 1 is %s: %v", name, err)
			}
		}
		stop()
		for range cap(lost) {
			if err := <-lost; err == nil {
				t.Errorf("cell 1 decided while it was %s", name)
			}
		}
		musttest.OK(t, servers[1].Restart(t.Context()))
		for deadline := time.Now().Add(time.Minute); within(10*time.Second, cells[1].drop) != nil; {
			if time.Now().After(deadline) {
				t.Fatalf("cell 1 does not decide again after it was %s", name)
			}
		}
	}
}
