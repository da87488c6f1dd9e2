package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/fault"
	"dropbell/domain/forecast"
	"dropbell/domain/pause"
	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

var errRushUsage = errors.New("usage: dropbell rush [-customers N] [-to URL] REHEARSAL, where N customers come as in an evening, most of them in the first second; REHEARSAL is the number of a rehearsal whose copy is open. With -to they claim over HTTP, with the dbk_test_ key in RUSH_KEY")

// rush lets made-up customers claim coupons of the copy of a rehearsal, whether earlier ones were answered or not, and prints how they fared.
func rush(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("rush", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	customers, to := flags.Int64("customers", 1000, ""), flags.String("to", "", "")
	err := flags.Parse(args)
	id, wrong := strconv.ParseInt(flags.Arg(0), 10, 64)
	if err != nil || wrong != nil || flags.NArg() != 1 || *customers < 1 {
		return config.Mistake{Err: errRushUsage}
	}
	names := append(databaseVariables(), "DATABASE_SESSION_URL", "REHEARSAL_QUIET")
	if getenv("REDIS_URL") != "" {
		names = append(names, "REDIS_URL")
	}
	cfg, err := config.LoadOnly(getenv, names...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	seconds, err := mayRush(ctx, cfg, id, *customers)
	if err != nil {
		return err
	}
	r := rehearsal.Rush{Seconds: seconds, Tally: &rehearsal.Tally{}, Now: app.Clock, Next: rehearsal.Customers(rehearsal.FirstUser+1<<61, rehearsal.Everybody)} // the rehearsal's own customers have lower numbers
	if *to != "" {
		r.Claim, err = overHTTP(*to, getenv("RUSH_KEY"), id)
	} else {
		var end func()
		r.Claim, end, err = inProcess(ctx, cfg, id)
		defer end()
	}
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() { progress(running, out, r.Tally) })
	result := r.Run(ctx)
	stop()
	showing.Wait()
	fmt.Fprintf(out, "%d customers came, %d in the first second: %d got a coupon, %d were refused, %d got no answer; %d tapped twice, and %d of them got two\nhalf of them had an answer within %s, 99 of 100 within %s\n",
		result.Came(), seconds[0], result.Issued, result.Refused, result.Failed, result.Twice, result.Again, result.Quantile(0.5).Round(time.Millisecond), result.Quantile(0.99).Round(time.Millisecond))
	return ctx.Err()
}

// progress prints a line each second.
func progress(ctx context.Context, out io.Writer, t *rehearsal.Tally) {
	for second := 1; pause.For(ctx, time.Second); second++ {
		fmt.Fprintf(out, "second %d: %d customers have come, %d taps are answered, %d coupons are given\n", second, t.Came.Load(), t.Answered.Load(), t.Issued.Load())
	}
}

// run is a part of a rush: each of its customers claims under keys of its own.
func run(tap int) string {
	return "rush" + strconv.FormatInt(app.Clock().UnixNano(), 10) + "-" + strconv.Itoa(tap)
}

// inProcess claims in this process. Behind the claim gate that needs Redis.
func inProcess(ctx context.Context, cfg config.Config, id int64) (claim func(context.Context, user.ID, int) error, end func(), err error) {
	var client goredis.UniversalClient
	end = func() {}
	if cfg.RedisURL != "" {
		if client, err = redis.Open(cfg.RedisURL); err != nil {
			return nil, end, err
		}
		end = func() { _ = client.Close() }
	}
	world, err := app.OpenWorld(ctx, cfg, slog.New(slog.DiscardHandler), id)
	if err != nil {
		return nil, end, err
	}
	claims, err := world.Claims(client, postgres.Grouping{})
	if err != nil {
		world.Close()
		return nil, end, err
	}
	closeClient := end
	return func(ctx context.Context, by user.ID, tap int) error { return claims.Tap(ctx, id, by, run(tap)) },
		func() { claims.Durable.Close(); world.Close(); closeClient() }, nil
}

// overHTTP claims as a shop does, from the installation at address.
func overHTTP(address, key string, id int64) (claim func(context.Context, user.ID, int) error, err error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, config.Mistake{Err: fmt.Errorf("-to %q is no address; write it as https://drops.shop.example", address)}
	}
	if !staff.IsTestSecret(key) {
		return nil, config.Mistake{Err: fmt.Errorf("RUSH_KEY must be a key for rehearsals only, which begins with %s", staff.TestPrefix)}
	}
	target := at.JoinPath("api/v1/claims").String()
	body, _ := json.Marshal(map[string]string{"template_id": strconv.FormatInt(id, 10)})
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	return func(ctx context.Context, by user.ID, tap int) error {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + key, "X-User-ID": by.String(), "Idempotency-Key": run(tap), "Content-Type": "application/json"} {
			q.Header.Set(name, value)
		}
		a, err := client.Do(q)
		if err != nil {
			return err
		}
		defer a.Body.Close()
		text, err := io.ReadAll(io.LimitReader(a.Body, 1<<16))
		switch {
		case err != nil:
			return err
		case a.StatusCode == http.StatusConflict:
			return fault.New(fault.Conflict, "refused", strings.TrimSpace(string(text)))
		case a.StatusCode >= 300:
			return fmt.Errorf("%s: %s", a.Status, strings.TrimSpace(string(text)))
		}
		return nil
	}, nil
}

// mayRush returns how many of n customers come in each second. It returns an error unless the rehearsal's copy is open, no real drop opens soon, and
// the busiest second is below half of the measured capacity of this machine.
func mayRush(ctx context.Context, cfg config.Config, id, n int64) ([]int64, error) {
	db, err := postgres.Open(ctx, app.WorldURL(cfg), postgres.Options{MaxConns: 4, AppName: "dropbell-rush"})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows := dropsdb.NewRehearsals(db)
	if cfg.RehearsalQuiet > 0 {
		near, err := rows.Near(ctx, min(cfg.RehearsalQuiet, rehearsal.CalmAfter), cfg.RehearsalQuiet)
		if err != nil {
			return nil, err
		}
		if near {
			return nil, rehearsal.ErrNear
		}
	}
	r, open, err := rows.Open(ctx, nil)
	if err != nil {
		return nil, err
	}
	if !open || r.ID != id {
		return nil, config.Mistake{Err: fmt.Errorf("rehearsal %d has no copy that is open; start one on the page of the drop", id)}
	}
	curve, err := rows.Curve(ctx, r.Shop, int(rehearsal.RushTakes/time.Second))
	if err != nil {
		return nil, err
	}
	seconds := rehearsal.Arrivals(n, curve, 1<<40)
	if most := int64(forecast.ClaimsPerSecond(runtime.NumCPU()) / 2); seconds[0] > most {
		return nil, config.Mistake{Err: fmt.Errorf("%d customers in the first second are more than half of the measured capacity of this machine, %d a second; choose fewer with -customers", seconds[0], most)}
	}
	return seconds, nil
}
