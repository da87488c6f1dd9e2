// Package postgres opens the database, which keeps everything that must not be lost. The
// packages below it are its stores, one per subject. Statements are next to the methods that run
// them. Code that the stores share, from the pool to the audit log, is in internal/pg.
package postgres

import (
	"context"
	"time"

	"dropbell/adapters/postgres/internal/pg"
)

// ErrUnavailable is returned when the database cannot be reached or cannot
// answer now; the same call may succeed later.
var ErrUnavailable = pg.ErrUnavailable

// ErrQueueFull is returned when a store's queue for group commit is full.
var ErrQueueFull = pg.ErrQueueFull

type (
	// DB is a pool of connections to one database.
	DB = pg.DB
	// Options tune a pool.
	Options = pg.Options
	// Replica is a standby that reports are read from.
	Replica = pg.Replica
	// Reading is one request whose reports may be read from a replica.
	Reading = pg.Reading
	// Position is a place in the log of the primary.
	Position = pg.Position
	// Grouping tunes group commit. The zero value has the settings that performed best in
	// measurements.
	Grouping = pg.Grouping
	// Question is whether a sweep may have something to do; see [DB.Ask].
	Question = pg.Question
)

// Open returns a pool for url. It does not wait for the database to be
// reachable; see [DB.Ping].
func Open(ctx context.Context, url string, o Options) (*DB, error) { return pg.Open(ctx, url, o) }

// Everywhere is behind every position: no replica has replayed it.
const Everywhere = pg.Everywhere

// ParsePosition reads a position as [Position.String] writes it.
func ParsePosition(s string) (Position, error) { return pg.ParsePosition(s) }

// OpenReplica returns the replica at url of the database primary. Reports are read from the
// replica while its lag is at most most. OpenReplica does not connect; see [Replica.Watch].
func OpenReplica(ctx context.Context, primary *DB, url string, most time.Duration, o Options) (*Replica, error) {
	return pg.OpenReplica(ctx, primary, url, most, o)
}

// HasSessions reports whether the connection to url keeps its session, which it does not behind
// a pooler in transaction mode, as far as that can be determined.
func HasSessions(ctx context.Context, url string) (bool, error) { return pg.HasSessions(ctx, url) }

// LimitCalls returns a context in which each call to the database ends after d. A call is the
// wait for a connection, or a statement or batch. Work that must not end so early needs a
// context of its own.
func LimitCalls(ctx context.Context, d time.Duration) context.Context { return pg.LimitCalls(ctx, d) }
