package config

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// A Command is the work of a program. args does not contain the program's name. The command
// writes results and log to out, and ends in order when ctx ends.
type Command func(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error

// Main runs a program until its command ends, or until SIGTERM or an interrupt. It writes the
// command's error to standard error and exits with the error's [ExitCode].
func Main(run Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(ExitCode(err))
	}
}
