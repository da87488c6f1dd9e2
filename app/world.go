package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
)

// A World is the world of a rehearsal: the stores of a schema of its own. None of their statements reaches a real drop.
type World struct {
	ID     int64
	DB     *postgres.DB
	Stores Stores
}

// worldConns is how many connections a process opens to a world.
const worldConns = 8

// WorldURL returns the address of the database with sessions of the server, in which worlds are made.
func WorldURL(cfg config.Config) string { return cmp.Or(cfg.SessionURL, cfg.DatabaseURL) }

// OpenWorld opens the world of a rehearsal. It returns an error if the world is not there, or if the connections do not keep to it, as those of
// a pooler that ignores search_path.
func OpenWorld(ctx context.Context, cfg config.Config, log *slog.Logger, id int64) (*World, error) {
	db, err := postgres.Open(ctx, dropsdb.WorldURL(WorldURL(cfg), id), postgres.Options{MaxConns: worldConns, AppName: "dropbell-rehearsal", Log: log})
	if err != nil {
		return nil, err
	}
	w := &World{ID: id, DB: db, Stores: NewStores(db)}
	schema, err := w.Stores.Rehearsals.Schema(ctx)
	if err == nil && schema != dropsdb.WorldSchema(id) {
		err = fmt.Errorf("the connection is in the schema %q and not in that of rehearsal %d; set DATABASE_SESSION_URL to the address of the server itself", schema, id)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return w, nil
}

// Close closes the world's connections.
func (w *World) Close() { w.DB.Close() }
