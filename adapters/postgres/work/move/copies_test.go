package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/cell"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// homeAndCell are home, a cell, and what copies to it.
type homeAndCell struct {
	home, cell *pgtest.Fixture
	Copier
}

func twoCells(t *testing.T) *homeAndCell {
	t.Helper()
	s := &homeAndCell{home: pgtest.New(t), cell: pgtest.On(t, localstack.Database(t))}
	_, err := workdb.NewCells(s.cell.DB).Number(t.Context(), 1, 0)
	s.home.Must(err)
	s.Copier = Copier{Home: s.home.DB, Cell: s.cell.DB, Number: 1, Erase: func(ctx context.Context, id int64) error {
		err := s.cell.Users.Erase(ctx, user.ID(id), staff.Entry{Actor: staff.System(), Action: "user.erase", ObjectKind: "user", ObjectID: fmt.Sprint(id)})
		if errors.Is(err, user.ErrNotFound) {
			return nil
		}
		return err
	}}
	return s
}

// copyAll copies what is due, twice over: a repetition changes nothing.
func (s *homeAndCell) copyAll() {
	s.home.Helper()
	for more := true; more; {
		var err error
		more, err = s.Step(s.home.Context())
		s.home.Must(err)
	}
	if n := s.home.Number(`select count(*) from copies_due`); n != 0 {
		s.home.Errorf("%d changes are left", n)
	}
}

// same compares all copied tables by rows and sums.
func (s *homeAndCell) same(when string) {
	s.home.Helper()
	for _, t := range copies {
		sum := `select count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) from ` + t.name + ` t where ` + t.of
		var here, there string
		s.home.Must(s.home.SQL.QueryRow(s.home.Context(), sum).Scan(&here))
		s.home.Must(s.cell.SQL.QueryRow(s.home.Context(), sum).Scan(&there))
		if here != there {
			s.home.Errorf("%s: %s: %q here and %q there", when, t.name, here, there)
		}
	}
}

// fillHome gives home rows of an installation that has been one database so far.
func (s *homeAndCell) fillHome() {
	s.home.Exec(`insert into users (id, email, opt_outs) select g, 'user' || g || '@example.com', (g % 3 = 0)::int * 4 from generate_series(1, 7000) g`)
	s.home.Exec(`insert into staff (email, role) values ('ada@example.com', 'admin')`)
	s.home.Exec(`insert into api_keys (name, prefix, hash, scopes, created_by) values ('till', 'dbk_1', '\x01', '{payment}', 'ada')`)
	s.home.Exec(`insert into erased_users (user_id, erased_by) values (8000, 'ada')`)
	s.home.Exec(`insert into segments (name, kind, rule, created_by) values ('Friends', 'list', '{}', 'ada')`)
	s.home.Exec(`insert into segment_members (segment_id, chunk, members, count) select id, 0, '\x00', 1 from segments`)
	s.home.Exec(`insert into shops (number, name, timezone) values (10, 'Tea', 'UTC')`)
	s.home.Exec(`insert into providers (shop_number, channel, kind, name, enabled, changed, created_by) values (null, 1, 'smtp', 'All', true, 1, 'ada'), (10, 1, 'smtp', 'Tea', true, 1, 'ada')`)
	s.home.Exec(`insert into message_versions (shop_number, kind, content, created_by) values (0, 'names', '{}', 'ada'), (10, 'names', '{}', 'ada')`)
}

// TestCopies: a new cell gets home's rows; later changes, removals and erasures follow, also when a
// step is repeated or died in between, and rows of single shops stay where they are.
func TestCopies(t *testing.T) {
	s := twoCells(t)
	s.fillHome()
	s.home.Must(s.Begin(t.Context()))
	s.home.Must(s.Begin(t.Context()))
	s.home.Must(s.Compare(t.Context()))
	s.same("compared")
	if n := s.cell.Number(`select count(*) from providers`) + s.cell.Number(`select count(*) from shops`) + s.cell.Number(`select count(*) from message_versions`); n != 2 {
		t.Errorf("%d rows, want the provider and the text of the installation", n)
	}
	s.home.Exec(`update users set email = 'new@example.com', updated_at = now() where id between 5 and 2500`)
	s.home.Exec(`update users set opt_outs = 4 where id = 7`)
	s.home.Exec(`insert into sms_stops (user_id) values (7)`)
	s.home.Exec(`insert into inbox_reads (user_id, read_through) values (7, now())`)
	s.home.Exec(`update api_keys set revoked_at = now()`)
	s.home.Exec(`delete from segments`)
	s.home.Exec(`insert into users (id, email) values (9001, 'late@example.com')`)
	died := s.Copier
	died.Erase = func(ctx context.Context, id int64) error { // after the first of its statements
		_, err := s.cell.SQL.Exec(ctx, `insert into erased_users (user_id, erased_by) values ($1, 'x') on conflict do nothing`, id)
		return errors.Join(err, errors.New("died"))
	}
	s.home.Must(s.home.Users.Erase(t.Context(), 2000, staff.Entry{Actor: staff.System(), Action: "user.erase", ObjectKind: "user", ObjectID: "2000"}))
	s.cell.Exec(`insert into idempotency_keys (actor, key, request_hash, locked_until) values ('user:2000', 'k', '\x01', now())`)
	s.cell.Exec(`delete from users where id = 2000`) // known by other rows alone
	for range 4 {
		if _, err := died.Step(t.Context()); err != nil && !strings.Contains(err.Error(), "died") {
			t.Fatal(err)
		}
	}
	if l, err := workdb.NewCells(s.home.DB).Lag(t.Context()); err != nil || l.Due[1] <= 0 || l.Stalled != 0 {
		t.Errorf("changes wait: %v %v", l, err)
	}
	s.copyAll()
	if l, err := workdb.NewCells(s.home.DB).Lag(t.Context()); err != nil || l.Due[1] != 0 || len(l.Due) != 1 {
		t.Errorf("no change waits: %v %v", l, err)
	}
	s.same("changed")
	if n := s.cell.Number(`select count(*) from idempotency_keys`) + s.cell.Number(`select count(*) from users where id = 2000`); n != 0 {
		t.Error("the user was not erased in the cell")
	}
	if n := s.cell.Number(`select count(*) from erased_users where user_id in (8000, 2000)`); n != 2 {
		t.Errorf("the cell knows %d erased users", n)
	}
	s.home.Exec(`delete from erased_users where user_id = 2000`)
	s.home.Exec(`insert into users (id, email) values (2000, 'back@example.com')`)
	s.copyAll()
	s.same("known again")
}

// TestCopiesAreRepaired: a comparison finds copies that have become different.
func TestCopiesAreRepaired(t *testing.T) {
	s := twoCells(t)
	s.fillHome()
	s.home.Must(s.Begin(t.Context()))
	s.home.Must(s.Compare(t.Context()))
	s.cell.Exec(`delete from users where id = 17`)
	s.cell.Exec(`update users set email = 'wrong@example.com' where id = 6999`)
	s.cell.Exec(`insert into users (id) values (6), (9999) on conflict (id) do update set devices = '[{}]'`)
	s.home.Must(s.Compare(t.Context()))
	s.same("repaired")
	var due bool
	due, err := s.Due(t.Context())
	if err != nil || due {
		t.Errorf("due again: %v %v", due, err)
	}
}

// TestAddressesBecomeKnownEverywhere: a bounce that a cell noted reaches home, and its release by
// staff the cell.
func TestAddressesBecomeKnownEverywhere(t *testing.T) {
	s := twoCells(t)
	s.home.Must(s.Begin(t.Context()))
	s.cell.Exec(`insert into suppressions (address, reason) values ('it''s@example.com', 'bounced')`)
	s.home.Exec(`insert into suppressions (address, reason) values ('other@example.com', 'complained')`)
	s.copyAll()
	s.copyAll()
	s.same("bounced")
	s.home.Exec(`update suppressions set released_at = clock_timestamp() where address <> 'other@example.com'`)
	s.copyAll()
	s.home.Must(s.Compare(t.Context()))
	s.copyAll()
	s.same("released")
	if n := s.cell.Number(`select count(*) from suppressions where released_at is not null`); n != 1 {
		t.Errorf("%d released", n)
	}
}

// TestOnlyEmptyCellsBegin: a database of another installation, or with another number, is refused.
func TestOnlyEmptyCellsBegin(t *testing.T) {
	s := twoCells(t)
	wrong := s.Copier
	wrong.Number = 2
	if err := wrong.Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "is cell 1 and not cell 2") {
		t.Errorf("another number: %v", err)
	}
	s.cell.Exec(`insert into users (id) values (1)`)
	if err := s.Begin(t.Context()); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("%v", err)
	}
}

// TestACellAfterARemovedOne: a cell without shops is taken out. Its database cannot come back, and takes no
// shops. Another database with its number draws greater ids and serial numbers of codes.
func TestACellAfterARemovedOne(t *testing.T) {
	s := twoCells(t)
	s.home.Must(s.Begin(t.Context()))
	s.cell.Shops(20)
	s.cell.Exec(`insert into campaigns (name, shop_number, channel, content, audience, starts_at, ends_at, state, creator, created_by)
		values ('Letter', 20, 1, '{}', '{"kind": "everybody"}', now(), now() + interval '1 hour', 'draft', 'staff:1', 'staff:1')`)
	s.cell.Exec(`update code_serials set next = next + 500`)
	if err := Remove(t.Context(), s.home.DB, s.cell.DB, 1); !errors.Is(err, cell.ErrInUse) || !strings.Contains(err.Error(), "shops 20") {
		t.Errorf("a cell with a shop: %v", err)
	}
	s.cell.Exec(`delete from campaigns`)
	s.cell.Exec(`delete from shops`)
	s.cell.Exec(`delete from outbox`)
	s.home.Must(Remove(t.Context(), s.home.DB, s.cell.DB, 1))
	s.home.Exec(`insert into users (id) values (9)`)
	if n := s.home.Number(`select count(*) from copies_due`); n != 0 {
		t.Errorf("home notes %d changes for a removed cell", n)
	}
	if err := s.Begin(t.Context()); !errors.Is(err, cell.ErrRemoved) {
		t.Errorf("a removed database comes back: %v", err)
	}
	if _, err := s.cell.SQL.Exec(t.Context(), `insert into shops (number, name, timezone) values (21, 'New', 'UTC')`); err == nil {
		t.Error("a removed database takes a shop")
	}
	last, code := s.cell.Number(`select last_id from removed_cells`), s.cell.Number(`select last_code from removed_cells`)
	s.cell = pgtest.On(t, localstack.Database(t))
	_, err := workdb.NewCells(s.cell.DB).Number(t.Context(), 1, 0)
	s.home.Must(err)
	s.Cell = s.cell.DB
	for range 2 {
		s.home.Must(s.Begin(t.Context()))
	}
	if id := s.cell.Number(`select nextval(pg_get_serial_sequence('coupons', 'id'))`); last < 2 || id <= last || id%64 != 2 {
		t.Errorf("the new database draws id %d after %d", id, last)
	}
	if next := s.cell.Number(`select next from code_serials`); next != code+1 || next != 1<<34+501 {
		t.Errorf("the next serial number is %d, the last one was %d", next, code)
	}
}
