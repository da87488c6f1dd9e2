// Package migrations holds the database's history: forward-only steps, each
// safe to apply while the previous version of the programs still runs.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the "pgx" driver
	"github.com/pressly/goose/v3"
)

// FS holds the SQL steps in the order of their numbers.
//
//go:embed *.sql
var FS embed.FS

// Up applies every step that the database at url lacks. Several processes may
// call it at once: a session lock lets one work while the others wait.
func Up(ctx context.Context, url string) error {
	_, err := UpTelling(ctx, url, func(string) {})
	return err
}

// UpTelling does what [Up] does, tells a line about each thing that may take
// long, and returns how many steps it applied, which others may have done too.
func UpTelling(ctx context.Context, url string, tell func(line string)) (applied int, err error) {
	session := &teller{tell: tell}
	err = with(url, func(p *goose.Provider) error {
		session.sources = p.ListSources()
		for {
			done, err := p.UpByOne(ctx)
			if errors.Is(err, goose.ErrNoNextVersion) {
				return nil
			}
			if err != nil {
				return err
			}
			applied++
			tell(fmt.Sprintf("migration %s is done after %s", path.Base(done.Source.Path), done.Duration.Round(time.Millisecond)))
		}
	}, goose.WithSessionLocker(session))
	return applied, err
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
