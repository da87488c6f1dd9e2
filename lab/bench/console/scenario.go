// Package console measures how long every page of the console takes with large tables. It fills
// a database, starts web, signs in and loads each page many times, four pages at a time. The aim
// is a 95th percentile below 100 ms. Then it downloads each list once as a file, and prints when
// the first rows arrive and the rate of the following rows.
//
//	go tool task bench:console -- -reservations 10000000 -exceptions 1000000 -coupons 1000000
//
// The database is in /dev/shm if there is room, and is not synced: pages only read. With -keep
// DIR the database is filled once and reused by later runs.
package console

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// aim is the greatest accepted 95th percentile of a page.
const aim = 100 * time.Millisecond

// size is how much of everything there is.
type size struct {
	reservations, exceptions, batches, templates, users, audit, coupons, campaigns int
}

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	var n size
	f.IntVar(&n.reservations, "reservations", 1_000_000, "reservations, over five drops")
	f.IntVar(&n.exceptions, "exceptions", 100_000, "recipients whom a message did not simply reach")
	f.IntVar(&n.batches, "batches", 20_000, "batches of a thousand recipients")
	f.IntVar(&n.templates, "templates", 20_000, "templates")
	f.IntVar(&n.users, "users", 200_000, "users")
	f.IntVar(&n.audit, "audit", 100_000, "records in the audit log")
	f.IntVar(&n.coupons, "coupons", 100_000, "coupons, over five drops")
	f.IntVar(&n.campaigns, "campaigns", 5_000, "campaigns, of which a hundred have batches")
	keep := f.String("keep", "", "folder that keeps the filled database")
	times := f.Int("times", 40, "requests per page")
	only := f.String("only", "", "pages whose address begins like this")
	return func(ctx context.Context) error {
		left := func(path string) bool { return !strings.HasPrefix(path, *only) }
		return bench(ctx, *keep, n, slices.DeleteFunc(addresses(), left), slices.DeleteFunc(files(), left), *times)
	}
}

const (
	email    = "admin@bench.example"
	password = "only this benchmark signs in"
)

func bench(ctx context.Context, keep string, n size, pages, lists []string, times int) error {
	s, err := stack.StartReading(ctx, keep)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(stack.Machine(ctx, s))
	began := time.Now()
	if err := fill(ctx, s, n); err != nil {
		return err
	}
	fmt.Printf("filled in %v: %+v\n", time.Since(began).Round(time.Second), n)
	web, err := s.StartProgram(ctx, "web", "AUTH_JWT_SECRET=a secret that only this benchmark knows", "ADMIN_EMAIL="+email,
		"ADMIN_PASSWORD="+password, "CONSOLE_SECOND_FACTOR=optional", "ADMIN_API_KEY=dbk_nobodyusesthisonehere", "SMTP_URL=smtp://127.0.0.1:1?from=drops@shop.example")
	if err != nil {
		return err
	}
	defer web.Stop()
	visitor, err := stack.SignIn(ctx, "http://"+web.Addr, email, password)
	if err != nil {
		return err
	}
	c := &client{visitor}
	missed := 0
	fmt.Printf("%-70s %9s %9s %9s\n", "page", "p50 ms", "p95 ms", "max ms")
	for _, path := range pages {
		took, err := c.measure(ctx, path, times)
		if err != nil {
			return err
		}
		p95, note := took[len(took)*95/100], ""
		if p95 >= aim {
			missed, note = missed+1, "  above the aim"
		}
		fmt.Printf("%-70.70s %9.1f %9.1f %9.1f%s\n", path, ms(took[len(took)/2]), ms(p95), ms(took[len(took)-1]), note)
	}
	fmt.Printf("%d of %d pages have a p95 below %v\n", len(pages)-missed, len(pages), aim)
	fmt.Printf("%-70s %9s %9s %9s %9s\n", "file", "first ms", "all ms", "rows", "rows/s")
	for _, path := range lists {
		f, err := c.download(ctx, path)
		if err != nil {
			return err
		}
		fmt.Printf("%-70.70s %9.1f %9.1f %9d %9.0f\n", path, ms(f.first), ms(f.whole), f.rows, float64(f.rows)/f.whole.Seconds())
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// client is a browser that has signed in.
type client struct{ *stack.Visitor }

// file says how long a download took and how many rows it had below its head.
type file struct {
	first, whole time.Duration
	rows         int
}

// download reads a list as a file. An incomplete file is an error.
func (c *client) download(ctx context.Context, path string) (f file, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+path, nil)
	if err != nil {
		return f, err
	}
	began := time.Now()
	res, err := c.HTTP.Do(req)
	if err != nil {
		return f, err
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/csv") {
		return f, fmt.Errorf("%s answers %d with %s", path, res.StatusCode, kind)
	}
	f.first = time.Since(began)
	rows := csv.NewReader(res.Body)
	rows.ReuseRecord = true
	for f.rows = -1; ; f.rows++ {
		_, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f, fmt.Errorf("%s: %w", path, err)
		}
	}
	f.whole = time.Since(began)
	return f, nil
}

// measure returns the times of the page's loads, ascending. The first requests warm caches and
// are not counted.
func (c *client) measure(ctx context.Context, path string, times int) ([]time.Duration, error) {
	const parallel = 4
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for i := range times/parallel + 1 {
				began := time.Now()
				err := c.Read(ctx, path)
				mu.Lock()
				if failed = firstOf(failed, err); i > 0 {
					took = append(took, time.Since(began))
				}
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	if failed == nil && len(took) == 0 {
		failed = fmt.Errorf("%d requests are too few", times)
	}
	return took, failed
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
