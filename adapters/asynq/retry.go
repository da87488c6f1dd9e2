package asynq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"dropbell/domain/fault"

	queue "github.com/hibiken/asynq"
)

// retryDelay returns the pause before attempt n+2 of a task.
func retryDelay(n int, err error, _ *queue.Task) time.Duration {
	if errors.Is(err, queue.ErrLeaseExpired) {
		// Its worker died up to two minutes ago; that was pause enough.
		return 0
	}
	pause := jittered(time.Second << min(n, maxRetry))
	if later, ok := errors.AsType[*fault.RetryAfter](err); ok {
		pause = later.After
	}
	// The library cuts the instant of the retry to a whole second.
	now := time.Now()
	return roundUp(now.Add(pause)).Sub(now)
}

// jittered spreads retries of tasks that failed together by a quarter.
func jittered(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2)
}

// logAdapter passes the library's own messages to slog.
type logAdapter struct{ logger *slog.Logger }

func (l logAdapter) log(level slog.Level, args []any) {
	ctx := context.Background()
	if l.logger.Enabled(ctx, level) {
		l.logger.Log(ctx, level, fmt.Sprint(args...), "library", "asynq")
	}
}

func (l logAdapter) Debug(args ...any) { l.log(slog.LevelDebug, args) }
func (l logAdapter) Info(args ...any)  { l.log(slog.LevelInfo, args) }
func (l logAdapter) Warn(args ...any)  { l.log(slog.LevelWarn, args) }
func (l logAdapter) Error(args ...any) { l.log(slog.LevelError, args) }

// Fatal logs the error after which the library expects the process to end; here only main ends
// the process.
func (l logAdapter) Fatal(args ...any) { l.log(slog.LevelError, args) }
