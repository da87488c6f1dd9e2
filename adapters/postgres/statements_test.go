package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/fault"
	"dropbell/musttest"
)

// A statement that exceeds its time limit ends, and the error says why: here the statement waits
// for a lock.
func TestStatementsEnd(t *testing.T) {
	url := localstack.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `begin; lock table shops in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	for pooled, key := range map[bool]string{false: "fault.database_slow", true: "fault.database_away"} {
		db, err := postgres.Open(t.Context(), url, postgres.Options{Statements: 200 * time.Millisecond, TransactionPool: pooled})
		musttest.OK(t, err)
		defer db.Close()
		begun := time.Now()
		_, err = dropsdb.NewTemplates(db).Shops(t.Context())
		if fault.KindOf(err) != fault.Unavailable || fault.KeyOf(err) != key || !errors.Is(err, postgres.ErrUnavailable) {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	}
}
