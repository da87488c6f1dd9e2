// Package migrations holds the database's schema of the first release and the steps
// that followed. The steps are forward-only. Each is safe to apply while the
// previous version of the programs still runs, except steps that take away what
// that version needs (*_contract.sql); these wait until that version is gone:
// https://martinfowler.com/bliki/ParallelChange.html.
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

//go:embed *.sql
var released embed.FS

// Released are the steps of this version.
var Released = Steps{FS: released}

// Oldest is the number of the oldest step from which a database may be upgraded:
// the schema of release 0.1.0. It is the number of the last step before the
// release.
const Oldest = 136

// ErrTooOld is the error for a database that is older than [Oldest]. Its rows are
// not changed; use an empty database instead.
var ErrTooOld = errors.New("the database was made before release 0.1.0 and cannot be upgraded; use an empty database")

// Steps are SQL files in the order of the numbers that their names begin with.
type Steps struct{ FS fs.FS }

// Up applies [Released]; see [Steps.UpTelling].
func Up(ctx context.Context, url string) error {
	_, err := Released.UpTelling(ctx, url, true, func(string) {})
	return err
}

// UpTelling applies every step that the database at url lacks, and returns how many
// steps it applied. It calls tell with a line before each operation that may take
// long. Several processes may call it at once: a session lock lets one process work
// while the others wait, so a process may find its steps applied by another
// process. contract says that no other version uses the database. Without it
// UpTelling leaves out the steps that [Steps.Contracting] returns, except in an
// empty database. The error is [ErrTooOld] for a database that cannot be upgraded.
func (s Steps) UpTelling(ctx context.Context, url string, contract bool, tell func(line string)) (applied int, err error) {
	var leave []string
	used, err := inUse(ctx, url)
	if err == nil && used && !contract {
		leave, err = s.Contracting()
	}
	if err != nil {
		return 0, err
	}
	session := &reportingLock{files: s.FS, tell: tell}
	err = s.with(url, func(p *goose.Provider) error {
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
// statements queued behind the step can run.
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

// inUse reports whether the database at url has steps already.
func inUse(ctx context.Context, url string) (yes bool, err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return false, fmt.Errorf("open database for migration: %w", err)
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, `select to_regclass('goose_db_version') is not null`).Scan(&yes); err != nil || !yes {
		return false, err
	}
	var version int64
	if err := db.QueryRowContext(ctx, `select coalesce(max(version_id), 0) from goose_db_version where is_applied`).Scan(&version); err != nil {
		return false, err
	}
	if version > 0 && version < Oldest {
		return true, fmt.Errorf("migration %d: %w", version, ErrTooOld)
	}
	return version > 0, nil
}

// Contracting returns the names of the last steps that take away what the previous
// version of the programs needs. Such steps before other steps belong to an earlier
// version, whose predecessor is gone.
func (s Steps) Contracting() ([]string, error) {
	names, err := fs.Glob(s.FS, "*.sql") // sorted
	first := len(names)
	for first > 0 && strings.HasSuffix(names[first-1], "_contract.sql") {
		first--
	}
	return names[first:], err
}

// Version returns the number of the newest step the database at url has.
func (s Steps) Version(ctx context.Context, url string) (int64, error) {
	var version int64
	err := s.with(url, func(p *goose.Provider) (err error) {
		version, err = p.GetDBVersion(ctx)
		return err
	})
	return version, err
}

// Latest returns the number of the newest step that this program needs. The steps
// that [Steps.Contracting] returns may be missing.
func (s Steps) Latest() (int64, error) {
	leave, err := s.Contracting()
	if err != nil {
		return 0, err
	}
	return s.newest(leave)
}

// Newest returns the number of the newest step of this program.
func (s Steps) Newest() (int64, error) { return s.newest(nil) }

func (s Steps) newest(leave []string) (number int64, err error) {
	err = s.with("", func(p *goose.Provider) error {
		for _, step := range p.ListSources() {
			number = max(number, step.Version)
		}
		return nil
	}, goose.WithExcludeNames(leave))
	return number, err
}

func (s Steps) with(url string, do func(*goose.Provider) error, options ...goose.ProviderOption) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("open database for migration: %w", err)
	}
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, s.FS, options...)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return do(p)
}
