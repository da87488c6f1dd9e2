package coupons

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/domain/user"
)

// Carts reads the coupons of users for carts. Calls that come at the same time share a statement, since
// a statement costs more than the rows of a user.
type Carts struct {
	db     *pg.DB
	groups *pg.Committer[user.ID, owner, ownedRows]
}

// owner is the question for the coupons only of a user, or for the newest unused coupons, at most limit.
type owner struct {
	user  user.ID
	only  []int64
	limit int
}

// ownedRows are the answer to an owner. now is the database's clock.
type ownedRows struct {
	list []cart.Owned
	now  time.Time
}

// NewCarts returns the carts of db.
func NewCarts(db *pg.DB, g pg.Grouping) *Carts {
	s := &Carts{db: db}
	cfg := g.Config(db)
	cfg.Name = "coupons of a cart"
	s.groups = pg.NewCommitter[user.ID](cfg, nil, s.read)
	return s
}

// Close answers everything that was accepted and stops.
func (s *Carts) Close() { s.groups.Close() }

// Owned reads the coupons of a user for a cart; see [cart.Store].
func (s *Carts) Owned(ctx context.Context, u user.ID, only []int64, limit int) ([]cart.Owned, time.Time, error) {
	rows, err := s.groups.Do(ctx, owner{u, only, limit})
	return rows.list, rows.now, err
}

// Each statement begins with the place of the owner in the group.
const (
	ownedColumnsOfCarts = `c.id, c.template_id, c.state, c.expires_at, clock_timestamp()`

	// unusedSQL returns the newest unused coupons of the users $1, of each as many as $2 says.
	unusedSQL = `
select a.i, ` + ownedColumnsOfCarts + `
from unnest($1::bigint[], $2::int[]) with ordinality a (user_id, most, i),
    lateral (select id, template_id, state, expires_at from coupons where user_id = a.user_id
        and state = 'unused' and expires_at > statement_timestamp() order by id desc limit a.most) c`

	// namedSQL returns the coupons $2 that belong to the users $3 at the same places. It reads each by
	// its primary key, see [casesSQL].
	namedSQL = `
select a.i, ` + ownedColumnsOfCarts + `
from unnest($1::bigint[], $2::bigint[], $3::bigint[]) a (i, id, user_id),
    lateral (select * from coupons where id between a.id and a.id order by id limit 1) c
where c.user_id = a.user_id`
)

func (s *Carts) read(ctx context.Context, group []owner) ([]ownedRows, error) {
	found := make([]ownedRows, len(group))
	users, most := make([]user.ID, len(group)), make([]int, len(group))
	var places, ids []int64
	var owners []user.ID
	for i, o := range group {
		if users[i] = o.user; len(o.only) == 0 {
			most[i] = o.limit
		}
		for _, id := range o.only {
			places, ids, owners = append(places, int64(i+1)), append(ids, id), append(owners, o.user)
		}
	}
	read := func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			var place int
			var c coupon.Coupon
			var now time.Time
			if err := rows.Scan(&place, &c.ID, &c.TemplateID, &c.State, &c.ExpiresAt, &now); err != nil {
				return err
			}
			of := &found[place-1]
			of.now = now
			of.list = append(of.list, cart.Owned{ID: c.ID, TemplateID: c.TemplateID, State: c.At(now), ExpiresAt: c.ExpiresAt.UnixMicro()})
		}
		return rows.Err()
	}
	reads := []pg.Read{{SQL: unusedSQL, Args: []any{users, most}, Rows: read}}
	if len(ids) > 0 {
		reads = append(reads, pg.Read{SQL: namedSQL, Args: []any{places, ids, owners}, Rows: read})
	}
	return found, pg.Translate(s.db.PlannedTogether(ctx, reads...))
}
