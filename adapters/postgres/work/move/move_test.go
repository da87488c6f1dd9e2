package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/cell"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
)

// twoUsers is the bitmap of the users 1001 and 1002.
const twoUsers = `'\x0100000000000000000000003a3000000100000000000100` + `10000000e903ea03'`

// sides are two installations. The source has a few rows of shop 10 in every table.
type sides struct {
	*testing.T
	source, target *pgtest.Fixture
	mover          Mover
}

// bothSides starts with all rows of testdata/rows.sql in the source, with nothing of the shop under
// way, and an empty target, whose cursors have passed over all coupons, as a worker makes them.
func bothSides(t *testing.T) *sides {
	t.Helper()
	return bothOn(t, localstack.Database(t), localstack.Database(t))
}

func bothOn(t *testing.T, source, target string) *sides {
	t.Helper()
	s := &sides{T: t, source: pgtest.On(t, source), target: pgtest.On(t, target)}
	_, err := workdb.NewCells(s.target.DB).Number(t.Context(), 1, 0)
	s.source.Must(err)
	rows, err := os.ReadFile("../../testdata/rows.sql")
	s.source.Must(err)
	conn, err := s.source.SQL.Acquire(t.Context())
	s.source.Must(err)
	defer conn.Release()
	_, err = conn.Conn().PgConn().Exec(t.Context(), strings.ReplaceAll(string(rows), "{set}", twoUsers)).ReadAll()
	s.source.Must(err)
	for _, sql := range []string{
		`update templates set opens_at = date_trunc('second', now()) + interval '3 days', closes_at = date_trunc('second', now()) + interval '4 days'`,
		`update slots s set opens_at = t.opens_at, due_at = t.opens_at - interval '10 minutes' from templates t where t.id = s.template_id and s.state = 'waiting'`,
		`update batches set state = 'done', finished_at = now() where state <> 'done'`,
		`update providers set deleted_at = now()`,
		`update doors set who = 'all', segment_id = null`,
		`insert into feedback_totals (kind, owner_id, channel, delivered, bounced, complained) values ('reminder', 1, 1, 1, 0, 0)`,
		`delete from moves`,
		`delete from outbox`, `update event_relay set settled = 1000`,
		`insert into notices (user_id, template_id, day, days, due_at, expires_at) values (1002, 1, '2027-12-02', 1, '2027-12-02 02:00Z', '2027-12-03 12:00Z')`,
	} {
		s.source.Exec(sql)
	}
	s.target.Exec(`update notice_cursor set planned_to = 1000000, seen_to = 1000000`)
	s.target.Exec(`update hook_cursor set planned_to = 1000000, seen_to = 1000000`)
	s.mover = Mover{Source: s.source.DB, Target: s.target.DB, Patience: time.Second}
	return s
}

// rowsOf returns how many rows the shop has in each table.
func (s *sides) rowsOf(w *pgtest.Fixture, r *move) map[string]int64 {
	s.Helper()
	counts := map[string]int64{}
	for _, t := range r.tables(bulk, others, acting) {
		counts[t.name] += w.Number(`select count(*) from ` + t.name + ` t where ` + t.of)
	}
	return counts
}

// ids returns a run whose conditions name the ids of the shop.
func (s *sides) ids() *move {
	s.Helper()
	r := &move{shop: 10}
	s.source.Must(pgx.BeginFunc(s.Context(), s.source.SQL, func(tx pgx.Tx) error { return r.readIDs(s.Context(), tx) }))
	return r
}

// TestEveryTableMovesOrStays: a table that names rows of shops, by a reference to a table that moves or by
// a column that a condition compares, is in one of the lists. A moved table has a primary key and a row of
// the shop in testdata/rows.sql, so that its condition is tried. Unlogged tables are not asked: they may be lost at any time.
func TestEveryTableMovesOrStays(t *testing.T) {
	s := bothSides(t)
	listed := slices.Clone(staying)
	var moved, columns []string
	compared := regexp.MustCompile(`\bt\.([a-z_]+_id|shop_number|subject)\b`)
	for _, one := range slices.Concat(bulk, others, acting, unneeded) {
		moved = append(moved, one.name)
		for _, m := range compared.FindAllStringSubmatch(one.of, -1) {
			columns = append(columns, m[1])
		}
	}
	listed = append(listed, moved...)
	rows, err := s.source.SQL.Query(t.Context(), `select c.relname from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relpersistence = 'p' and not c.relispartition
		and (c.relname = any($1) or exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = any($2))
			or exists (select from pg_constraint f join pg_class o on o.oid = f.confrelid where f.conrelid = c.oid and f.contype = 'f' and o.relname = any($1)))`, moved, columns)
	s.source.Must(err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.source.Must(err)
	for _, name := range names {
		if !slices.Contains(listed, name) {
			t.Errorf("%s names rows of shops and is in no list: does it move with a shop?", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no table, or names no rows of shops", name)
		}
	}
	for name, n := range s.rowsOf(s.source, s.ids()) {
		if n == 0 && name != "removed_coupons" { // of a drop that is gone
			t.Errorf("no row of %s moves", name)
		}
	}
}

// TestMove: all rows of a shop move, also back. Rows that begin work by themselves arrive last. Rows
// of other shops stay, and the number of a shop that has left cannot be used again.
func TestMove(t *testing.T) {
	s := bothSides(t)
	s.source.Shops(20)
	other := s.source.Drop(pgtest.Drop{Shop: 20})
	s.source.Exec(`insert into reservations (template_id, user_id, slots) values ($1, 1001, 1)`, other)
	s.source.Exec(`update templates set state = 'closed', ended_at = date_trunc('second', now()) - interval '30 hours' where id = 65`)
	s.source.Exec(`insert into handled_events (handler, event_id)
		select 'hooks', (lpad(to_hex(extract(epoch from ended_at)::bigint * 1000), 12, '0') || '7001' || lpad(to_hex(id), 16, '0'))::uuid from templates where id = 65`)
	r := s.ids()
	before := s.rowsOf(s.source, r)
	var all int64
	for _, n := range before {
		all += n
	}
	s.mover.Check = func(context.Context, int64) error {
		if l, err := workdb.NewCells(s.source.DB).Lag(t.Context()); err != nil || l.Stalled != 0 {
			t.Errorf("a move that runs stands still: %v %v", l, err)
		}
		if n := s.target.Number(`select count(*) from slots where state = 'waiting'`) + s.target.Number(`select count(*) from notices where status = 0`); n > 0 {
			t.Errorf("%d rows that act are in both databases", n)
		}
		return nil
	}
	moved, err := s.mover.Move(t.Context(), 10)
	s.source.Must(err)
	if moved.Rows != all || moved.To != 1 || !slices.Equal(moved.Drops, []int64{1, 65}) {
		t.Errorf("%+v, want %d rows", moved, all)
	}
	for name, n := range s.rowsOf(s.target, r) {
		if n != before[name] {
			t.Errorf("%s: %d rows have arrived, want %d", name, n, before[name])
		}
	}
	for name, n := range s.rowsOf(s.source, r) {
		if n != 0 {
			t.Errorf("%s: %d rows are left", name, n)
		}
	}
	if n := s.source.Number(`select count(*) from reservations where template_id = $1`, other); n != 1 {
		t.Errorf("shop 20 has %d reservations", n)
	}
	if n := s.target.Number(`select count(*) from users where email in ('li@tea.example', 'ann@tea.example')`); n != 2 {
		t.Errorf("the contacts of %d users are in the target", n)
	}
	if _, err := s.source.Service.Create(t.Context(), pgtest.Actor, pgtest.Spec(time.Hour), ""); !errors.Is(err, cell.ErrMoved) {
		t.Errorf("a drop of a shop that has left: %v", err)
	}
	if n := s.target.Number(`select count(*) from handled_events h join templates t on right(h.event_id::text, 4) = lpad(to_hex(t.id), 4, '0') where h.handler = 'hooks' and t.id = 65`); n != 1 {
		t.Errorf("the target knows %d events about the end of a drop", n)
	}
	again, err := s.mover.Move(t.Context(), 10)
	if err != nil || !again.Before {
		t.Errorf("%+v %v", again, err)
	}
	if here, there := s.source.Number(`select last_value from hook_sequence`), s.target.Number(`select last_value from hook_sequence`); there <= here {
		t.Errorf("events have sequence %d here, and %d there", here, there)
	}
	for _, table := range []string{"coupons", "templates", "slots"} {
		if id, most := s.target.Number(`select nextval(pg_get_serial_sequence($1, 'id'))`, table), s.target.Number(`select max(id) from `+table); id <= most || cell.Of(id, 1) != 1 {
			t.Errorf("the next id of %s is %d", table, id)
		}
	}
	s.target.Exec(`update event_relay set settled = 1000`)
	s.target.Exec(`delete from outbox`)
	s.source.Exec(`update notice_cursor set planned_to = 1000000`)
	s.source.Exec(`update hook_cursor set planned_to = 1000000`)
	_, err = Mover{Source: s.target.DB, Target: s.source.DB, Patience: time.Second}.Move(t.Context(), 10)
	s.source.Must(err)
	for name, n := range s.rowsOf(s.source, r) {
		if n != before[name] {
			t.Errorf("%s: %d rows came back, want %d", name, n, before[name])
		}
	}
	if n := s.source.Number(`select count(*) from moves`); n != 0 {
		t.Errorf("%d moves are open", n)
	}
}

// TestMoveGoesOn: a move that ends after any of its steps is completed by the next one; until the
// rows have left, it can be undone too.
func TestMoveGoesOn(t *testing.T) {
	s := bothSides(t)
	r := s.ids()
	before := s.rowsOf(s.source, r)
	died := errors.New("died")
	checked := false
	steps := 0
	for last := 0; ; last++ {
		ctx, die := context.WithCancelCause(t.Context())
		lines := 0
		m := s.mover
		m.Tell = func(string) {
			if lines++; lines > last {
				die(died)
			}
		}
		m.Check = func(context.Context, int64) error {
			if checked {
				return nil
			}
			checked = true
			return died
		}
		_, err := m.Move(ctx, 10)
		die(nil)
		if err == nil {
			break
		}
		if got := s.rowsOf(s.source, r); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Fatalf("after %d steps: %v, want %v", last, got, before)
		}
		if steps++; steps == 3 {
			s.source.Must(s.mover.Undo(t.Context(), 10))
			if got := s.rowsOf(s.target, r); got["coupons"]+got["templates"]+got["batches"] != 0 {
				t.Errorf("undone: %v", got)
			}
		}
	}
	if !checked {
		t.Error("no move came to its last step")
	}
	if steps < 5 {
		t.Errorf("only %d steps", steps)
	}
	if got := s.rowsOf(s.target, r); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("%v, want %v", got, before)
	}
}

// TestServersDie: either server is killed while the rows are in both databases. Nothing has moved then,
// and the next move completes.
func TestServersDie(t *testing.T) {
	source, target := localstack.Primary(t), localstack.Primary(t)
	s := bothOn(t, source.URL(), target.URL())
	r := s.ids()
	before := s.rowsOf(s.source, r)
	for name, server := range map[string]*localstack.Postgres{"source": source, "target": target} {
		m := s.mover
		m.Check = func(context.Context, int64) error { return server.Kill() }
		if _, err := m.Move(t.Context(), 10); err == nil {
			t.Errorf("a shop moved without its %s", name)
		}
		s.source.Must(server.Restart(t.Context()))
		if got := s.rowsOf(s.source, r); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Errorf("%s killed: %v, want %v", name, got, before)
		}
	}
	_, err := s.mover.Move(t.Context(), 10)
	s.source.Must(err)
	if got := s.rowsOf(s.target, r); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("%v, want %v", got, before)
	}
}

// TestArrivalGoesOn: a move that died after the rows had left is completed by the next one, and
// cannot be undone.
func TestArrivalGoesOn(t *testing.T) {
	s := bothSides(t)
	s.target.Exec(`create function fail() returns trigger language plpgsql as $$ begin raise exception 'no room'; end $$`)
	s.target.Exec(`create trigger fail before insert on notices for each row when (new.status = 0) execute function fail()`)
	if _, err := s.mover.Move(t.Context(), 10); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Fatal(err)
	}
	if err := s.mover.Undo(t.Context(), 10); !errors.Is(err, cell.ErrNotMovable) {
		t.Errorf("undone: %v", err)
	}
	unfinished := func(w *pgtest.Fixture) string {
		list, err := workdb.NewCells(w.DB).Moves(t.Context())
		w.Must(err)
		if len(list) != 1 {
			return fmt.Sprint(list)
		}
		list[0].Since = time.Time{}
		return fmt.Sprintf("%+v", list)
	}
	if here, there := unfinished(s.source), unfinished(s.target); !strings.HasPrefix(here, "[{Shop:10 Arriving:false Emptied:true ") || !strings.HasPrefix(there, "[{Shop:10 Arriving:true Emptied:false ") {
		t.Errorf("the doctor is told of %s here and %s there", here, there)
	}
	if l, err := workdb.NewCells(s.source.DB).Lag(t.Context()); err != nil || l.Stalled <= 0 {
		t.Errorf("a move that died does not stand still: %v %v", l, err)
	}
	s.target.Exec(`drop trigger fail on notices`)
	if _, err := s.mover.Move(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if n := s.target.Number(`select count(*) from slots where state = 'waiting'`) + s.target.Number(`select count(*) from notices where status = 0`); n != 2 {
		t.Errorf("%d rows that act have arrived", n)
	}
	if n := s.source.Number(`select count(*) from moving_rows`) + s.target.Number(`select count(*) from moves`); n != 0 {
		t.Errorf("%d rows are left of the move", n)
	}
}

// TestChangesDuringMove: what is written between the copy and the last step moves too. During the last
// step reservations, claims and payments of the shop are refused, and others are stored.
func TestChangesDuringMove(t *testing.T) {
	s := bothSides(t)
	w := s.source
	w.Shops(20)
	open := w.Published(3 * time.Hour)
	w.Exec(`update templates set shop_number = 20, opens_at = date_trunc('second', now()) - interval '1 hour' where id = $1`, open.ID)
	claims, payments := w.Claims(), &coupon.Service{Store: w.Payments, LockFor: time.Hour}
	w.Exec(`delete from outbox`)
	wrote := false
	s.mover.Tell = func(line string) {
		if !wrote {
			wrote = true
			w.Exec(`insert into reservations (template_id, user_id, slots) values (1, 1003, 1)`)
			w.Exec(`delete from reservations where user_id = 1001`)
			w.Exec(`update coupons set state = 'expired', version = version + 1 where id = 65`)
		}
	}
	s.mover.Check = func(ctx context.Context, drop int64) error {
		if drop != 1 {
			return nil
		}
		of, err := w.Templates.Template(ctx, 1)
		w.Must(err)
		refused := map[string]error{"payment": func() error {
			_, err := payments.Lock(ctx, "", 129, coupon.Order{ID: "C-1", Amount: 6000})
			return err
		}(), "claim": func() error {
			_, err := claims.Claim(ctx, claim.Request{ID: claim.NewID(7, of.ID), TemplateID: of.ID, UserID: 5, Origin: claim.ByGrant, Key: "g"})
			return err
		}(), "reservation": func() error {
			_, err := w.Reservations.Reserve(ctx, reminder.Change{TemplateID: of.ID, UserID: 5, Bits: reminder.StoredBitmap(2)})
			return err
		}()}
		for name, err := range refused {
			if fault.KindOf(err) != fault.Unavailable && !errors.Is(err, coupon.ErrBusy) {
				t.Errorf("%s of the shop that moves: %v", name, err)
			}
		}
		got, err := claims.Claim(ctx, claim.Request{ID: claim.NewID(8, open.ID), TemplateID: open.ID, UserID: 5, Origin: claim.ByGrant, Key: "h"})
		w.Must(err)
		if _, err := payments.Lock(ctx, "", got.CouponID, coupon.Order{ID: "C-2", Amount: 6000}); err != nil {
			t.Errorf("a payment of another shop: %v", err)
		}
		return nil
	}
	_, err := s.mover.Move(t.Context(), 10)
	w.Must(err)
	if !wrote {
		t.Fatal("nothing was written")
	}
	if n := s.target.Number(`select count(*) from reservations where template_id = 1 and user_id in (1002, 1003)`) + s.target.Number(`select count(*) from reservations`) +
		s.target.Number(`select count(*) from coupons where id = 65 and state = 'expired'`); n != 5 {
		t.Errorf("%d of the changed rows have arrived", n)
	}
}
