package sheet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dropbell/domain/job"
)

// Turns lets one caller at a time read a workbook. Unpacking takes memory and a processor, and
// several workbooks at once would slow down all other requests.
type Turns struct {
	turn chan struct{}
	wait time.Duration
}

// NewTurns returns turns for which a caller waits at most wait.
func NewTurns(wait time.Duration) *Turns { return &Turns{make(chan struct{}, 1), wait} }

// take waits for a turn and returns the function that ends the turn. It returns [job.ErrBusy]
// after the longest wait, or an error if ctx ends before.
func (t *Turns) take(ctx context.Context) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	patience := time.NewTimer(t.wait)
	defer patience.Stop()
	select {
	case t.turn <- struct{}{}:
		return sync.OnceFunc(func() { <-t.turn }), nil
	case <-patience.C:
		return nil, job.ErrBusy
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another workbook: %w", ctx.Err())
	}
}
