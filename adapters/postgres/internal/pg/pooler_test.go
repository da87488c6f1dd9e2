package pg_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/localstack"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/musttest"
)

const remedy = "DATABASE_POOL_MODE=transaction"

// TestATransactionPoolerIsNamed unless the options tell of it.
func TestATransactionPoolerIsNamed(t *testing.T) {
	direct := localstack.Database(t)
	pooled := localstack.TransactionPooler(t, direct, 2)
	for _, c := range []struct {
		url   string
		known bool
		named bool
	}{{direct, false, false}, {pooled, true, false}, {pooled, false, true}} {
		db, err := pg.Open(context.Background(), c.url, pg.Options{TransactionPool: c.known})
		musttest.OK(t, err)
		t.Cleanup(db.Close)
		for range 2 {
			err = db.Ready(t.Context(), 1)
			if named := err != nil && strings.Contains(err.Error(), remedy); named != c.named || !named && err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
	}
}

// TestErrorsGiveAPoolerAway that was not found by its probe, because it was busy.
func TestErrorsGiveAPoolerAway(t *testing.T) {
	db, err := pg.Open(context.Background(), localstack.Database(t), pg.Options{})
	musttest.OK(t, err)
	t.Cleanup(db.Close)
	for _, c := range []struct {
		code  string
		named bool
	}{{"42P01", false}, {"26000", true}} { // no such table, no such prepared statement
		db.Learn(&pgconn.PgError{Code: c.code})
		if err := db.Ready(t.Context(), 1); err != nil != c.named || c.named && !strings.Contains(err.Error(), remedy) {
			t.Errorf("after %s: %v", c.code, err)
		}
	}
}

// TestPreparedStatementsGiveAPoolerAway: of two processes with one session.
func TestPreparedStatementsGiveAPoolerAway(t *testing.T) {
	pooled := localstack.TransactionPooler(t, localstack.Database(t), 1)
	var last error
	for range 2 {
		db, err := pg.Open(context.Background(), pooled, pg.Options{})
		musttest.OK(t, err)
		t.Cleanup(db.Close)
		if _, err = dropsdb.NewTemplates(db).Shops(t.Context()); err != nil {
			last = db.Ready(t.Context(), 1)
		}
	}
	if last == nil || !strings.Contains(last.Error(), remedy) {
		t.Errorf("%v", last)
	}
}
