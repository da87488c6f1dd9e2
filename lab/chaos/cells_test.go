//go:build failover

package chaos_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/config"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/cell"
	"dropbell/lab/bench/stack"
)

const (
	// homeShop is a shop in home. The shop of the run is in the other cell.
	homeShop = 20
	// homeUsers are reminded of a drop of home while the other cell fails over.
	homeUsers = 200
	// homePunctual is how late at most home hands its reminders over, on a busy machine.
	homePunctual = 5 * time.Second
)

// twoCells are an ordinary server, which is home, and a cell that Patroni looks after.
type twoCells struct {
	patroni
	home *stack.Stack
}

func (c *twoCells) servers(w *system) (*stack.Stack, error) {
	var err error
	if c.home, err = stack.StartNew(w.ctx); err != nil {
		return nil, err
	}
	w.t.Cleanup(c.home.Close)
	c.pair = newPatroniPair(w.t, true)
	named := config.Config{RedisURL: c.home.RedisURL, Cells: []config.Cell{{Name: "a", URL: c.home.PostgresURL}, {Name: "b", URL: c.pair.URL()}}}
	s, err := stack.On(w.ctx, c.pair.URL(), named.OfCell(1).RedisURL)
	if err != nil {
		return nil, err
	}
	s.Redis = c.home.Redis
	w.env = []string{"DATABASE_URL=", "REDIS_URL=" + c.home.RedisURL, fmt.Sprintf("CELLS=a=%s,b=%s", c.home.PostgresURL, c.pair.URL())}
	_, err = workdb.NewCells(s.DB).Number(w.ctx, 1, 0)
	return s, err
}

// killPrimary kills the primary of cell b. Meanwhile users of home's shop claim from both gates and are
// reminded: none of their requests fails, or takes much longer than before.
func (c *twoCells) killPrimary() trouble {
	kill := c.patroni.killPrimary()
	return trouble{kill.name + ", while home claims and fires", func(w *system) error {
		h := &homeRush{claims: &claims{system: w}, home: c.home}
		h.prepare()
		usual := h.claimUntil(time.After(3 * time.Second))
		done := make(chan time.Time)
		var err error
		go func() {
			defer close(done)
			err = kill.do(w)
		}()
		slowest := h.claimUntil(done)
		if most := 2*time.Second + 5*usual; slowest > most {
			w.t.Errorf("a claim of home took %v while cell b failed over, at most %v before", slowest, usual)
		}
		w.say("the slowest claim of home took %v while cell b failed over, %v before", slowest, usual)
		h.account()
		return err
	}}
}

// homeRush is two drops of home that are claimed, one at each gate, and one of which users are reminded.
type homeRush struct {
	*claims
	home     *stack.Stack
	drops    []int64
	reminded *drop
	next     int64 // user
	claimed  int
}

func (h *homeRush) prepare() {
	h.t.Helper()
	shop := map[string]any{"shop_number": fmt.Sprint(homeShop)}
	var list []*drop
	for i, mode := range []string{"durable", "gate", "durable"} {
		id := h.publishDrop(fmt.Sprint("Home ", i), mode, "claim", 1_000_000, 1, time.Hour, shop)
		if cell.Of(id, 1) != 0 {
			h.t.Fatalf("drop %d of home is in cell %d", id, cell.Of(id, 1))
		}
		var now templateBody
		path := fmt.Sprintf("/admin/templates/%d", id)
		h.crowd.must(h.ctx, call{method: http.MethodGet, path: path}, &now)
		list = append(list, &drop{id: id, version: fmt.Sprintf("%q", fmt.Sprint(now.Version))})
	}
	h.drops, h.reminded = []int64{list[0].id, list[1].id}, list[2]
	h.inParallel(homeUsers, func(i int) {
		h.crowd.must(h.ctx, call{method: http.MethodPost, path: "/reservations", user: int64(1 + i), body: map[string]any{"template_id": fmt.Sprint(h.reminded.id),
			"shop_number": fmt.Sprint(homeShop), "reminders": []map[string]any{{"channel": "app", "minutes": 5}}}}, nil)
	})
	opens := time.Now().Add(6 * time.Second).Truncate(time.Second).UTC()
	for _, d := range list[:2] {
		h.crowd.move(h.ctx, d, opens.Add(-5*time.Minute))
	}
	// Between the death of the primary, four seconds after the openings, and its successor.
	h.crowd.move(h.ctx, h.reminded, opens.Add(8*time.Second))
	wait(time.Until(opens.Add(time.Second)), h.ctx.Done())
}

// claimUntil has users claim until over, and returns how long the slowest claim took.
func (h *homeRush) claimUntil(over <-chan time.Time) (slowest time.Duration) {
	var all sync.WaitGroup
	var mu sync.Mutex
	stop := make(chan struct{})
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				mu.Lock()
				h.next++
				user := h.next
				mu.Unlock()
				began := time.Now()
				drop := h.drops[user%int64(len(h.drops))]
				r, err := h.crowd.once(h.ctx, call{method: http.MethodPost, path: "/claims", user: user}, fmt.Sprint("home-", user), fmt.Appendf(nil, `{"template_id":"%d"}`, drop))
				mu.Lock()
				slowest = max(slowest, time.Since(began))
				if err != nil || !r.ok() {
					h.t.Errorf("a claim of home: %d %s %v", r.status, r.body, err)
				} else {
					h.claimed++
				}
				mu.Unlock()
				wait(20*time.Millisecond, stop)
			}
		})
	}
	<-over
	close(stop)
	all.Wait()
	return slowest
}

// account checks that home has a coupon for each claim, that its ledgers are exact, and that its reminders
// were handed over in time.
func (h *homeRush) account() {
	h.t.Helper()
	for _, id := range h.drops {
		h.calm(id)
	}
	var coupons int
	err := h.home.SQL.QueryRow(h.ctx, `select count(*) from coupons where template_id = any($1)`, h.drops).Scan(&coupons)
	if err != nil || coupons != h.claimed {
		h.t.Errorf("%d coupons of %d claims of home: %v", coupons, h.claimed, err)
	}
	var sent int
	var took float64
	err = h.home.SQL.QueryRow(h.ctx, `select coalesce(sum(sent_count), 0), coalesce(extract(epoch from max(finished_at - due_at)), 0) from batches
		where template_id = $1 and state = 'done'`, h.reminded.id).Scan(&sent, &took)
	if err != nil || sent != homeUsers || took > homePunctual.Seconds() {
		h.t.Errorf("home sent %d of %d reminders, the last one %.1f s after it was due: %v", sent, homeUsers, took, err)
	}
	h.say("home: %d claims, none refused; %d reminders, the last one %.1f s after it was due", h.claimed, sent, took)
}

// TestFailoverOfOneOfTwoCells kills the primary of one of two cells while a slot of the cell fires, and
// during a rush of claims there. The failed-over cell accounts for each user, as a single database does.
// Drops of the other cell neither wait nor fail.
func TestFailoverOfOneOfTwoCells(t *testing.T) {
	t.Run("firing", func(t *testing.T) {
		var c twoCells
		s := failoverSize()
		s.servers, s.whileSending = c.servers, []trouble{c.killPrimary()}
		endure(t, s)
	})
	t.Run("rush", func(t *testing.T) {
		var c twoCells
		r := failoverRush()
		r.servers, r.troubles = c.servers, []trouble{c.killPrimary()}
		rushAndDestroy(t, r)
	})
}
