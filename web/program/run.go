package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/staff"
	"dropbell/web/middleware"
)

// run serves until ctx ends, then finishes the requests in flight and returns.
func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, log, err := app.Load("web", getenv, out)
	if err != nil {
		return err
	}
	warn(cfg, log)
	p, err := buildAll(ctx, cfg, log)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	defer func() { _ = p.Close() }()
	return p.serve(ctx)
}

// serve listens at once and becomes ready when the database answers.
func (p *program) serve(ctx context.Context) error {
	handler, err := p.joinedHandler(ctx)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", p.Config.HTTPAddr)
	if err != nil {
		return fmt.Errorf("HTTP_ADDR: %w", err)
	}
	stopMetrics, err := p.serveMetrics()
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer stopMetrics()
	server := middleware.Server(handler, p.Log)
	background, stop := context.WithCancel(ctx)
	defer stop()
	var loops sync.WaitGroup
	for n, one := range p.all() {
		if one.work(background, &loops); len(p.others) > 0 {
			loops.Go(func() { p.places.run(background, n) })
		}
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		p.shutdown(server)
	}()
	p.Log.Info("web is listening", "address", listener.Addr().String())
	if err := server.Serve(middleware.Connections(listener)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	stop()
	loops.Wait()
	p.Log.Info("web has stopped")
	return nil
}

// work starts the program's loops, which end with background.
func (p *program) work(background context.Context, loops *sync.WaitGroup) {
	loops.Go(func() { _ = p.bus.Run(background) })
	loops.Go(func() { p.security.Run(background) })
	loops.Go(func() {
		middleware.Share(background, p.limiters, redis.NewCounts(p.Shared), p.processes, app.Clock, p.Log)
	})
	loops.Go(func() { p.processes.Run(background) })
	if p.Replica != nil {
		loops.Go(func() { p.Replica.Watch(background) })
	}
	loops.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		p.firstAccess(background, tick.C)
	})
	loops.Go(func() {
		tick := time.NewTicker(channelsEvery)
		defer tick.Stop()
		p.watchProviders(background, tick.C)
	})
	loops.Go(func() {
		tick := time.NewTicker(app.EraseEvery)
		defer tick.Stop()
		p.watchErased(background, tick.C)
	})
	loops.Go(func() {
		if err := p.Redis.Ping(background).Err(); err != nil && background.Err() == nil {
			p.Log.Warn("web is not ready: " + redis.Trouble(err))
		}
	})
}

// shutdown keeps serving for SHUTDOWN_DELAY: long enough for load balancers to see that the process
// is no longer ready, and for clients to get the header that closes their connections. Closing a
// connection while its client is sending would drop the request. Then shutdown ends the streams,
// which would not end by themselves, and waits for the requests in flight.
func (p *program) shutdown(server *http.Server) {
	for _, one := range p.all() {
		one.draining.Store(true)
	}
	time.Sleep(p.Config.ShutdownDelay)
	for _, one := range p.all() {
		one.hub.Close()
		one.console.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		p.Log.Warn("some requests did not finish in time", "error", err)
		_ = server.Close()
	}
}

// firstAccess creates the first admin and the first key as soon as the database answers and has its
// migrations. It tries again whenever again fires. The reason for waiting is logged once.
func (p *program) firstAccess(ctx context.Context, again <-chan time.Time) {
	told := ""
	for {
		err := p.ensureAccess(ctx)
		p.access.Store(err == nil)
		if err == nil || ctx.Err() != nil {
			return
		}
		if err.Error() != told {
			told = err.Error()
			p.Log.Warn("web is not ready: it waits for its database", "error", err)
		}
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

func (p *program) ensureAccess(ctx context.Context) error {
	if err := p.SchemaReady(ctx); err != nil {
		return err
	}
	if p.Config.AdminEmail != "" {
		if _, err := p.staff.EnsureFirstAdmin(ctx, p.Config.AdminEmail, p.Config.AdminPassword); err != nil {
			return err
		}
	}
	if p.Config.AdminAPIKey == "" {
		return nil
	}
	_, err := p.staff.EnsureKey(ctx, p.Config.AdminAPIKey, staff.ConfiguredKey, staff.Scopes())
	return err
}
