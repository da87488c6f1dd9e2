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
	"dropbell/domain/pause"
	"dropbell/worker/shell"
)

// run works until ctx ends, then finishes the work in progress and returns.
func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, log, err := app.Load("worker", getenv, out)
	if err != nil {
		return err
	}
	p, err := buildAll(ctx, cfg, log)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	defer func() { _ = p.Close() }()
	return p.serveAll(ctx)
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
	if p.home == nil {
		start("operations server", p.serveHTTP)
	}
	if !p.awaitSchema(ctx) || p.home != nil && !p.awaitCopies(ctx) || !p.senders.Await(ctx) {
		loops.Wait()
		return causeOf(ctx)
	}
	// Before any message goes out, so that the other workers leave this one its part of limits.
	if err := p.processes.Enter(ctx); err != nil {
		p.Log.Warn("this worker is not counted among those that share limits yet", "error", err)
	}
	start("processes", func(ctx context.Context) error { p.processes.Run(ctx); return nil })
	start("erasures", p.runner.Every(app.EraseEvery, "erasures", p.Erased.Look))
	if p.has(shell.House) && p.home != nil {
		start("copies", p.runner.Every(copyEvery, "copies", p.copies))
	}
	if p.has(shell.House) && len(p.others) > 0 {
		start("shops of cells", p.runner.Every(time.Second, "shops of cells", p.elsewhere()))
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

// serveTasks starts the queue's servers as soon as Redis answers, and drains them when ctx ends.
func (p *program) serveTasks(ctx context.Context) error {
	for {
		err := p.servers.Start()
		if err == nil {
			break
		}
		p.Log.Warn("task servers cannot start yet", "error", err)
		if !pause.For(ctx, time.Second) {
			return nil
		}
	}
	<-ctx.Done()
	p.servers.Shutdown()
	return nil
}

func (p *program) channelNames() []string {
	var names []string
	for _, c := range delivery.AllChannels() {
		if p.senders.ByChannel[c] != nil && p.serves(c) {
			names = append(names, c.String())
		}
	}
	return names
}
