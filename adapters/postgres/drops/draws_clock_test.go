package drops_test

import (
	"errors"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/draw"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// skew sets by how much the clock of the database differs from the clock of this machine, on which the workers run.
func (d *drawing) skew(by string) {
	d.Helper()
	d.Exec(`create schema if not exists skewed`)
	d.Exec(`create table if not exists skewed.clock (ahead interval not null)`)
	for _, clock := range []string{"clock_timestamp", "statement_timestamp", "transaction_timestamp", "now"} {
		d.Exec(`create or replace function skewed.` + clock + `() returns timestamptz language sql volatile
			as 'select pg_catalog.` + clock + `() + (select ahead from skewed.clock)'`)
	}
	d.Exec(`delete from skewed.clock`)
	d.Exec(`insert into skewed.clock values ($1::text::interval)`, by)
	d.Exec(`do $$ begin execute format('alter database %I set search_path = skewed, pg_catalog, public', current_database()); end $$`)
	d.SQL.Reset() // new sessions have the new path
}

// The clocks of the workers are hours behind the clock of the database, which decides when entries are taken, when they close,
// which round decides and when that round can be known. Two workers take each step at the same time: there is one seal and
// one draw, and each winner has one coupon.
func TestDrawGoesByTheClockOfTheDatabase(t *testing.T) {
	d := drawOf(t, nil, func(s *template.Spec) { s.DrawSource = template.SourceDrand })
	beacon := d.operator.Beacon.(*numbered)
	second := *d.operator
	second.Gate = d.Claims()
	sweep := func() draw.Draw {
		t.Helper()
		workers := []*draw.Operator{d.operator, &second}
		for _, err := range pgtest.Together(2, func(i int) error { return workers[i].Sweep(t.Context()) }) {
			d.Must(err)
		}
		now, err := d.entries.Draw(t.Context(), d.drop.ID)
		d.Must(err)
		return now
	}
	d.skew("-1 hour")
	if _, _, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 1}); !errors.Is(err, claim.ErrNotStarted) {
		t.Errorf("an entry before the window, by the database: %v", err)
	}
	d.skew("1 hour")
	d.enter(pgtest.Users(1, 20)...)
	if now := sweep(); now.State != draw.Open {
		t.Errorf("an hour before the close the draw is %s", now.State)
	}
	d.skew("2 hours 1 second")
	if _, _, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 21}); !errors.Is(err, draw.ErrClosed) {
		t.Errorf("an entry after the close, by the database: %v", err)
	}
	sealed := d.until(draw.Sealed, d.operator, &second)
	if late := sealed.SealedAt.Sub(sealed.ClosesAt); late < 0 || late > time.Minute || !draw.RoundTime(sealed.Round).After(*sealed.SealedAt) {
		t.Errorf("closed at %v, sealed at %v, decided by the round of %v", sealed.ClosesAt, sealed.SealedAt, draw.RoundTime(sealed.Round))
	}
	if now := sweep(); now.State != draw.Sealed || beacon.asked.Load() != 0 {
		t.Errorf("before its round the draw is %s, the beacon was asked %d times", now.State, beacon.asked.Load())
	}
	d.skew("2 hours 5 minutes")
	end := d.until(draw.Done, d.operator, &second)
	if end.Seal != sealed.Seal || end.Counts != (draw.Counts{Entered: 20, Won: 2}) {
		t.Errorf("%+v of the seal\n%s\nwhich was\n%s", end.Counts, end.Seal, sealed.Seal)
	}
	if n := d.Number(`select count(distinct user_id) from coupons where template_id = $1`, d.drop.ID); n != 2 {
		t.Errorf("%d winners have coupons", n)
	}
	d.balanced()
	if r := d.verify(user.ID(7)); !r.Sound() {
		t.Errorf("%+v", r)
	}
}
