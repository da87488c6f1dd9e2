// Package pause waits for a while, unless the caller is stopped before.
package pause

import (
	"context"
	"time"
)

// For returns after d with true, or with false as soon as ctx ends.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
