// Providers measures how fast the worker hands messages to providers on this
// machine, each in a process of its own: a webhook endpoint and a mail server
// that count what arrives and do little else. The peer in the same run does
// the least anybody could: a bare loop that sends the same messages to the same
// provider over as many connections, and records nothing.
//
//	go run ./bench/providers -webhooks 1000000 -mails 100000 -runs 3
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"dropbell/bench/stack"
	"dropbell/domain/delivery"
)

func main() {
	sink := flag.String("sink", "", "internal: be this provider")
	webhooks := flag.Int("webhooks", 1_000_000, "messages to the webhook endpoint, 0 = none")
	mails := flag.Int("mails", 100_000, "mails, 0 = none")
	runs := flag.Int("runs", 3, "repetitions")
	flag.Parse()
	err := error(nil)
	if *sink != "" {
		err = serve(*sink)
	} else {
		err = bench(context.Background(), []trial{hooks(*webhooks), mailing(*mails)}, *runs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A trial is one kind of provider.
type trial struct {
	name    string
	channel delivery.Channel
	n       int
	// env tells the worker where the provider is.
	env func(addr string) []string
	// peer sends the messages about the subject to users 1…n and returns when all are answered.
	peer func(ctx context.Context, addr string, about delivery.Subject, n int) error
}

// speeds are messages per second.
type speeds struct{ arrived, recorded float64 }

func bench(ctx context.Context, trials []trial, runs int) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(stack.Machine(ctx, s))
	fmt.Printf("%-10s %-10s %10s %12s %14s %8s %8s\n", "provider", "sender", "messages", "arrived/s", "recorded/s", "missing", "twice")
	for _, t := range trials {
		if t.n == 0 {
			continue
		}
		if err := t.repeat(ctx, s, runs); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

func (t trial) repeat(ctx context.Context, s *stack.Stack, runs int) error {
	if err := s.Users(ctx, t.n); err != nil {
		return err
	}
	var arrived, recorded []float64
	for range runs {
		ours, peers, err := t.once(ctx, s)
		if err != nil {
			return err
		}
		arrived = append(arrived, ours.arrived/peers.arrived)
		recorded = append(recorded, ours.recorded/peers.arrived)
	}
	fmt.Printf("%s, medians of Dropbell/bare loop: arrived %.2f, due to recorded %.2f (floor 0.50)\n",
		t.name, stack.Median(arrived), stack.Median(recorded))
	return nil
}

// once lets the bare loop and then the worker send to the same provider.
func (t trial) once(ctx context.Context, s *stack.Stack) (ours, peers speeds, err error) {
	sink, err := startSink(ctx, t.name)
	if err != nil {
		return ours, peers, err
	}
	defer sink.stop()
	drop, err := s.Drop(ctx, time.Hour)
	if err != nil {
		return ours, peers, err
	}
	if peers, err = t.bare(ctx, sink, drop.ID); err != nil {
		return ours, peers, err
	}
	ours, err = t.product(ctx, s, sink)
	return ours, peers, err
}

func (t trial) bare(ctx context.Context, sink *sink, templateID int64) (v speeds, err error) {
	if err := sink.expect(ctx, t.n); err != nil {
		return v, err
	}
	about := delivery.Subject{Kind: delivery.KindReminder, TemplateID: templateID, TemplateName: "Bench drop", ShopNumber: "10", Slot: 1,
		DueAt: time.Now(), OpensAt: time.Now().Add(5 * time.Minute)}
	if err := t.peer(ctx, sink.addr, about, t.n); err != nil {
		return v, err
	}
	c, err := sink.counted(ctx)
	v.arrived = c.perSecond()
	c.print(t.name, "bare loop", v)
	return v, err
}

func (t trial) product(ctx context.Context, s *stack.Stack, sink *sink) (v speeds, err error) {
	if err := s.Empty(ctx); err != nil {
		return v, err
	}
	worker, err := s.StartProgram(ctx, "worker", t.env(sink.addr)...)
	if err != nil {
		return v, err
	}
	defer worker.Stop()
	drop, err := s.Drop(ctx, time.Hour)
	if err != nil {
		return v, err
	}
	if err := s.Reserve(ctx, drop.ID, t.n, stack.Bit(t.channel)); err != nil {
		return v, err
	}
	if err := sink.expect(ctx, t.n); err != nil {
		return v, err
	}
	if err := s.FireSoon(ctx, drop, stack.Ahead(t.n)); err != nil {
		return v, err
	}
	if err := s.WaitFinished(ctx, drop.ID); err != nil {
		return v, err
	}
	late, err := s.Lateness(ctx, drop.ID, t.n)
	if err != nil {
		return v, err
	}
	c, err := sink.counted(ctx)
	if err != nil {
		return v, err
	}
	v = speeds{arrived: c.perSecond(), recorded: float64(t.n) / late.Last.Seconds()}
	c.print(t.name, "Dropbell", v)
	return v, c.complete()
}
