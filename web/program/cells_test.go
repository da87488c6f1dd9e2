package program

import (
	"errors"
	"sync"
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/cell"
)

// TestAShopIsSettledOnce: a new shop comes into one cell, whichever process settles it and however often:
// also if the process that made its row died before it answered, or if two processes settle it at once.
func TestAShopIsSettledOnce(t *testing.T) {
	home, other := pgtest.New(t), pgtest.On(t, localstack.Database(t))
	_, err := workdb.NewCells(other.DB).Number(t.Context(), 1, 0)
	home.Must(err)
	other.Exec(`insert into copying_cells (cell, compared_at) values (0, now())`)
	home.Shops(1, 2, 3)
	process := func() *places {
		return newPlaces([]*program{{App: &app.App{Stores: app.NewStores(home.DB)}}, {App: &app.App{Stores: app.NewStores(other.DB)}}})
	}
	died := errors.New("died")
	settle := func(s *places, shop int64, dies bool) (at cell.Number) {
		defer func() {
			if recover() == died {
				return
			}
		}()
		home.Must(s.Settle(t.Context(), shop, func(n cell.Number) {
			at = n
			[]*pgtest.Fixture{home, other}[n].Exec(`insert into shops (number, name, timezone) values ($1, 'New', 'UTC') on conflict do nothing`, shop)
			if dies {
				panic(died)
			}
		}))
		return at
	}
	where := func(shop int64) (sum int64) {
		const has = `select count(*) from shops where number = $1`
		return home.Number(has, shop) + other.Number(has, shop)
	}
	first, second := process(), process()
	if at := settle(first, 20, true); at != 1 {
		t.Errorf("a new shop came into cell %d, which has more", at)
	}
	for n := range int64(4) { // so that the cell of the first shop is no longer the emptiest
		other.Shops(100 + n)
	}
	if at := settle(second, 20, false); at != 1 || where(20) != 1 {
		t.Errorf("after the death it is settled in cell %d, and is in %d", at, where(20))
	}
	var all sync.WaitGroup
	var at [2]cell.Number
	for i, s := range []*places{process(), process()} {
		all.Go(func() { at[i] = settle(s, 30, false) })
	}
	all.Wait()
	if at[0] != at[1] || where(30) != 1 {
		t.Errorf("two processes settled a shop in %v, and it is in %d cells", at, where(30))
	}
}
