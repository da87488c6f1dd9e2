package coupons_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/template"
)

// paymentFixture is a database with coupons to lock, use and release.
type paymentFixture struct {
	*fixture
	store   couponsdb.CouponSteps
	steps   *coupon.Service
	decider *coupon.Admin
	tallies couponsdb.CouponTallies
	drop    template.Template
}

func newPaymentFixture(t *testing.T) *paymentFixture {
	w := newFixture(t)
	store := couponsdb.NewCouponSteps(w.DB)
	return &paymentFixture{w, store, &coupon.Service{Store: w.Payments, LockFor: time.Hour}, &coupon.Admin{Store: store},
		w.Tallies, w.Published(time.Hour)}
}

// issue gives user 7 a coupon that is valid for an hour.
func (p *paymentFixture) issue() int64 { return p.issueTo(7, p.drop.ID) }

func (p *paymentFixture) issueTo(id, templateID int64) int64 {
	p.Helper()
	p.Exec(`update templates set issued = issued + 1 where id = $1`, templateID)
	return p.ID("coupons", pgtest.Row{"template_id": templateID, "user_id": id})
}

func (p *paymentFixture) expireNow(id int64) {
	p.Helper()
	p.Exec(`update coupons set expires_at = clock_timestamp() - interval '1 second' where id = $1`, id)
}

func (p *paymentFixture) runOut(id int64) {
	p.Helper()
	p.Exec(`update coupons set locked_until = clock_timestamp() - interval '1 second' where id = $1 and state = 'locked'`, id)
}

func (p *paymentFixture) lock(id int64, order string) (coupon.Case, error) {
	return p.steps.Lock(p.Context(), "key:1 till", id, coupon.Order{ID: order, Amount: 2500})
}

func (p *paymentFixture) state(id int64) coupon.Coupon {
	p.Helper()
	c, err := p.steps.Coupon(p.Context(), 0, id)
	p.Must(err)
	return c.Coupon
}

// tally delivers every event twice and compares the counts with want.
func (p *paymentFixture) tally(want coupon.Tally) {
	p.Helper()
	for range 2 {
		p.relay()
	}
	got, err := p.tallies.Tally(p.Context(), p.drop.ID)
	p.Must(err)
	if got != want {
		p.Errorf("tally %+v, want %+v", got, want)
	}
}

func (p *paymentFixture) relay() {
	p.Helper()
	rows, err := p.SQL.Query(p.Context(), `select event_id::text, topic, payload::text from outbox where topic like 'coupon%' order by id`)
	p.Must(err)
	defer rows.Close()
	for rows.Next() {
		var id, topic, payload string
		p.Must(rows.Scan(&id, &topic, &payload))
		strict := json.NewDecoder(strings.NewReader(payload))
		strict.DisallowUnknownFields()
		switch topic {
		case event.CouponsChanged:
			var e event.CouponChanges
			p.Must(strict.Decode(&e))
			for _, c := range e.Changes {
				if c.At.IsZero() || (c.Step == "lock") != (c.LockedUntil != nil) || c.CouponID == 0 || c.UserID == 0 || c.OperationID == 0 {
					p.Errorf("event %s", payload)
				}
			}
			p.Must(p.TallyEvents.Changed(p.Context(), id, e.Changes))
		case event.CouponsExpired:
			var e event.Expired
			p.Must(strict.Decode(&e))
			p.Must(p.TallyEvents.Expired(p.Context(), id, e))
		}
	}
	p.Must(rows.Err())
}

func (p *paymentFixture) secondDB() *postgres.DB {
	p.Helper()
	db, err := postgres.Open(p.Context(), p.SQL.Config().ConnString(), postgres.Options{AppName: "second", MaxConns: 8})
	p.Must(err)
	p.Cleanup(db.Close)
	return db
}
