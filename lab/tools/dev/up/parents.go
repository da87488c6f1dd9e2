package main

import (
	"context"
	"errors"
	"os"
	"time"

	"dropbell/adapters/localstack/child"
)

var errAbandoned = errors.New("whoever started this is gone")

// watchParents cancels when the program that started this one, or the one that
// started that, is gone: the task runner does not pass signals on, and when it
// is killed everything must end with it.
func watchParents(ctx context.Context, cancel context.CancelCauseFunc) {
	parent := os.Getppid()
	grandparent := child.Parent(parent)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if os.Getppid() != parent || child.Parent(parent) != grandparent {
			cancel(errAbandoned)
			return
		}
	}
}
