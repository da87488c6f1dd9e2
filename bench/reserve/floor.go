package main

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

	"dropbell/web/api"
)

// floorGroup is how many reservations one statement of the floor stores at most, and
// floorWriters how many are under way.
const (
	floorGroup   = 256
	floorWriters = 2
)

// A floor is the least that a server made of net/http and PostgreSQL does for a
// reservation that is stored when it is answered: the bare handler, which waits until a
// bare upsert has stored its row with those of the other requests that wait. It has no
// tokens, limits, rules, slots, events, or answers that follow from the row.
type floor struct {
	pool    *pgxpool.Pool
	waiting chan *floorRow
	next    atomic.Int64
}

type floorRow struct {
	template, user, bits int64
	stored               chan error
}

var floorRows = sync.Pool{New: func() any { return &floorRow{stored: make(chan error, 1)} }}

// newFloor returns the floor's handler, and the function that ends it.
func newFloor(ctx context.Context) (http.Handler, func(), error) {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, nil, err
	}
	f := &floor{pool: pool, waiting: make(chan *floorRow, 1<<14)}
	ctx, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for range floorWriters {
		writers.Go(func() { f.write(ctx) })
	}
	router := chi.NewRouter()
	router.Post("/reservations", f.reserve)
	return router, func() { stop(); writers.Wait(); pool.Close() }, nil
}

// reserve is [bare] that waits for its row. Users and reminders are counted, as those of
// the load are.
func (f *floor) reserve(w http.ResponseWriter, r *http.Request) {
	var wish api.ReservationWish
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
	f.waiting <- row
	err = <-row.stored
	floorRows.Put(row)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, wish)
}

// write stores what waits in groups until ctx ends.
func (f *floor) write(ctx context.Context) {
	group := make([]*floorRow, 0, floorGroup)
	templates, users, bits := make([]int64, 0, floorGroup), make([]int64, 0, floorGroup), make([]int64, 0, floorGroup)
	for {
		group, templates, users, bits = group[:0], templates[:0], users[:0], bits[:0]
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
		}
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		tag, err := f.pool.Exec(call, `insert into reservations as r (template_id, user_id, slots)
			select t, u, b from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as a (t, u, b) order by u
			on conflict (template_id, user_id) do update set slots = r.slots | excluded.slots, updated_at = now()`, templates, users, bits)
		cancel()
		if err == nil && tag.RowsAffected() != int64(len(group)) {
			err = errors.New("not every row was stored")
		}
		for _, row := range group {
			row.stored <- err
		}
	}
}
