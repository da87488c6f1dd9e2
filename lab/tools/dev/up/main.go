// Command up runs a complete Dropbell on this machine with demo data: PostgreSQL, Redis, web,
// worker, and a catcher for the messages that Dropbell sends. Ctrl-C stops all of it and keeps
// the data under .local.
//
//	up        start, and stay until stopped; with -past=false the demo data has no history,
//	          and no simulated shoppers come
//	up drop   in another terminal: add a drop that opens in a few minutes
//	up crash  in another terminal: kill -9 the worker and see it come back
//	up down   in another terminal: stop
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// local is where everything is kept that this command makes.
const local = ".local"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends at once
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

const usage = `usage: up [-past=false] [drop | crash | down]

Without a command, up runs everything with demo data until Ctrl-C. DEMO=0 in the
environment leaves the database empty.
`

func run(ctx context.Context, args []string) error {
	if err := enterRepository(); err != nil {
		return err
	}
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	past := flags.Bool("past", true, "give new demo data a history, drops and campaigns of eight weeks, and let simulated shoppers come to its drops")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if args = flags.Args(); len(args) == 0 {
		return up(ctx, *past)
	}
	switch args[0] {
	case "drop":
		return addDrop(ctx)
	case "crash":
		return crashWorker()
	case "down":
		return down(ctx)
	default:
		return fmt.Errorf("unknown command %q: expected drop, crash, down or nothing", args[0])
	}
}

// enterRepository changes to the root of the repository, the directory with the program.
func enterRepository() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, program, "main.go")); err == nil {
			return os.Chdir(dir)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return errors.New("run this inside the repository: no dropbell/main.go found")
		}
		dir = parent
	}
}
