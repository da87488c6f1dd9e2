package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"dropbell/adapters/localstack"
	"dropbell/lab/tools/dev/catcher"
	"dropbell/lab/tools/dev/shop"
)

// stack has the running servers and programs, in the order in which they were started.
type stack struct {
	settings *settings
	stops    []func(context.Context) error
	services []*service
	shop     *shop.Shop // nil = there is none
	running  sync.WaitGroup
}

// up returns when everything has stopped again.
func up(ctx context.Context, past bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go watchParents(ctx, cancel)
	s := &stack{settings: newSettings(os.Getenv)}
	s.settings.past = past
	err := s.start(ctx)
	if err == nil {
		<-ctx.Done()
	}
	say("\nstopping …")
	err = errors.Join(err, s.stop())
	if err == nil {
		say("stopped; the data is kept in %s", local)
	}
	return err
}

func (s *stack) start(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(local, "log"), 0o755); err != nil {
		return err
	}
	if err := s.settings.loadSecrets(filepath.Join(local, "secrets.env")); err != nil {
		return err
	}
	// Installing waits for the network and the disk, and building for processors.
	begin, both := errgroup.WithContext(ctx)
	begin.Go(func() error { return s.build(both) })
	begin.Go(func() error {
		return inTurn(both, s.install, s.startPostgres, s.startRedis, s.startCatcher)
	})
	if err := begin.Wait(); err != nil {
		return err
	}
	// Ports are chosen right before they are used: another program might take them while web and
	// worker are built.
	if err := inTurn(ctx, timed("the database is migrated", s.migrate), s.choosePorts, s.chooseShop, s.startServices,
		timed("web and worker are ready", s.awaitReady), s.startShop); err != nil {
		return err
	}
	if err := s.settings.record(); err != nil {
		return err
	}
	var offer offer
	err := timed("the demo data is there", func(ctx context.Context) (err error) {
		offer, err = s.seed(ctx)
		return err
	})(ctx)
	if err != nil && ctx.Err() == nil {
		// The stack itself is fine and worth keeping.
		say("the demo data is incomplete: %v", err)
	}
	if ctx.Err() == nil {
		printBlock(s.settings, offer)
		s.goLive(ctx, offer)
	}
	return nil
}

// step is one step of the start.
type step func(context.Context) error

// inTurn runs the steps one after another until a step fails.
func inTurn(ctx context.Context, steps ...step) error {
	for _, do := range steps {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// timed says how long the step took, in words for its end.
func timed(done string, do step) step {
	return func(ctx context.Context) error {
		began := time.Now()
		if err := do(ctx); err != nil {
			return err
		}
		say("%s (%.1f s)", done, time.Since(began).Seconds())
		return nil
	}
}

// install installs the missing servers, unless a variable names a running server. If the
// installation fails, the later start of the server reports the reason.
func (s *stack) install(ctx context.Context) error {
	var missing []string
	if s.settings.get("DATABASE_URL") == "" {
		missing = append(missing, localstack.PostgresPackage)
	}
	if s.settings.get("REDIS_URL") == "" {
		missing = append(missing, localstack.RedisPackage)
	}
	localstack.Install(ctx, os.Stdout, missing...)
	return nil
}

func (s *stack) startPostgres(ctx context.Context) error {
	if s.settings.get("DATABASE_URL") != "" {
		say("using the PostgreSQL of DATABASE_URL")
		return nil
	}
	began := time.Now()
	p, err := localstack.StartPostgres(ctx, localstack.Options{Dir: local, Durable: true, Port: 5432, Log: os.Stdout})
	if err != nil {
		return err
	}
	s.settings.set("DATABASE_URL", p.URL())
	s.keepAlive("PostgreSQL", p.Done, p.Restart, p.Stop)
	say("PostgreSQL listens on 127.0.0.1:%d (%.1f s)", p.Port(), time.Since(began).Seconds())
	return nil
}

func (s *stack) startRedis(ctx context.Context) error {
	if s.settings.get("REDIS_URL") != "" {
		say("using the Redis of REDIS_URL")
		return nil
	}
	began := time.Now()
	r, err := localstack.StartRedis(ctx, localstack.Options{Dir: local, Durable: true, Port: 6379, Log: os.Stdout})
	if err != nil {
		return err
	}
	s.settings.set("REDIS_URL", r.URL())
	restart := func(ctx context.Context) error { return r.Restart(ctx, false) }
	s.keepAlive("Redis", r.Done, restart, r.Stop)
	say("Redis listens on 127.0.0.1:%d (%.1f s)", r.Port(), time.Since(began).Seconds())
	return nil
}

// startCatcher starts a provider for each channel that has none configured.
func (s *stack) startCatcher(context.Context) error {
	smtp, err := port(1025, "the mail catcher")
	if err != nil {
		return err
	}
	page, err := port(8025, "the mail page")
	if err != nil {
		return err
	}
	s.settings.catcher = fmt.Sprintf("http://127.0.0.1:%d", page)
	s.settings.setDefault("SMTP_URL", fmt.Sprintf("smtp://127.0.0.1:%d?from=drops@dropbell.test", smtp))
	for name, value := range catcher.SMSVariables(s.settings.get("SMS_PROVIDER"), s.settings.catcher) {
		s.settings.setDefault(name, value)
	}
	s.settings.setDefault("SMS_URL", s.settings.catcher+"/sms")
	s.settings.setDefault("WEBHOOK_URL", s.settings.catcher+"/webhook")
	phones, err := catcher.PushVariables(s.settings.catcher)
	if err != nil {
		return err
	}
	s.settings.setDefaults([]string{"APNS_KEY", "APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC", "APNS_URL"}, phones)
	s.settings.setDefaults([]string{"FCM_SERVICE_ACCOUNT", "FCM_URL"}, phones)
	c, err := catcher.Start(catcher.Config{
		Dir:           filepath.Join(local, "mail"),
		SMTPAddr:      fmt.Sprintf("127.0.0.1:%d", smtp),
		HTTPAddr:      fmt.Sprintf("127.0.0.1:%d", page),
		SMSToken:      s.settings.get("SMS_TOKEN"),
		WebhookSecret: s.settings.get("WEBHOOK_SECRET"),
	})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, c.Close)
	return nil
}

func (s *stack) build(ctx context.Context) error {
	say("building the program …")
	return timed("the program is built", s.goBuild)(ctx)
}

// goBuild builds the program that is both web and worker, without debugging data, which takes a
// sixth of the compiler's time. Packages of the standard library are compiled with the task
// runner's settings, so that packages that both use are compiled once.
func (s *stack) goBuild(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-gcflags=all=-dwarf=false", "-gcflags=std=", "-ldflags=-s -w", "-o", binary(program), "./dropbell")
	// Of the compiler, which would spend a quarter of its time on collecting garbage.
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=1GiB")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil: // the compiler was killed
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("build the program: %w", err)
	}
	return nil
}

func (s *stack) migrate(ctx context.Context) error {
	say("migrating the database …")
	cmd := exec.CommandContext(ctx, binary(program), "migrate", "contract")
	cmd.Env = s.settings.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("migrate: %w\n%s", err, out)
	}
	return nil
}

// program is run as web and as worker.
const program = "dropbell"

func binary(name string) string { return filepath.Join(local, "bin", name) }

func (s *stack) startServices(context.Context) error {
	for _, name := range []string{"worker", "web"} {
		log, err := openLog(filepath.Join(local, "log", name+".log"), os.Stderr)
		if err != nil {
			return err
		}
		v := &service{name: name, env: s.settings.environment(), log: log}
		ctx, stop := context.WithCancel(context.Background())
		v.stop = stop
		s.services = append(s.services, v)
		s.running.Go(func() { v.run(ctx) })
	}
	return nil
}

// stop ends web and worker first, concurrently, because they need the other servers to finish
// their work.
func (s *stack) stop() error {
	for _, v := range s.services {
		v.stop()
	}
	s.running.Wait()
	var err error
	for i := range s.stops {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err = errors.Join(err, s.stops[len(s.stops)-1-i](ctx))
		cancel()
	}
	return err
}
