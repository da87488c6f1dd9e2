package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dropbell/adapters/localstack/child"
)

// crashWorker kills the worker as a crash would.
func crashWorker() error {
	raw, err := os.ReadFile(pidFile("worker"))
	if err != nil {
		return errNotRunning
	}
	pid, err := running(string(raw), binary(program)+" worker")
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	say("killed the worker (process %d); it is started again within a second.\n"+
		"Nobody is missed: what it had leased is taken over, see the deliveries in the console.", pid)
	return nil
}

// down signals the up of another terminal to stop and waits for it.
func down(ctx context.Context) error {
	state, err := readEnv(stateFile())
	if err != nil {
		return err
	}
	pid, err := running(state["PID"], binary("up"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	if err := child.Gone(ctx, pid); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	say("stopped")
	return nil
}

// running returns the process of a noted id, if its command line still has the command.
func running(note, command string) (int, error) {
	pid, err := strconv.Atoi(strings.TrimSpace(note))
	if err != nil || !strings.Contains(child.CommandLine(pid), command) {
		return 0, errNotRunning
	}
	return pid, nil
}
