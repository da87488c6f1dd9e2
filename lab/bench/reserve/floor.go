package reserve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/web/api/drops"
	"dropbell/web/middleware"
)

// floorGroup is how many reservations one statement of the floor stores at most. floorWriters is
// how many such statements run at the same time.
const (
	floorGroup   = 256
	floorWriters = 2
)

// A floor is the least work of a server made of net/http and PostgreSQL that stores a
// reservation before it answers. Its handler is the bare handler; it waits until a bare upsert
// has stored the row together with the rows of other waiting requests. It uses the product's
// connections, which avoid net/http's deadlines and background reads. It has no tokens, limits,
// rules, slots or events, and its answer does not follow from the row. With keys it also stores
// the row of each idempotency key, and compares no repetition with it.
type floor struct {
	pool    *pgxpool.Pool
	keyed   bool
	waiting chan *floorRow
	next    atomic.Int64
}

type floorRow struct {
	template, user, bits int64
	key                  string
	stored               chan error
}

var floorRows = sync.Pool{New: func() any { return &floorRow{stored: make(chan error, 1)} }}

// newFloor returns the floor's handler, and the function that ends it.
func newFloor(ctx context.Context, keyed bool) (http.Handler, func(), error) {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, nil, err
	}
	f := &floor{pool: pool, keyed: keyed, waiting: make(chan *floorRow, 1<<14)}
	ctx, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for range floorWriters {
		writers.Go(func() { f.write(ctx) })
	}
	router := chi.NewRouter()
	router.Post("/reservations", f.reserve)
	return router, func() { stop(); writers.Wait(); pool.Close() }, nil
}

// reserve is [bare] that waits for its row. Users and reminders are counted in the same order as
// in the load.
func (f *floor) reserve(w http.ResponseWriter, r *http.Request) {
	middleware.Unwatched(r.Context())
	var wish drops.ReservationWish
	if err := json.NewDecoder(r.Body).Decode(&wish); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	template, err := strconv.ParseInt(wish.TemplateID, 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	i := f.next.Add(1) - 1
	row := floorRows.Get().(*floorRow)
	row.template, row.user, row.bits = template, i%benchUsers+1, 1<<(i/benchUsers%60)
	if row.key = ""; f.keyed {
		row.key = r.Header.Get("Idempotency-Key")
	}
	f.waiting <- row
	err = <-row.stored
	floorRows.Put(row)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, wish)
}

const (
	floorUpsert = `insert into reservations as r (template_id, user_id, slots)
		select t, u, b from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as a (t, u, b) order by u
		on conflict (template_id, user_id) do update set slots = r.slots | excluded.slots, updated_at = now()`
	// The rows of keys have the columns, and about the size, of the key rows that the product
	// stores.
	floorKeyed = `with stored as (` + floorUpsert + `)
		insert into idempotency_keys (actor, key, request_hash, locked_until, known, found)
		select 'user:' || u, k, decode(repeat('ab', 32), 'hex'), 'infinity', decode(repeat('ab', 40), 'hex'), array[1, 1, 0, 1]
		from unnest($2::bigint[], $4::text[]) as a (u, k) order by 1, 2`
)

// write stores the waiting reservations in groups until ctx ends.
func (f *floor) write(ctx context.Context) {
	group := make([]*floorRow, 0, floorGroup)
	templates, users, bits := make([]int64, 0, floorGroup), make([]int64, 0, floorGroup), make([]int64, 0, floorGroup)
	keys := make([]string, 0, floorGroup)
	for {
		group, templates, users, bits, keys = group[:0], templates[:0], users[:0], bits[:0], keys[:0]
		select {
		case row := <-f.waiting:
			group = append(group, row)
		case <-ctx.Done():
			return
		}
	fill:
		for len(group) < floorGroup {
			select {
			case row := <-f.waiting:
				group = append(group, row)
			default:
				break fill
			}
		}
		for _, row := range group {
			templates, users, bits = append(templates, row.template), append(users, row.user), append(bits, row.bits)
			keys = append(keys, row.key)
		}
		sql, args := floorUpsert, []any{templates, users, bits}
		if f.keyed {
			sql, args = floorKeyed, append(args, keys)
		}
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		tag, err := f.pool.Exec(call, sql, args...)
		cancel()
		if err == nil && tag.RowsAffected() != int64(len(group)) {
			err = errors.New("not every row was stored")
		}
		for _, row := range group {
			row.stored <- err
		}
	}
}
