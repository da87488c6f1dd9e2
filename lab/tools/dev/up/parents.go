package main

import (
	"context"
	"errors"
	"os"
	"time"

	"dropbell/adapters/localstack/child"
)

var errAbandoned = errors.New("whoever started this is gone")

// watchParents calls cancel when the parent or the grandparent of this process is gone. The task
// runner does not pass on signals, and when it is killed, all programs must end with it.
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
