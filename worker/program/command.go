// Package program is the worker program. It opens stores and senders, makes the use cases of
// each room, joins the rooms' loops, handlers and tasks, and runs them.
package program

import (
	"context"
	"io"

	"dropbell/adapters/config"
	"dropbell/adapters/redis"
	"dropbell/worker/commands"
)

// Main runs the command that args name; see worker --help. Without args it calls [Run].
func Main(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	Prepare()
	config.CollectRarely(ctx, getenv, config.RoomForBatches)
	if len(args) > 0 {
		return commands.Do(ctx, args, getenv, out)
	}
	return run(ctx, getenv, out)
}

// Prepare sets what libraries keep once per process. It comes before [Run].
func Prepare() { redis.Quiet() }

// Run works until ctx ends, then finishes the work in progress and returns.
func Run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	return run(ctx, getenv, out)
}
