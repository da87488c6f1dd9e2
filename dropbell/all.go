package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"

	"dropbell/adapters/config"
	web "dropbell/web/program"
	worker "dropbell/worker/program"
)

// all runs web and worker until ctx ends or one of the two fails. A failure stops the other
// program in order. all returns the error of the program that failed first. Both programs write
// to out concurrently, a line per call.
func all(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, err := config.Load(getenv)
	if err != nil {
		return config.Mistake{Err: fmt.Errorf("the environment must be corrected (dropbell --help describes each variable):\n%w", err)}
	}
	if err := apart(cfg); err != nil {
		return config.Mistake{Err: err}
	}
	web.Prepare()
	worker.Prepare()
	config.CollectRarely(ctx, getenv, config.RoomForRequests)
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return web.Run(ctx, getenv, out) })
	both.Go(func() error { return worker.Run(ctx, getenv, out) })
	return both.Wait()
}

// apart returns an error with the names of two variables if web and worker would listen on the
// same address. Port 0 is a different port each time.
func apart(cfg config.Config) error {
	if strings.HasSuffix(cfg.WorkerHTTPAddr, ":0") {
		return nil
	}
	for name, address := range map[string]string{"HTTP_ADDR": cfg.HTTPAddr, "METRICS_ADDR": cfg.MetricsAddr} {
		if address == cfg.WorkerHTTPAddr {
			return fmt.Errorf("%s and WORKER_HTTP_ADDR must differ: dropbell all listens on both", name)
		}
	}
	return nil
}
