package coupons_test

import (
	"testing"

	"dropbell/adapters/localstack"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
)

// TestNoticesSurviveDumpAndRestore restores a dump on a new server, whose
// transaction numbers start from the beginning. In the dump, notices of some
// coupons were sent, notices of others were planned, and other coupons were only
// seen. Each of these coupons gets one notice in total, and so does each coupon
// issued on the new server.
func TestNoticesSurviveDumpAndRestore(t *testing.T) {
	b := newNoticeFixture(t, 1)
	b.own(b.drop, 1, 2)
	b.planned(2)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	b.until("settled", func() bool { return b.Number(`select count(*) from notices where status = 1`) == 2 })
	b.own(b.drop, 3)
	b.planned(3)
	// The transaction numbers of this server are far above the numbers of a new
	// server.
	b.Exec(`do $$ begin for i in 1..5000 loop perform pg_current_xact_id(); commit; end loop; end $$`)
	_, commit := b.Hold(`insert into users (id) values (999)`) // keeps the horizon from being passed
	b.own(b.drop, 4, 5)
	b.Must(b.announcer.Sweep(t.Context()))
	if n := b.Number(`select count(*) from notices`); n != 3 {
		t.Fatalf("%d notices are planned beyond a running transaction", n)
	}
	url := localstack.RestoredElsewhere(t, b.SQL.Config().ConnString())
	commit()

	b.Fixture = pgtest.On(t, url)
	b.notices = couponsdb.NewNotices(b.DB)
	b.announcer = &coupon.Announcer{Store: b.notices, Queue: &pgtest.MemoryQueue{}}
	b.planned(5)
	for range 5 {
		b.Must(b.announcer.Sweep(t.Context()))
	}
	b.planned(5)
	for id, want := range map[int64]string{1: "1 ", 2: "1 ", 3: "0 ", 4: "0 ", 5: "0 "} {
		var got string
		b.Must(b.SQL.QueryRow(t.Context(), `select string_agg(status || ' ' || reason, ',') from notices where user_id = $1`, id).Scan(&got))
		if got != want {
			t.Errorf("user %d has %q, want %q", id, got, want)
		}
	}
	if n := b.Number(`select count(*) from notice_runs`); n != 1 {
		t.Errorf("%d runs of notices: what went out before the dump was cut again", n)
	}
	b.own(b.drop, 6)
	b.planned(6)
	b.calendar()
}
