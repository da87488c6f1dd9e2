package drops

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// TestAGroupOfAllKinds stores one group in which some reservations are made, some are refused
// for each reason, and some are repeated. The event counts the reservations that were made.
// The result is the same whether a key was assumed to be new or looked up first.
func TestAGroupOfAllKinds(t *testing.T) {
	ctx := t.Context()
	db, err := pg.Open(ctx, localstack.Database(t), pg.Options{AppName: "test", Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(db.Close)
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := db.Pool.Exec(ctx, sql, args...)
		must(t, err)
	}
	// Template 1 has two waiting slots and a fired slot; template 65 has opened.
	rows.Drop{}.Add(t, db.Pool)
	rows.Drop{OpensAt: time.Now().Add(-time.Hour), ClosesAt: time.Now().Add(5 * time.Hour)}.Add(t, db.Pool)
	rows.Fill(t, db.Pool, "slots", "templates, generate_series(1, 3) s", rows.Row{"template_id": rows.SQL("id"), "slot": rows.SQL("s"), "opens_at": rows.SQL("opens_at"),
		"due_at": rows.SQL("opens_at - s * interval '5 minutes'"), "state": rows.SQL("case when s = 3 or id = 65 then 'finished' else 'waiting' end")})
	exec(`insert into reservations (template_id, user_id, slots) values (1, 21, 1), (1, 22, 2), (1, 41, 1)`)
	exec(`insert into idempotency_keys (actor, key, request_hash, locked_until) values ('user:51', 'k', '', 'infinity')`)
	open := reminder.StoredBitmap(0b11 * reminder.EveryChannel)
	bitmap := reminder.StoredBitmap
	once := func(by user.ID) *reminder.Once {
		return &reminder.Once{Actor: "user:" + by.String(), Key: "k", Hash: []byte{1}, Terms: []byte{2}}
	}
	type wanted struct {
		reminder.Change
		decision reminder.Decision
	}
	made := func(template int64, by user.ID, bits, after int64, keyed bool) wanted {
		w := wanted{Change: reminder.Change{TemplateID: template, UserID: by, Bits: bitmap(bits)},
			decision: reminder.Decision{Applied: true, Created: bits == after, After: bitmap(after), Open: open}}
		if keyed {
			w.Once = once(by)
		}
		return w
	}
	refused := func(template int64, by user.ID, bits int64, d reminder.Decision, keyed bool) wanted {
		w := wanted{Change: reminder.Change{TemplateID: template, UserID: by, Bits: bitmap(bits)}, decision: d}
		if keyed {
			w.Once = once(by)
		}
		return w
	}
	plain := []wanted{
		made(1, 11, 1, 1, false), made(1, 22, 1, 3, false), made(1, 12, 2, 2, false), made(1, 13, 2, 2, false),
		refused(1, 21, 1, reminder.Decision{Before: bitmap(1), Open: open}, false),
		refused(1, 14, 4, reminder.Decision{Open: open}, false),
		refused(65, 15, 1, reminder.Decision{Opened: true}, false),
	}
	keyed := []wanted{
		made(1, 31, 1, 1, true), made(1, 32, 3, 3, true), made(1, 33, 3, 3, false),
		refused(1, 41, 1, reminder.Decision{Before: bitmap(1), Open: open}, true),
		refused(65, 42, 1, reminder.Decision{Opened: true}, true),
		refused(1, 51, 1, reminder.Decision{Repeated: true}, true),
	}
	again := []wanted{ // requests with a known key are repeated, all others are decided anew
		refused(1, 31, 1, reminder.Decision{Repeated: true}, true), refused(1, 33, 3, reminder.Decision{Before: bitmap(3), Open: open}, false),
		refused(1, 41, 1, reminder.Decision{Repeated: true}, true), made(1, 34, 1, 1, true),
	}
	r := NewReservations(db, pg.Grouping{})
	t.Cleanup(r.Close)
	for _, c := range []struct {
		name  string
		group []wanted
		sums  []event.Booking
	}{
		{"plain", plain, []event.Booking{{TemplateID: 1, Bits: 1, Users: 2}, {TemplateID: 1, Bits: 2, Users: 2}}},
		{"with keys", keyed, []event.Booking{{TemplateID: 1, Bits: 1, Users: 1}, {TemplateID: 1, Bits: 3, Users: 2}}},
		{"again", again, []event.Booking{{TemplateID: 1, Bits: 1, Users: 1}}},
		{"all made", []wanted{made(1, 61, 1, 1, false), made(1, 62, 1, 1, false)}, []event.Booking{{TemplateID: 1, Bits: 1, Users: 2}}},
		{"none made", []wanted{refused(65, 63, 1, reminder.Decision{Opened: true}, false)}, nil},
	} {
		exec(`delete from outbox`)
		var group []reminder.Change
		for _, w := range c.group {
			group = append(group, w.Change)
		}
		got, err := r.reserveAll(ctx, group)
		must(t, err)
		for i, w := range c.group {
			d := got[i]
			if d.Applied {
				d.Before = w.decision.Before // means nothing then
			}
			if d != w.decision {
				t.Errorf("%s, user %d: %+v, want %+v", c.name, w.UserID, d, w.decision)
			}
		}
		if sums := announcedSums(t, db); !reflect.DeepEqual(sums, c.sums) {
			t.Errorf("%s: announced %v, want %v", c.name, sums, c.sums)
		}
	}
	if left := r.repeats.Load(); left != lookAfterRepeat-1 { // one group with keys came after the known one
		t.Errorf("keys are looked up first for %d more groups", left)
	}
	var stored string
	must(t, db.Pool.QueryRow(ctx, `select string_agg(actor || ' ' || found::text, ', ' order by actor) from idempotency_keys where found is not null`).Scan(&stored))
	if want := fmt.Sprintf("user:31 {3,1,0,%[1]d}, user:32 {3,3,0,%[1]d}, user:34 {3,1,0,%[1]d}, user:41 {0,0,1,%[1]d}, user:42 {4,0,0,0}", open.Int64()); stored != want {
		t.Errorf("with the keys is stored %s, want %s", stored, want)
	}
}

// announcedSums returns the sums of the only event in the outbox, sorted; nil if there is no
// event.
func announcedSums(t *testing.T, db *pg.DB) []event.Booking {
	t.Helper()
	var payloads []string
	must(t, db.Pool.QueryRow(t.Context(), `select coalesce(array_agg(payload::text), '{}') from outbox where topic = $1`, event.ReservationsChanged).Scan(&payloads))
	if len(payloads) == 0 {
		return nil
	}
	var e event.Reservations
	must(t, json.Unmarshal([]byte(payloads[0]), &e))
	if len(payloads) > 1 || e.At.IsZero() {
		t.Errorf("%d events, at %v", len(payloads), e.At)
	}
	slices.SortFunc(e.Added, func(a, b event.Booking) int { return int(a.Bits - b.Bits) })
	return e.Added
}

// TestEachStatementOfAGroup runs the statement for each kind of group with one reservation.
// The listed statements also announce the reservation to a shop's server.
func TestEachStatementOfAGroup(t *testing.T) {
	ctx := t.Context()
	db, err := pg.Open(ctx, localstack.Database(t), pg.Options{AppName: "test", Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(db.Close)
	rows.Insert(t, db.Pool, "slots", rows.Row{"template_id": rows.Drop{}.Add(t, db.Pool)})
	_, err = db.Pool.Exec(ctx, `insert into hook_listeners (shop_number, listener, until) values (10, 'x', now() + interval '1 hour')`)
	must(t, err)
	r := NewReservations(db, pg.Grouping{})
	t.Cleanup(r.Close)
	by := user.ID(0)
	for kind, sql := range reserveSQL {
		by++
		c := reminder.Change{TemplateID: 1, UserID: by, Bits: reminder.StoredBitmap(1)}
		args := []any{[]int64{1}, []int64{int64(by)}, []int64{1}, reminder.EveryChannel, []int64{1}, `[]`, ""}
		if kind.keys != none {
			c.Once = &reminder.Once{Actor: "user:" + by.String(), Key: "k", Hash: []byte{1}}
			args = append(args, keysOf([]reminder.Change{c})...)
		}
		if kind.doors {
			args = append(args, []int16{0})
		}
		d, err := r.reserveWith(ctx, sql, []reminder.Change{c}, args)
		if err != nil || !d[0].Applied {
			t.Errorf("%+v: %+v %v", kind, d, err)
		}
		var keys, lists int
		must(t, db.Pool.QueryRow(ctx, `select (select count(*) from idempotency_keys where actor = $1), (select count(*) from outbox
			where topic = $2 and payload @> jsonb_build_object('items', jsonb_build_array(jsonb_build_object('user_id', $3::text))))`,
			"user:"+by.String(), event.ReservationsListed, by.String()).Scan(&keys, &lists))
		if (keys == 1) != (kind.keys != none) || (lists == 1) != kind.listed {
			t.Errorf("%+v: %d keys, %d lists", kind, keys, lists)
		}
	}
}
