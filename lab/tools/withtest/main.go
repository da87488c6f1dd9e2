// Command withtest runs a command, usually go test, with one throw-away PostgreSQL for all
// packages, named in DROPBELL_TEST_DATABASE_URL:
//
//	withtest -- go test -race ./...
//
// When a package ends, withtest prints its result and the number of packages left.
//
// If the variable already names a server, this server is used instead. The programs that tests
// build are kept in one folder, named in DROPBELL_TEST_PROGRAMS, until the command ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/localstack/child"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withtest -- command [argument …]")
		os.Exit(2)
	}
	status, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withtest:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// run returns the command's exit status.
func run(args []string) (status int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if os.Getenv(localstack.TestServerVariable) == "" {
		var p *localstack.Postgres
		if p, err = localstack.StartPostgres(context.Background(), localstack.Options{Log: os.Stderr}); err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, stop(p)) }()
		if err := os.Setenv(localstack.TestServerVariable, p.URL()); err != nil {
			return 1, err
		}
	}
	if os.Getenv(localstack.TestProgramsVariable) == "" {
		var folder string
		if folder, err = os.MkdirTemp("", "dropbell-programs-"); err != nil {
			return 1, err
		}
		dismiss := child.RemoveOrphaned(folder)
		defer func() {
			err = errors.Join(err, os.RemoveAll(folder))
			dismiss()
		}()
		if err := os.Setenv(localstack.TestProgramsVariable, folder); err != nil {
			return 1, err
		}
	}
	return command(args, signals)
}

func stop(p *localstack.Postgres) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return p.Stop(ctx)
}

// command runs the command and passes on signals that reach only this process. Ctrl-C reaches
// the whole process group; getting it twice does no harm.
func command(args []string, signals <-chan os.Signal) (status int, err error) {
	args, stream := streamed(args)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if stream {
		events, to := io.Pipe()
		cmd.Stdout = to
		printed := make(chan error, 1)
		go func() { printed <- newResults(os.Stdout, packages(args)).read(events) }()
		defer func() { err = errors.Join(err, to.Close(), <-printed) }()
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			_ = cmd.Process.Signal(sig) // it may have ended just now
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return max(exit.ExitCode(), 1), nil
			}
			return 0, err
		}
	}
}
