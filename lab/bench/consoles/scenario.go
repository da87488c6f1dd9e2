// Package consoles measures the cost of open consoles for a web node. Many browsers watch one
// drop, first at rest and then while its slot is delivered for half a minute. Each browser has
// the cockpit, the template's page or the overview open.
//
//	go tool task bench:consoles -- -page cockpit -n 500 -rest 20 -firing 30
//
// Every viewer must end with the same final state.
package consoles

import (
	"context"
	"fmt"
	"time"

	"dropbell/domain/delivery"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	page := f.String("page", "cockpit", "what is open: cockpit, template or overview")
	n := f.Int("n", 500, "open consoles")
	rest := f.Int("rest", 20, "seconds at rest")
	firing := f.Int("firing", 30, "seconds that the slot takes to go out")
	rate := f.Int("rate", 4000, "messages per second")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		return bench(ctx, s, plan{*page, *n, time.Duration(*rest) * time.Second, time.Duration(*firing) * time.Second, *rate})
	})
}

// plan has the parameters of the measurement.
type plan struct {
	page         string
	consoles     int
	rest, firing time.Duration
	rate         int
}

// maxShare is the share of one core, in percent, that all consoles together may cost a web node.
const maxShare = 10.0

const (
	email    = "admin@bench.example"
	password = "nobody else signs in here"
)

func bench(ctx context.Context, s *stack.Stack, p plan) error {
	web, err := s.StartProgram(ctx, "web", "ADMIN_EMAIL="+email, "ADMIN_PASSWORD="+password, "CONSOLE_SECOND_FACTOR=optional")
	if err != nil {
		return err
	}
	defer web.Stop()
	worker, err := s.StartProgram(ctx, "worker")
	if err != nil {
		return err
	}
	defer worker.Stop()

	drop, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	messages := p.rate * int(p.firing/time.Second)
	if err := s.Reserve(ctx, drop.ID, messages, stack.Bit(delivery.App)); err != nil {
		return err
	}
	if _, err := s.SQL.Exec(ctx, `update channel_settings set rate_per_second = $1 where channel = 0`, p.rate); err != nil {
		return err
	}
	visitor, err := stack.SignIn(ctx, "http://"+web.Addr, email, password)
	if err != nil {
		return err
	}
	cookie, err := visitor.Cookie()
	if err != nil {
		return err
	}
	path, ok := map[string]string{
		"cockpit":  fmt.Sprintf("/templates/%d/cockpit/live", drop.ID),
		"template": fmt.Sprintf("/live?of=/templates/%d", drop.ID),
		"overview": "/live?of=/",
	}[p.page]
	if !ok {
		return fmt.Errorf("no page is called %q", p.page)
	}
	watchers, err := open(ctx, web.Addr, path, cookie, p.consoles)
	if err != nil {
		return err
	}
	defer watchers.close()

	fmt.Printf("%d consoles (%s), %d messages at %d/s\n%-10s %8s %14s %16s %18s\n", p.consoles, p.page, messages, p.rate, "", "seconds", "web, % of core", "events per viewer", "bytes per viewer·s")
	atRest, err := measure(web, watchers, "at rest", func() error { return stack.Pause(ctx, p.rest) })
	if err != nil {
		return err
	}
	if err := s.FireSoon(ctx, drop, stack.Ahead(messages)); err != nil {
		return err
	}
	if err := s.WaitFiring(ctx, drop.ID); err != nil {
		return err
	}
	firing, err := measure(web, watchers, "firing", func() error { return s.WaitFinished(ctx, drop.ID) })
	if err != nil {
		return err
	}
	if p.page == "cockpit" {
		err = watchers.agree(ctx, messages)
	} else {
		err = watchers.agreeWith(ctx, web.Addr, path, cookie)
	}
	if err != nil {
		return err
	}
	fmt.Printf("every viewer has the final state; below %.0f %% of one core: %s\n", maxShare, map[bool]string{true: "yes", false: "NO"}[atRest < maxShare && firing < maxShare])
	return nil
}

// measure returns the share of one core that web used while during ran.
func measure(web *stack.Process, w *watchers, name string, during func() error) (float64, error) {
	cpu, err := web.CPU()
	if err != nil {
		return 0, err
	}
	events, bytes, begun := w.events.Load(), w.bytes.Load(), time.Now()
	if err := during(); err != nil {
		return 0, err
	}
	took := time.Since(begun).Seconds()
	after, err := web.CPU()
	share := 100 * (after - cpu).Seconds() / took
	n := float64(len(w.list))
	fmt.Printf("%-10s %8.1f %14.2f %16.1f %18.1f\n", name, took, share, float64(w.events.Load()-events)/n, float64(w.bytes.Load()-bytes)/n/took)
	return share, err
}
