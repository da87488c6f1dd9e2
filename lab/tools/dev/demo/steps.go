package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Steps remembers in the database which parts of the demo data are stored, so that a start that
// was killed is completed by the next one and a complete one adds nothing. Its table is in a
// schema of its own, apart from the product's tables.
type Steps struct{ conn *pgx.Conn }

// OpenSteps connects to the database at url. Close the steps after use.
func OpenSteps(ctx context.Context, url string) (*Steps, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect for the demo data: %w", err)
	}
	return &Steps{conn}, nil
}

// Close ends the connection.
func (s *Steps) Close(ctx context.Context) error { return s.conn.Close(ctx) }

// Begun returns the instant at which the demo data of this database was begun; instants of the
// demo data are relative to it. ok is false if the database has data of other origin.
func (s *Steps) Begun(ctx context.Context) (at time.Time, ok bool, err error) {
	err = s.conn.QueryRow(ctx, `select to_regclass('demo.steps') is not null`).Scan(&ok)
	if err != nil || !ok {
		return at, false, err
	}
	err = s.conn.QueryRow(ctx, `select at from demo.steps where name = 'begun'`).Scan(&at)
	return at, true, err
}

// Begin marks the empty database as one for demo data, and returns the instant.
func (s *Steps) Begin(ctx context.Context) (at time.Time, err error) {
	_, err = s.conn.Exec(ctx, `create schema demo;
		create table demo.steps (name text primary key, at timestamptz not null default now());
		insert into demo.steps (name) values ('begun')`) // one transaction
	if err != nil {
		return at, err
	}
	at, _, err = s.Begun(ctx)
	return at, err
}

// Once calls do unless the step was completed before. The rows that do stores with tx are
// committed together with the completion.
func (s *Steps) Once(ctx context.Context, name string, do func(ctx context.Context, tx pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, `insert into demo.steps (name) values ($1) on conflict do nothing`, name)
		if err != nil || done.RowsAffected() == 0 {
			return err
		}
		return do(ctx, tx)
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("demo data, %s: %w", name, err)
	}
	return err
}
