package drops_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// TestAnEveningIsReadByIndex: the statements that claim and finish slots were planned while
// the tables were empty. When hundreds of slots become due or end at once, no statement reads
// the slots and batches of all other slots for each slot.
func TestAnEveningIsReadByIndex(t *testing.T) {
	const slots, batches = 200, 3
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	w.Exec(`alter table slots set (autovacuum_enabled = off)`)
	w.Exec(`alter table batches set (autovacuum_enabled = off)`)
	db, err := postgres.Open(t.Context(), w.DB.Pool.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), MaxConns: 1})
	w.Must(err)
	t.Cleanup(db.Close)
	store := dropsdb.NewSlots(db, nil)
	begin := func() int {
		cuts, err := store.BeginTogether(t.Context(), reminder.Cut{Slot: w.Slot(tpl, template.Slot(12)), Token: uuid.NewString()}, time.Minute)
		w.Must(err)
		return len(cuts)
	}
	finish := func() int {
		n, err := store.FinishSlots(t.Context())
		w.Must(err)
		return n
	}
	read := func(table string) (n int64) {
		_, err := db.Pool.Exec(t.Context(), `select pg_stat_force_next_flush()`)
		w.Must(err)
		w.Must(db.Pool.QueryRow(t.Context(), `select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = $1`, table).Scan(&n))
		return n
	}
	// The previous drop was large and is over: its slot had a thousand batches.
	large := w.ID("slots", pgtest.Row{"template_id": tpl.ID, "due_at": pgtest.SQL("now() - interval '1 day'"), "state": "finished"})
	w.Fill("batches", "generate_series(1, 1000) i", pgtest.Row{"owner_id": large, "template_id": tpl.ID, "channel": pgtest.SQL("i % 4"),
		"from_user": pgtest.SQL("i"), "to_user": pgtest.SQL("i"), "state": "done", "worthless_after": pgtest.SQL("now()")})
	w.Exec(`insert into slot_results (slot_id, channel, reserved) select distinct owner_id, channel, 250 from batches`)
	w.Exec(`alter table slot_results set (autovacuum_enabled = off)`)
	w.Exec(`vacuum analyze slot_results`)
	w.Exec(`vacuum analyze slots`)
	w.Exec(`vacuum analyze batches`)
	for range 8 { // after five a plan is kept
		if begin()+finish() != 0 {
			t.Fatal("there are slots already")
		}
	}
	w.Fill("slots", fmt.Sprintf("generate_series(1, 2 * %d) i", slots), pgtest.Row{"template_id": tpl.ID, "slot": pgtest.SQL("1 + i % 12"),
		"due_at": pgtest.SQL("now() - i * interval '1 second'"), "state": pgtest.SQL("case i % 2 when 0 then 'waiting' else 'sending' end")})
	w.Fill("batches", fmt.Sprintf("slots, generate_series(0, %d - 1) c where state = 'sending'", batches), pgtest.Row{"owner_id": pgtest.SQL("id"),
		"template_id": tpl.ID, "channel": pgtest.SQL("c"), "due_at": pgtest.SQL("due_at"), "worthless_after": pgtest.SQL("opens_at"), "finished_at": pgtest.SQL("now()"),
		"state": pgtest.SQL("case when c = 0 and id / 2 % 4 <> 0 then 'ready' else 'done' end")})
	want := w.Number(`select count(*) from slots s where state = 'sending' and not exists (select from batches b where b.owner_id = s.id and b.state <> 'done')`)
	// The session's statistics are reported now, not at the next regular report.
	w.Exec(`insert into slot_results (slot_id, channel, reserved)
		select distinct owner_id, channel, 1 from batches where owner_id in (select id from slots where state = 'sending');
		select pg_stat_force_next_flush()`)
	before := map[string]int64{"slots": read("slots"), "batches": read("batches"), "slot_results": read("slot_results")}
	if n := begin(); n != slots {
		t.Errorf("%d of %d slots were claimed", n, slots)
	}
	if n := finish(); int64(n) != want || want == 0 {
		t.Errorf("%d of %d slots were finished", n, want)
	}
	for table, n := range before {
		if n = read(table) - n; n > 10*slots {
			t.Errorf("%d rows of %s were read for %d slots and %d batches", n, table, 2*slots, slots*batches)
		}
	}
}
