package cells

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	workdb "dropbell/adapters/postgres/work/move"
	"dropbell/lab/bench/load"
	"dropbell/lab/bench/stack"
)

const key = "dbk_benchmarkofcellsbenchmark"

// webs are the programs that claims are sent to: through has a front and both cells, alone has cell 0
// as its only database.
type webs struct{ through, alone *stack.Process }

// startWebs starts both, and gives cell 1 its copies of home's rows.
func (b *bench) startWebs(ctx context.Context, bin string) (w webs, stop func(), err error) {
	env := []string{"ADMIN_API_KEY=" + key, "RATE_LIMIT_PER_MINUTE=0", "RATE_LIMIT_KEY_PER_MINUTE=0", "LOG_LEVEL=error"}
	stop = func() {
		for _, p := range []*stack.Process{w.through, w.alone} {
			if p != nil {
				p.Stop()
			}
		}
	}
	if w.alone, err = b.cells[0].StartBuilt(ctx, bin, "web", append(env, "REDIS_URL="+b.cells[1].RedisURL)...); err != nil {
		return w, stop, err
	}
	if w.through, err = b.cells[0].StartBuilt(ctx, bin, "web", append(env, "DATABASE_URL=", "CELLS=a="+b.cells[0].PostgresURL+",b="+b.cells[1].PostgresURL)...); err != nil {
		return w, stop, err
	}
	c := workdb.Copier{Home: b.cells[0].DB, Cell: b.cells[1].DB, Number: 1, Erase: func(context.Context, int64) error { return nil }}
	if err = c.Begin(ctx); err == nil {
		err = c.Compare(ctx)
	}
	if err != nil {
		return w, stop, err
	}
	return w, stop, stack.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		r, err := http.Get("http://" + w.through.Addr + "/readyz")
		if err != nil {
			return false, err
		}
		text, err := io.ReadAll(r.Body)
		return !strings.Contains(string(text), "cell b"), errors.Join(err, r.Body.Close())
	})
}

// claimed sends claims of the drops in turns, each as another user.
func (b *bench) claimed(web *stack.Process, drops ...int64) (r load.Result, micros float64, err error) {
	before, err := web.CPU()
	if err != nil {
		return r, 0, err
	}
	const users = 1 << 32
	first := b.next.Add(users) - users
	bodies := make([]string, len(drops))
	for i, id := range drops {
		bodies[i] = fmt.Sprintf(`{"template_id":"%d"}`, id)
	}
	r, err = load.Run(load.Plan{Addr: web.Addr, Connections: b.callers, Warmup: time.Second, Duration: b.lasting, Expect: []int{http.StatusCreated},
		Request: func(buf []byte, i int64) []byte {
			return load.Post(buf, "/api/v1/claims", key, fmt.Sprintf("X-User-ID: %d\r\nIdempotency-Key: %d\r\n", first+i, first+i), bodies[i%int64(len(bodies))])
		}})
	if err == nil && r.Failures > 0 {
		err = fmt.Errorf("%d of %d claims failed, one with %s", r.Failures, r.Requests, r.Example)
	}
	after, failed := web.CPU()
	return r, float64((after - before).Microseconds()) / float64(max(1, r.All)), errors.Join(err, failed)
}

// front compares claims of cell 0 through the front with claims without one, in turns, and measures how
// claims of both cells through one address divide.
func (b *bench) front(ctx context.Context, bin string, runs int) error {
	w, stop, err := b.startWebs(ctx, bin)
	defer stop()
	if err != nil {
		return err
	}
	var rates, costs []float64
	for range runs {
		one, oneCost, err := b.claimed(w.alone, b.cells[0].claimed)
		if err != nil {
			return fmt.Errorf("without a front: %w", err)
		}
		other, otherCost, err := b.claimed(w.through, b.cells[0].claimed)
		if err != nil {
			return fmt.Errorf("through the front: %w", err)
		}
		rates, costs = append(rates, other.PerSecond/one.PerSecond), append(costs, otherCost/oneCost)
		fmt.Printf("claims of cell 0  without a front %7.0f/s p99 %4d ms, %5.1f us of web each   through the front %7.0f/s p99 %4d ms, %5.1f us\n",
			one.PerSecond, one.P99.Milliseconds(), oneCost, other.PerSecond, other.P99.Milliseconds(), otherCost)
	}
	fmt.Printf("through the front / without: rate %s, processor time of web %s\n", stack.Spread(rates), stack.Spread(costs))
	var both load.Result
	var cost float64
	shares, err := b.shares(ctx, func() (err error) {
		both, cost, err = b.claimed(w.through, b.cells[0].claimed, b.cells[1].claimed)
		return err
	})
	if err != nil {
		return fmt.Errorf("claims of both cells: %w", err)
	}
	fmt.Printf("claims of both cells through one address  %7.0f/s p99 %4d ms, %5.1f us of web each   %s\n", both.PerSecond, both.P99.Milliseconds(), cost, shares)
	return nil
}
