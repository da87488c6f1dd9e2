// Package migrations holds the database's history: forward-only steps, each
// safe to apply while the previous version of the programs still runs.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the "pgx" driver
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// FS holds the SQL steps in the order of their numbers.
//
//go:embed *.sql
var FS embed.FS

// Up applies every step that the database at url lacks. Several processes may
// call it at once: a session lock lets one work while the others wait.
func Up(ctx context.Context, url string) error {
	return with(url, func(p *goose.Provider) error {
		_, err := p.Up(ctx)
		return err
	})
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

// Latest returns the number of the newest step this program knows.
func Latest() (int64, error) {
	var latest int64
	db, err := sql.Open("pgx", "")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, FS)
	if err != nil {
		return 0, err
	}
	for _, s := range p.ListSources() {
		latest = max(latest, s.Version)
	}
	return latest, nil
}

func with(url string, do func(*goose.Provider) error) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("open database for migration: %w", err)
	}
	defer db.Close()
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, FS, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return do(p)
}
