// Package program is the program web: it wires the console and the HTTP API.
package program

import (
	"context"
	"fmt"
	"io"

	"dropbell"
	"dropbell/adapters/config"
	"dropbell/adapters/redis"
	"dropbell/web/api/pipeline"
)

// Main runs the command in args, see web --help. Without args it is [Run], in a process of its own.
func Main(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	Prepare()
	config.CollectRarely(ctx, getenv, config.RoomForRequests)
	return command(ctx, args, getenv, out)
}

// Prepare sets the global settings of libraries. Call it before [Run].
func Prepare() {
	redis.Quiet()
	pipeline.StrictNames()
}

// Run serves until ctx ends, then finishes the requests in flight and returns.
func Run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	return run(ctx, getenv, out)
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
