// Package migrations holds the database's history: forward-only steps, each
// safe to apply while the previous version of the programs still runs. Those
// that are not, because they take away what it needs (*_contract.sql), wait
// until it is gone: https://martinfowler.com/bliki/ParallelChange.html.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the "pgx" driver
	"github.com/pressly/goose/v3"
)

// FS holds the SQL steps in the order of their numbers.
//
//go:embed *.sql
var FS embed.FS

// Up applies every step that the database at url lacks, for who knows that no
// other version uses it. Several processes may call it at once: a session lock
// lets one work while the others wait.
func Up(ctx context.Context, url string) error {
	_, err := UpTelling(ctx, url, true, func(string) {})
	return err
}

// UpTelling does what [Up] does, tells a line about each thing that may take
// long, and returns how many steps it applied, which others may have done too.
// Unless contract is true it leaves out those that [Contracting] returns,
// except in an empty database, which nobody uses.
func UpTelling(ctx context.Context, url string, contract bool, tell func(line string)) (applied int, err error) {
	var leave []string
	if !contract {
		if leave, err = waiting(ctx, url); err != nil {
			return 0, err
		}
	}
	session := &teller{tell: tell}
	err = with(url, func(p *goose.Provider) error {
		session.sources = p.ListSources()
		for {
			done, err := p.UpByOne(ctx)
			if errors.Is(err, goose.ErrNoNextVersion) {
				return nil
			}
			if lockNotAvailable(err) {
				tell("a migration waits for a table that a transaction uses; it lets others go first and tries again")
				if err := pause(ctx); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
			applied++
			tell(fmt.Sprintf("migration %s is done after %s", path.Base(done.Source.Path), done.Duration.Round(time.Millisecond)))
		}
	}, goose.WithSessionLocker(session), goose.WithExcludeNames(leave))
	return applied, err
}

// lockNotAvailable reports whether a step gave up waiting for a lock, so that
// statements behind it in the queue for the table can go on.
func lockNotAvailable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "55P03"
}

// pause waits before the next attempt.
func pause(ctx context.Context) error {
	again := time.NewTimer(askEvery)
	defer again.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for a lock of a migration: %w", ctx.Err())
	case <-again.C:
		return nil
	}
}

// waiting returns the steps that are to be left out.
func waiting(ctx context.Context, url string) ([]string, error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, fmt.Errorf("open database for migration: %w", err)
	}
	defer db.Close()
	var used bool
	err = db.QueryRowContext(ctx, `select to_regclass('goose_db_version') is not null`).Scan(&used)
	if err != nil || !used {
		return nil, err
	}
	return Contracting()
}

// Contracting returns the names of the steps at the end that take away what
// the previous version of the programs needs. Those before others belong to an
// earlier version, whose predecessor is gone.
func Contracting() ([]string, error) {
	names, err := fs.Glob(FS, "*.sql") // sorted
	first := len(names)
	for first > 0 && strings.HasSuffix(names[first-1], "_contract.sql") {
		first--
	}
	return names[first:], err
}

// Version returns the number of the newest step the database at url has.
func Version(ctx context.Context, url string) (int64, error) {
	var version int64
	err := with(url, func(p *goose.Provider) (err error) {
		version, err = p.GetDBVersion(ctx)
		return err
	})
	return version, err
}

// Latest returns the number of the newest step that this program needs: those
// that [Contracting] returns may be missing.
func Latest() (int64, error) {
	leave, err := Contracting()
	if err != nil {
		return 0, err
	}
	return newest(leave)
}

// Newest returns the number of the newest step this program knows.
func Newest() (int64, error) { return newest(nil) }

func newest(leave []string) (number int64, err error) {
	err = with("", func(p *goose.Provider) error {
		for _, s := range p.ListSources() {
			number = max(number, s.Version)
		}
		return nil
	}, goose.WithExcludeNames(leave))
	return number, err
}

func with(url string, do func(*goose.Provider) error, options ...goose.ProviderOption) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("open database for migration: %w", err)
	}
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, FS, options...)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return do(p)
}
