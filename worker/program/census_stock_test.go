package program

import (
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/musttest"
	"dropbell/worker/workertest"
)

func TestStockCensusTellsWhatIsOff(t *testing.T) {
	p, conn := assembled(t)
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%v in %s", err, sql)
		}
	}
	rows.Drop{ID: 7, Issued: 3, OpensAt: time.Now().Add(-time.Hour), ClosesAt: time.Now().Add(2 * time.Hour).Truncate(time.Second)}.Add(t, conn)
	do(`insert into claim_seconds values (7, date_trunc('second', now()), 3)`)
	musttest.OK(t, p.census.count(t.Context()))
	workertest.Expect(t, p.Registry, 3, "dropbell_stock_difference", "template=7") // three are counted and none is there
	workertest.Expect(t, p.Registry, 1, "dropbell_stock_ledgers")
	do(`update templates set issued = 1 where id = 7`)
	do(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at) values (7, 1, 1, 'claim', now(), now())`)
	do(`insert into claim_counts values (7, 1, 1)`)
	musttest.OK(t, p.census.count(t.Context()))
	if n, there := workertest.Value(t, p.Registry, "dropbell_stock_difference", "template=7"); there {
		t.Errorf("a ledger that adds up is told to be off by %v", n)
	}
	p.census.forget()
	workertest.Expect(t, p.Registry, 0, "dropbell_stock_ledgers")
}
