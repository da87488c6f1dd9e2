package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
)

// run works until ctx ends, then finishes the work in progress and returns.
func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, log, err := app.Load("worker", getenv, out)
	if err != nil {
		return err
	}
	p, err := build(ctx, cfg, log)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	defer func() { _ = p.Close() }()
	return p.serve(ctx)
}

// serve runs every loop until ctx ends or one of them fails for good.
func (p *program) serve(ctx context.Context) error {
	if warning, err := p.queue.CheckRedis(ctx); err != nil {
		p.Log.Warn(redis.Trouble(err)+"; going on, the database keeps what is due", "error", err)
	} else if warning != "" {
		p.Log.Warn(warning)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.life = ctx
	var loops sync.WaitGroup
	start := func(name string, loop func(context.Context) error) {
		loops.Go(func() {
			if err := loop(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	start("operations server", p.serveHTTP)
	if !p.awaitSchema(ctx) {
		loops.Wait()
		return causeOf(ctx)
	}
	p.startRoles(start)
	p.Log.Info("worker is running", "channels", p.channelNames(), "roles", p.Config.WorkerRoles)
	loops.Wait()
	if err := causeOf(ctx); err != nil {
		return err
	}
	p.Log.Info("worker has stopped")
	return nil
}

// causeOf returns why ctx ended, nil if it was ended on purpose.
func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// serveTasks starts the queue's servers as soon as Redis answers and drains
// them at the end.
func (p *program) serveTasks(ctx context.Context) error {
	for {
		err := p.servers.Start()
		if err == nil {
			break
		}
		p.Log.Warn("task servers cannot start yet", "error", err)
		if !sleep(ctx, time.Second) {
			return nil
		}
	}
	<-ctx.Done()
	p.servers.Shutdown()
	return nil
}

// every returns a loop that runs job at once and then each period. Its
// failures are logged, at most one line per kind of trouble and minute.
func (p *program) every(period time.Duration, name string, job func(context.Context) error) func(context.Context) error {
	p.metrics.failures.WithLabelValues(name) // from 0, so that alerts see the first one
	return func(ctx context.Context) error {
		var lastText string
		var lastAt time.Time
		for {
			if err := job(ctx); err != nil && ctx.Err() == nil {
				p.metrics.jobFailed(name)
				if err.Error() != lastText || time.Since(lastAt) > time.Minute {
					p.Log.Error("job failed", "job", name, "error", err)
					lastText, lastAt = err.Error(), time.Now()
				}
			}
			if !sleep(ctx, period) {
				return nil
			}
		}
	}
}

// sleep returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *program) channelNames() []string {
	var names []string
	for _, c := range delivery.AllChannels() {
		if p.delivery.Senders[c] != nil && p.serves(c) {
			names = append(names, c.String())
		}
	}
	return names
}
