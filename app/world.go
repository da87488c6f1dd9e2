package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/rehearsal"
	"dropbell/domain/template"
	"dropbell/domain/user"
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

// WorldClaims decide the claims of a world.
type WorldClaims struct {
	// Doors is where taps go: the doors and the gate of the drop. Members are those of the doors.
	Doors claim.Doors
	// Gate decides claims that pass no door, such as those of winners of a draw.
	Gate    claim.Gate
	Durable *couponsdb.Claims
	// Redis is the claim gate of drops that have it. Its keys have the number of the copy.
	Redis     *redisgate.Gate
	Templates *lookup.Templates
}

// Claims opens the gates of claims of the world. Close Durable.
func (w *World) Claims(client goredis.UniversalClient, g postgres.Grouping) (c WorldClaims, err error) {
	if c.Templates, err = lookup.New(w.Stores.Templates, Clock); err != nil {
		return c, err
	}
	c.Durable = couponsdb.NewClaims(w.DB, g)
	gates := claim.Gates{Templates: c.Templates, Durable: c.Durable}
	if client != nil {
		c.Redis = redisgate.New(client, gateFacts{w.Stores.Gates, c.Templates, c.Durable}, redisgate.Options{Later: c.Durable, Now: Clock, Silent: true})
		gates.Others = map[template.ClaimMode]claim.Gate{template.Gate: c.Redis}
	}
	c.Gate = gates
	c.Doors = claim.Doors{Gate: gates, Templates: c.Templates, Members: rehearsal.Crowd{}, Now: Clock}
	return c, nil
}

// Tap claims a coupon of the world's drop for a user, as the app of a shop does.
func (c WorldClaims) Tap(ctx context.Context, id int64, by user.ID, key string) error {
	_, err := c.Doors.Claim(ctx, claim.Request{ID: claim.NewID(rand.Uint64(), id), TemplateID: id, UserID: by, Origin: claim.ByTap, Key: claim.TapKey(by, key)})
	return err
}

// Close closes the world's connections.
func (w *World) Close() { w.DB.Close() }
