package app

import (
	"context"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Claims are the gates of a process, one of each, which decide claims in groups.
type Claims struct {
	Erased    *lookup.Erased
	Templates *lookup.Templates
	// Durable decides in PostgreSQL.
	Durable *couponsdb.Claims
	// Gate decides in Redis, for templates of the mode gate.
	Gate *redisgate.Gate
}

// gateFacts is the data of the gate: facts from the database, and templates from the cache.
type gateFacts struct {
	couponsdb.Gates
	*lookup.Templates
	claims *couponsdb.Claims
}

// Household implements [redisgate.Info]: claims that arrive together share one query.
func (f gateFacts) Household(ctx context.Context, templateID int64, by user.ID) (int64, error) {
	return f.claims.Household(ctx, templateID, by)
}

// NewClaims opens the gates of this process; Close of the App closes them. durable and gate set
// the largest size of groups and observe them. After a drop's shards have been removed, grants
// by staff are decided in PostgreSQL.
func (a *App) NewClaims(templates *lookup.Templates, durable postgres.Grouping, gate redisgate.Options) Claims {
	c := Claims{Erased: a.Erased, Templates: templates, Durable: couponsdb.NewClaims(a.DB, durable)}
	a.OnClose(func() error { c.Durable.Close(); return nil })
	gate.Later, gate.Now = c.Durable, Clock
	c.Gate = redisgate.New(a.Redis, gateFacts{a.Stores.Gates, templates, c.Durable}, gate)
	return c
}

// Others returns the gates that decide instead of the durable gate, by the template's mode.
func (c Claims) Others() map[template.ClaimMode]claim.Gate {
	return map[template.ClaimMode]claim.Gate{template.Gate: c.Gate}
}

// All passes each claim to the gate of its template, so that no coupon is issued without that
// gate. It refuses erased users.
func (c Claims) All() claim.Gate {
	return c.Living(claim.Gates{Templates: c.Templates, Durable: c.Durable, Others: c.Others()})
}

// Living returns gate with a check that refuses erased users.
func (c Claims) Living(gate claim.Gate) claim.Gate {
	return claim.NotErased{Gate: gate, Erased: c.Erased.Has}
}
