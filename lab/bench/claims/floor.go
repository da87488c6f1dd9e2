package claims

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/domain/claim"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
)

// insertSQL is the bare insert of a group's coupons together with the counts of their users. $1
// is the template, $2 the users, $3 the claims, $4 the keys.
const insertSQL = `
with counted as (
	insert into claim_counts (template_id, user_id, issued) select $1, u, 1 from unnest($2::bigint[]) u
)
insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
select $1, u, c, 'claim', k, now(), now() + interval '1 day' from unnest($2::bigint[], $3::bigint[], $4::text[]) as a (u, c, k)`

// floorGroup is how many coupons one statement of the floor without HTTP inserts.
const floorGroup = 256

// The groups of an [insertingGate] have at most the size of the product's groups, and as many
// run at the same time.
const (
	insertedGroup = 512
	inserters     = 2
)

// floor measures the least work of a group: it inserts 256 coupons with their counts, in two
// concurrent groups, without deciding, locking or answering.
func (b *bench) floor(ctx context.Context) (result, error) {
	w, err := scenario.Drive(2, b.lasting, func(i int64) error { return b.insert(ctx, (i-1)*floorGroup) })
	if err != nil {
		return result{}, err
	}
	return result{perSecond: floorGroup * w.PerSecond}, b.count(ctx)
}

// count sets the template's stock to the number of its coupons, so that the audit passes. The
// floors do not keep the stock.
func (b *bench) count(ctx context.Context) error {
	_, err := b.SQL.Exec(ctx, `update templates set issued = (select count(*) from coupons where template_id = $1) where id = $1`, b.template)
	return err
}

func (b *bench) insert(ctx context.Context, after int64) error {
	users, ids, keys := make([]int64, floorGroup), make([]int64, floorGroup), make([]string, floorGroup)
	for i := range users {
		users[i], ids[i] = after+int64(i)+1, int64(claim.NewID(rand.Uint64(), 0))
		keys[i] = claim.TapKey(user.ID(users[i]), "k")
	}
	_, err := b.SQL.Exec(ctx, insertSQL, b.template, users, ids, keys)
	return err
}

// An insertingGate grants every claim. It answers once a bare insert has stored the claim's
// coupon together with the coupons of other waiting claims. A server with it does the least work
// of a server that stores a claim before it answers.
type insertingGate struct {
	pool    *pgxpool.Pool
	waiting chan *insertedRow
}

type insertedRow struct {
	request claim.Request
	stored  chan error
}

var insertedRows = sync.Pool{New: func() any { return &insertedRow{stored: make(chan error, 1)} }}

// newInsertingGate returns a gate that stores groups until ctx ends.
func newInsertingGate(ctx context.Context, pool *pgxpool.Pool) *insertingGate {
	g := &insertingGate{pool, make(chan *insertedRow, 1<<14)}
	for range inserters {
		go g.write(ctx)
	}
	return g
}

func (g *insertingGate) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	row := insertedRows.Get().(*insertedRow)
	row.request = r
	g.waiting <- row
	err := <-row.stored
	insertedRows.Put(row)
	if err != nil {
		return claim.Claim{}, err
	}
	return acceptingGate{}.Claim(ctx, r)
}

func (g *insertingGate) write(ctx context.Context) {
	group := make([]*insertedRow, 0, insertedGroup)
	users, ids, keys := make([]int64, 0, insertedGroup), make([]int64, 0, insertedGroup), make([]string, 0, insertedGroup)
	for {
		group, users, ids, keys = group[:0], users[:0], ids[:0], keys[:0]
		select {
		case row := <-g.waiting:
			group = append(group, row)
		case <-ctx.Done():
			return
		}
	fill:
		for len(group) < insertedGroup {
			select {
			case row := <-g.waiting:
				group = append(group, row)
			default:
				break fill
			}
		}
		for _, row := range group {
			users, ids, keys = append(users, int64(row.request.UserID)), append(ids, int64(row.request.ID)), append(keys, row.request.Key)
		}
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := g.pool.Exec(call, insertSQL, group[0].request.TemplateID, users, ids, keys)
		cancel()
		for _, row := range group {
			row.stored <- err
		}
	}
}
