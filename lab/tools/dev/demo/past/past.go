// Package past gives the demo a history: drops and campaigns of eight weeks and the drops of the year before, with the rows that
// the product would have stored and counted by the product's own functions where it counts. All
// of it follows from a fixed seed and the instant at which the demo data was begun.
package past

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres"
	"dropbell/app"
	"dropbell/domain/staff"
	"dropbell/lab/tools/dev/demo"
)

// seed is part of the seed of every step; another seed is another history.
const seed = 41

// Config has the settings of a history.
type Config struct {
	DatabaseURL   string
	ProvidersKeys []string // encrypt the secrets of providers
	// First and Last are the ids of the demo's users, which must be stored.
	First, Last int64
}

// history is a history that is being made.
type history struct {
	Config
	db     *postgres.DB
	now    time.Time // when the demo data was begun
	zone   *time.Location
	people []person
	// admin and marketer are the two members, as in the audit log; actor is the admin.
	admin, marketer string
	actor           staff.Actor
}

// person is a user, as far as the history depends on it.
type person struct {
	id      int64
	optOuts int16
	email   string
	phone   string
	devices bool
	since   time.Time
}

// Make stores the parts of the history that are not stored yet. Each drop is one transaction.
func Make(ctx context.Context, steps *demo.Steps, begun time.Time, c Config) error {
	db, err := postgres.Open(ctx, c.DatabaseURL, postgres.Options{AppName: "dropbell-demo"})
	if err != nil {
		return err
	}
	defer db.Close()
	h := &history{Config: c, db: db, now: begun.Truncate(time.Minute), zone: time.FixedZone("CST", 8*3600)}
	for _, s := range []struct {
		name string
		do   func(context.Context, pgx.Tx) error
	}{{"people", h.storePeople}, {"provider", h.storeProvider}} {
		if err := steps.Once(ctx, "past: "+s.name, s.do); err != nil {
			return err
		}
	}
	if err := errors.Join(h.readPeople(ctx, h.db.Pool), h.readStaff(ctx)); err != nil {
		return err
	}
	for _, d := range drops() {
		if err := steps.Once(ctx, "past: "+d.Key, func(ctx context.Context, tx pgx.Tx) error { return h.storeDrop(ctx, tx, d) }); err != nil {
			return err
		}
	}
	return steps.Once(ctx, "past: figures", func(ctx context.Context, tx pgx.Tx) error {
		for _, part := range []func(context.Context, pgx.Tx) error{h.storeAlerts, h.count, h.testProvider} {
			if err := part(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// random returns the random numbers of a part of the history.
func random(part string) *rand.Rand {
	f := fnv.New64a()
	_, _ = f.Write([]byte(part)) // a hash never fails
	return rand.New(rand.NewPCG(seed, f.Sum64()))
}

// readPeople reads the users in the order of their ids.
func (h *history) readPeople(ctx context.Context, from interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}) error {
	rows, err := from.Query(ctx, `select id, opt_outs, email, phone, devices <> '[]', created_at from users where id between $1 and $2 order by id`, h.First, h.Last)
	if err != nil {
		return err
	}
	h.people, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p person, err error) {
		return p, row.Scan(&p.id, &p.optOuts, &p.email, &p.phone, &p.devices, &p.since)
	})
	if err == nil && len(h.people) == 0 {
		err = fmt.Errorf("there are no users from %d to %d", h.First, h.Last)
	}
	return err
}

// count derives figures from the rows, with the functions by which a worker corrects them.
func (h *history) count(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `select id from templates where request_key like 'demo: %' order by id`)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	stores := app.NewStores(h.db)
	for _, id := range ids {
		for _, figure := range stores.Figures() {
			if _, err := figure.Recount(ctx, id); err != nil {
				return err
			}
		}
	}
	if err := stores.DeadLetters.RecountDeadLetters(ctx); err != nil {
		return err
	}
	for {
		if more, err := stores.Campaigns.CountNext(ctx); err != nil || !more {
			return err
		}
	}
}

// nextIDs draws n ids of a table.
func nextIDs(ctx context.Context, tx pgx.Tx, table string, n int) ([]int64, error) {
	rows, err := tx.Query(ctx, `select nextval(pg_get_serial_sequence($1, 'id')) from generate_series(1, $2)`, table, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// table collects rows that are copied together.
type table struct {
	name    string
	columns []string
	rows    [][]any
}

func (t *table) add(values ...any) { t.rows = append(t.rows, values) }

// store copies the rows of the tables, in their order.
func store(ctx context.Context, tx pgx.Tx, tables ...*table) error {
	for _, t := range tables {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}
