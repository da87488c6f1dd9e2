// Package providers measures how fast the worker hands messages to providers on this machine.
// Each provider is a process of its own: a webhook endpoint and a mail server that count the
// messages and do little more. The comparison in the same run is a bare loop that sends the same
// messages to the same provider over as many connections, and records nothing. For webhooks
// there are three loops: the first renders a chunk before it sends it, as every client must; the
// second sends bodies that were rendered beforehand; the third also reads its recipients. The
// webhooks' users also get two campaigns; in one of them each user has a link of their own.
//
//	go tool task bench:providers -- -webhooks 1000000 -mails 100000 -runs 3
package providers

import (
	"context"
	"fmt"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	sink := f.String("sink", "", "internal: be this provider")
	webhooks := f.Int("webhooks", 1_000_000, "messages to the webhook endpoint, 0 = none")
	mails := f.Int("mails", 100_000, "mails, 0 = none")
	runs := f.Runs(3)
	measure := scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		return bench(ctx, s, []trial{hooks(*webhooks), mailing(*mails)}, *runs)
	})
	return func(ctx context.Context) error {
		if *sink != "" {
			return serve(*sink)
		}
		return measure(ctx)
	}
}

// A trial is one kind of provider.
type trial struct {
	name    string
	channel delivery.Channel
	n       int
	// env returns the worker's settings of the provider.
	env   func(addr string) []string
	loops []loop // the first is the peer
	ours  []string
}

// A loop sends what the job says and returns when every call is answered.
type loop struct {
	name string
	send func(ctx context.Context, j job) error
}

// A job is to send messages about something to users 1…n at addr.
type job struct {
	stack *stack.Stack
	addr  string
	about delivery.Subject
	n     int
}

// speeds are messages per second, and the worker's processor time for each.
type speeds struct {
	arrived, recorded float64
	cpu               time.Duration
}

func bench(ctx context.Context, s *stack.Stack, trials []trial, runs int) error {
	fmt.Printf("%-10s %-20s %10s %12s %14s %8s %8s %12s\n", "provider", "sender", "messages", "arrived/s", "recorded/s", "missing", "twice", "CPU each")
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
	type pair struct{ ours, loop string }
	arrived, recorded := map[pair][]float64{}, map[pair][]float64{}
	for range runs {
		ours, loops, err := t.once(ctx, s)
		if err != nil {
			return err
		}
		for i, o := range ours {
			for j, l := range loops {
				p := pair{t.ours[i], t.loops[j].name}
				arrived[p] = append(arrived[p], o.arrived/l.arrived)
				recorded[p] = append(recorded[p], o.recorded/l.arrived)
			}
		}
	}
	for _, name := range t.ours {
		for _, l := range t.loops {
			p := pair{name, l.name}
			fmt.Printf("%s, medians of %s/%s: arrived %.2f, due to recorded %.2f\n", t.name, p.ours, p.loop, stack.Median(arrived[p]), stack.Median(recorded[p]))
		}
	}
	return nil
}

// once lets every loop and then the worker send to the same provider. ours has the results of
// the worker, one for each name in [trial.ours].
func (t trial) once(ctx context.Context, s *stack.Stack) (ours, loops []speeds, err error) {
	sink, err := startSink(ctx, t.name)
	if err != nil {
		return ours, nil, err
	}
	defer sink.Stop()
	about := delivery.Subject{Kind: delivery.KindReminder, TemplateID: 1, TemplateName: "Bench drop", ShopNumber: "10", Slot: 1,
		DueAt: time.Now(), OpensAt: time.Now().Add(5 * time.Minute)}
	for _, l := range t.loops {
		v, err := t.drive(ctx, sink, l, job{s, sink.addr, about, t.n})
		if err != nil {
			return ours, nil, err
		}
		loops = append(loops, v)
	}
	ours, err = t.product(ctx, s, sink)
	return ours, loops, err
}

func (t trial) drive(ctx context.Context, sink *sink, l loop, j job) (v speeds, err error) {
	if err := sink.expect(ctx, t.n); err != nil {
		return v, err
	}
	if err := l.send(ctx, j); err != nil {
		return v, err
	}
	c, err := sink.counted(ctx)
	if err != nil {
		return v, err
	}
	v.arrived = c.perSecond()
	c.print(t.name, l.name, v)
	return v, c.complete()
}

// product lets a worker send: first the reminders, then the campaigns of the trial, to the same
// users.
func (t trial) product(ctx context.Context, s *stack.Stack, sink *sink) (list []speeds, err error) {
	if err := s.Empty(ctx); err != nil {
		return nil, err
	}
	worker, err := s.StartProgram(ctx, "worker", t.env(sink.addr)...)
	if err != nil {
		return nil, err
	}
	defer worker.Stop()
	drop, err := s.Drop(ctx, time.Hour)
	if err != nil {
		return nil, err
	}
	if err := s.Reserve(ctx, drop.ID, t.n, stack.Bit(t.channel)); err != nil {
		return nil, err
	}
	for i, name := range t.ours {
		send := func() (time.Duration, error) { return t.remind(ctx, s, drop) }
		if i > 0 {
			send = func() (time.Duration, error) { return t.campaign(ctx, s, drop.ID, name) }
		}
		v, err := t.watch(ctx, sink, worker, name, send)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// watch measures the messages that send hands to the provider. send returns the time until all
// outcomes were recorded.
func (t trial) watch(ctx context.Context, sink *sink, worker *stack.Process, name string, send func() (time.Duration, error)) (v speeds, err error) {
	if err := sink.expect(ctx, t.n); err != nil {
		return v, err
	}
	before, err := worker.CPU()
	if err != nil {
		return v, err
	}
	took, err := send()
	if err != nil {
		return v, err
	}
	after, err := worker.CPU()
	if err != nil {
		return v, err
	}
	c, err := sink.counted(ctx)
	if err != nil {
		return v, err
	}
	v = speeds{arrived: c.perSecond(), recorded: float64(t.n) / took.Seconds(), cpu: (after - before) / time.Duration(t.n)}
	c.print(t.name, name, v)
	return v, c.complete()
}

func (t trial) remind(ctx context.Context, s *stack.Stack, drop template.Template) (time.Duration, error) {
	if err := s.FireSoon(ctx, drop, stack.Ahead(t.n)); err != nil {
		return 0, err
	}
	if err := s.WaitFinished(ctx, drop.ID); err != nil {
		return 0, err
	}
	late, err := s.Lateness(ctx, drop.ID, t.n)
	return late.Last, err
}

// campaign sends a campaign to all users that reserved the drop. The link of its message leads
// to the drop's claim page.
func (t trial) campaign(ctx context.Context, s *stack.Stack, dropID int64, name string) (time.Duration, error) {
	if _, err := s.SQL.Exec(ctx, `update templates set claim_url = 'https://shop.example/claim' where id = $1`, dropID); err != nil {
		return 0, err
	}
	took, err := s.SendCampaign(ctx, campaign.Spec{Channel: t.channel, Audience: campaign.Audience{Kind: campaign.Reserved, ID: dropID},
		Content: stack.Wording(wordings[name])}, t.n)
	return took.All, err
}

// The trials' names of the kinds of messages.
const (
	reminders = "reminders"
	plain     = "campaign"
	linked    = "campaign, own links"
)

var wordings = map[string]string{plain: "Everything must go", linked: "Everything must go: {{link}}"}
