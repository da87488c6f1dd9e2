package drops_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// interposer calls do once, right after the counters of slots were read.
type interposer struct{ do func() }

func (m *interposer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, m, strings.Contains(d.SQL, "slot_results"))
}

func (m *interposer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if do := m.do; do != nil && ctx.Value(m) == true {
		m.do = nil
		do()
	}
}

// TestBalanceIsOfOneInstant: deliveries during the count do not change the
// balance sheet, which is of one moment.
func TestBalanceIsOfOneInstant(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	meddle := &interposer{}
	db, err := postgres.Open(t.Context(), m.SQL.Config().ConnString(), postgres.Options{Tracer: meddle, Log: slog.New(slog.DiscardHandler)})
	m.Must(err)
	t.Cleanup(db.Close)
	boards := dropsdb.NewBoards(db)
	for name, off := range map[string]func(id int64) int64{
		"sheet": func(id int64) (sum int64) {
			lines, err := boards.Balance(t.Context(), id)
			m.Must(err)
			for _, l := range lines {
				sum += l.Difference()
			}
			return sum
		},
		"recount": func(int64) int64 {
			r, err := boards.Recount(t.Context(), time.Hour, 100)
			m.Must(err)
			return int64(len(r.Differences))
		},
	} {
		m.Cause = func(id user.ID) string { return map[bool]string{true: "status 500"}[id <= 4] }
		tpl, _ := m.Bury(1, 10, 5)
		meddle.do = func() {
			m.Cause = func(user.ID) string { return "" }
			m.Work(delivery.Replay, delivery.DeadLetterFilter{TemplateID: tpl.ID}, 0)
			m.Drain()
			m.Finish(tpl)
		}
		if n := off(tpl.ID); n != 0 {
			t.Errorf("%s: off by %d", name, n)
		}
		if meddle.do != nil {
			t.Errorf("%s: nobody was in the way", name)
		}
		if n := off(tpl.ID); n != 0 {
			t.Errorf("%s: off by %d in the end", name, n)
		}
	}
}
