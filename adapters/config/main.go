package config

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// A Command is what a program does with its arguments, without its own name
// among them, and its environment. It writes results and log to out and ends
// in order when ctx does.
type Command func(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error

// Main runs a program until it is done, or until SIGTERM or an interrupt, and
// exits with the [ExitCode] of its error, which goes to standard error.
func Main(run Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(ExitCode(err))
	}
}
