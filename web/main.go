// Web serves the console and the HTTP API. Any number of them run side by side.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"dropbell"
	"dropbell/adapters/config"
	"dropbell/adapters/redis"
	"dropbell/web/api"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis.Quiet()
	config.CollectRarely(ctx, os.Getenv, config.RoomForRequests)
	api.StrictNames()
	if err := command(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(config.ExitCode(err))
	}
}

const usage = `web serves the console and the HTTP API until SIGTERM. It takes no other arguments;
the environment configures it. Bring the database up to date first: worker migrate.
web --version prints the version.

Exit codes: 0 stopped by a signal; 1 failed; 2 the environment or an argument is wrong.

`

func command(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) == 0 {
		return run(ctx, getenv, out)
	}
	switch args[0] {
	case "version", "-version", "--version":
		fmt.Fprintln(out, dropbell.About("web"))
		return nil
	case "help", "-h", "-help", "--help":
		fmt.Fprint(out, usage)
		config.Help(out)
		return nil
	}
	return config.Mistake{Err: fmt.Errorf("unknown argument %q; see web --help", args[0])}
}
