package commands

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/forecast"
	"dropbell/domain/rehearsal"
	"dropbell/domain/user"
)

var errRushUsage = errors.New("usage: dropbell rush [-rate N] [-for D] REHEARSAL, where N customers a second come for D, such as 10s; REHEARSAL is the number of a rehearsal whose copy is open")

// rush lets made-up customers claim coupons of the copy of a rehearsal, whether earlier ones were answered or not, and prints how they fared.
func rush(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("rush", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	rate, lasting := flags.Int64("rate", 100, ""), flags.Duration("for", rehearsal.RushTakes, "")
	err := flags.Parse(args)
	id, wrong := strconv.ParseInt(flags.Arg(0), 10, 64)
	if err != nil || wrong != nil || flags.NArg() != 1 || *rate < 1 || *lasting < time.Second || *lasting > time.Hour {
		return config.Mistake{Err: errRushUsage}
	}
	if most := int64(forecast.ClaimsPerSecond(runtime.NumCPU()) / 2); *rate > most {
		return config.Mistake{Err: fmt.Errorf("-rate %d is more than half of the measured capacity of this machine, %d a second; choose a lower one", *rate, most)}
	}
	cfg, err := config.LoadOnly(getenv, append(databaseVariables(), "DATABASE_SESSION_URL", "REHEARSAL_QUIET")...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	if err := mayRush(ctx, cfg, id); err != nil {
		return err
	}
	world, err := app.OpenWorld(ctx, cfg, slog.New(slog.DiscardHandler), id)
	if err != nil {
		return err
	}
	defer world.Close()
	claims := couponsdb.NewClaims(world.DB, postgres.Grouping{})
	defer claims.Close()
	result := rehearsal.Rush{Seconds: slices.Repeat([]int64{*rate}, int(lasting.Seconds())), Now: app.Clock, Claim: func(ctx context.Context, by user.ID) error {
		// The rehearsal's own customers have lower numbers.
		_, err := claims.Claim(ctx, claim.Request{ID: claim.NewID(rand.Uint64(), id), TemplateID: id, UserID: by + 1<<61, Origin: claim.ByTap, Key: claim.TapKey(by, "rush"+strconv.FormatInt(app.Clock().UnixNano(), 10))})
		return err
	}}.Run(ctx)
	fmt.Fprintf(out, "%d customers came, %d a second: %d got a coupon, %d were refused, %d got no answer\nhalf of them had an answer within %s, 99 of 100 within %s\n",
		len(result.Took), *rate, result.Issued, result.Refused, result.Failed, result.Quantile(0.5).Round(time.Millisecond), result.Quantile(0.99).Round(time.Millisecond))
	return ctx.Err()
}

// mayRush returns an error unless the rehearsal's copy is open and no real drop opens soon.
func mayRush(ctx context.Context, cfg config.Config, id int64) error {
	db, err := postgres.Open(ctx, app.WorldURL(cfg), postgres.Options{MaxConns: 4, AppName: "dropbell-rush"})
	if err != nil {
		return err
	}
	defer db.Close()
	rows := dropsdb.NewRehearsals(db)
	if cfg.RehearsalQuiet > 0 {
		near, err := rows.Near(ctx, min(cfg.RehearsalQuiet, rehearsal.CalmAfter), cfg.RehearsalQuiet)
		if err != nil {
			return err
		}
		if near {
			return rehearsal.ErrNear
		}
	}
	r, open, err := rows.Open(ctx, nil)
	if err != nil {
		return err
	}
	if !open || r.ID != id {
		return config.Mistake{Err: fmt.Errorf("rehearsal %d has no copy that is open; start one on the page of the drop", id)}
	}
	return nil
}
