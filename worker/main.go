// Worker fires timers, carries deliveries and turns events into work. Any
// number of them run side by side.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"dropbell/adapters/config"
	"dropbell/adapters/redis"
	"dropbell/migrations"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis.Quiet()
	config.CollectRarely(ctx, os.Getenv)
	if err := command(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const usage = `worker fires reminders, delivers them and keeps house.

  worker                    run until SIGTERM
  worker migrate            bring the database up to date and exit
  worker audit TEMPLATE     recompute a template's balance sheet and exit; fails on a difference
  worker audit campaign ID  recompute a campaign's account and exit; fails on a difference

`

// command runs what args ask for.
func command(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	switch verb {
	case "":
		return run(ctx, getenv, out)
	case "migrate":
		if len(args) > 1 {
			return errors.New("worker migrate takes no arguments; see worker --help")
		}
		return migrate(ctx, getenv, out)
	case "audit":
		return audit(ctx, args[1:], getenv, out)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(out, usage)
		config.Help(out)
		return nil
	}
	return fmt.Errorf("unknown command %q; see worker --help", verb)
}

func migrate(ctx context.Context, getenv func(string) string, out io.Writer) error {
	url := getenv("DATABASE_URL")
	if url == "" {
		return errors.New("DATABASE_URL is required")
	}
	if err := migrations.Up(ctx, url); err != nil {
		return err
	}
	version, err := migrations.Version(ctx, url)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "database is at migration %d\n", version)
	return nil
}
