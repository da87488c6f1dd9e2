// Package streams measures the live inbox with many clients: web's memory per idle stream, the
// time until one reminder has reached all clients, and the reconnects after all web processes
// were killed. Clients and web are several processes of some 16,000 connections each, below the
// usual limit of open files.
//
//	go tool task bench:streams -- -n 50000
package streams

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dropbell/adapters/localstack/child"
	"dropbell/domain/delivery"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Aims.
const (
	maxKiB  = 8.0 // of web's memory for each idle stream
	maxPush = time.Second
)

type options struct {
	n, perProcess int
	rest          time.Duration
	bin           string
}

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	var o options
	f.IntVar(&o.n, "n", 50_000, "clients")
	f.IntVar(&o.perProcess, "per-process", 16_700, "clients of each web process")
	f.DurationVar(&o.rest, "rest", 30*time.Second, "rest before memory is measured")
	bin := f.Bin()
	crowdOf := f.String("crowd", "", "internal: be the clients: address,source,first user,number")
	measure := scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		o.bin = *bin
		return bench(ctx, s, o)
	})
	return func(ctx context.Context) error {
		if *crowdOf != "" {
			return beCrowd(*crowdOf)
		}
		return measure(ctx)
	}
}

func beCrowd(of string) error {
	parts := strings.Split(of, ",")
	if len(parts) != 4 {
		return errors.New("-crowd wants four parts")
	}
	first, err1 := strconv.Atoi(parts[2])
	n, err2 := strconv.Atoi(parts[3])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return (&crowd{addr: parts[0], source: net.ParseIP(parts[1]), first: first, n: n}).work(os.Stdin, os.Stdout)
}

// A site is one web process and its clients.
type site struct {
	web     *stack.Process
	idleMiB float64 // of web without clients
	n       int
	crowd   *child.Process
	ask     io.Writer
	answers *json.Decoder
}

func (s *site) sight() (v sight, err error) {
	if _, err = io.WriteString(s.ask, "look\n"); err != nil {
		return v, err
	}
	return v, s.answers.Decode(&v)
}

type arena struct {
	*stack.Stack
	options
	sites []*site
}

func bench(ctx context.Context, s *stack.Stack, o options) error {
	var remove func()
	var err error
	if o.bin, remove, err = stack.Programs(ctx, o.bin); err != nil {
		return err
	}
	defer remove()
	a := &arena{Stack: s, options: o}
	defer a.close()
	drop, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	if err := s.Reserve(ctx, drop.ID, o.n, stack.Bit(delivery.App)); err != nil {
		return err
	}
	worker, err := s.Launch(o.bin+"/worker", stack.Launch{})
	if err != nil {
		return err
	}
	defer worker.Stop()
	if err := errors.Join(worker.Ready(ctx, time.Minute), a.open(ctx)); err != nil {
		return err
	}
	if err := a.idle(ctx); err != nil {
		return err
	}
	if err := s.FireSoon(ctx, drop, stack.Ahead(o.n)); err != nil {
		return err
	}
	if err := a.pushed(ctx, drop.ID); err != nil {
		return err
	}
	return a.storm(ctx)
}

func (a *arena) close() {
	for _, s := range a.sites {
		if s.crowd != nil {
			_ = s.crowd.Stop(context.Background(), syscall.SIGKILL, time.Second)
		}
		s.web.Kill()
	}
}

func (a *arena) launch(ctx context.Context, addr string) (*stack.Process, error) {
	p, err := a.Launch(a.bin+"/web", stack.Launch{Addr: addr, Env: []string{"AUTH_JWT_SECRET=" + secret, "RATE_LIMIT_PER_MINUTE=0"}})
	if err != nil {
		return nil, err
	}
	return p, p.Ready(ctx, time.Minute)
}

// open starts web processes and clients until all streams have begun.
func (a *arena) open(ctx context.Context) error {
	for first := 1; first <= a.n; first += a.perProcess {
		web, err := a.launch(ctx, "")
		if err != nil {
			return err
		}
		a.sites = append(a.sites, &site{web: web, n: min(a.perProcess, a.n-first+1)})
	}
	time.Sleep(5 * time.Second) // so that web gives back the memory of its start
	started := time.Now()
	for i, s := range a.sites {
		s.idleMiB, _ = s.web.Memory()
		cmd := scenario.Self(ctx, "streams", "-crowd", fmt.Sprintf("%s,127.0.0.%d,%d,%d", s.web.Addr, i+2, i*a.perProcess+1, s.n))
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		var err error
		if s.crowd, err = child.Start(cmd, syscall.SIGKILL); err != nil {
			return err
		}
		s.ask, s.answers = in, json.NewDecoder(bufio.NewReader(out))
	}
	if err := a.until(ctx, func(v sight) bool { return v.Ready == int64(a.n) }); err != nil {
		return err
	}
	fmt.Printf("%d clients of %d web processes have connected within %.1f s\n", a.n, len(a.sites), time.Since(started).Seconds())
	return nil
}

// total is the sum of the observations of all crowds.
func (a *arena) total() (sum sight, err error) {
	for _, s := range a.sites {
		v, err := s.sight()
		if err != nil {
			return sum, err
		}
		sum.Ready, sum.Messages, sum.Dials, sum.Failures = sum.Ready+v.Ready, sum.Messages+v.Messages, sum.Dials+v.Dials, sum.Failures+v.Failures
		if v.Last.After(sum.Last) {
			sum.Last = v.Last
		}
	}
	return sum, nil
}

func (a *arena) until(ctx context.Context, done func(sight) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return stack.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		v, err := a.total()
		return done(v), err
	})
}

// idle measures the memory of the streams at rest.
func (a *arena) idle(ctx context.Context) error {
	select {
	case <-time.After(a.rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	var grown float64
	for _, s := range a.sites {
		now, _ := s.web.Memory()
		grown += now - s.idleMiB
	}
	each := grown * 1024 / float64(a.n)
	fmt.Printf("idle: %.1f KiB of web's memory each, %.0f thousand per GB; aim %.0f KiB: %s\n", each, 1e9/1024/each/1000, maxKiB, met(each <= maxKiB))
	return nil
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "NOT met"
}

// pushed waits until every client has the reminder.
func (a *arena) pushed(ctx context.Context, templateID int64) error {
	if err := a.until(ctx, func(v sight) bool { return v.Messages >= int64(a.n) }); err != nil {
		return err
	}
	v, err := a.total()
	if err != nil {
		return err
	}
	var due, first, last time.Time
	err = a.SQL.QueryRow(ctx, `select min(b.due_at), min(b.finished_at), max(b.finished_at) from batches b where b.template_id = $1 and b.channel = 0
		and b.sent_count > 0`, templateID).Scan(&due, &first, &last)
	if err != nil {
		return err
	}
	took := v.Last.Sub(first)
	fmt.Printf("push: the last of %d clients had the reminder %.2f s after the first batch was recorded, %.2f s after the last one, %.2f s after it was due; aim %.0f s: %s\n",
		a.n, took.Seconds(), v.Last.Sub(last).Seconds(), v.Last.Sub(due).Seconds(), maxPush.Seconds(), met(took <= maxPush))
	if v.Messages != int64(a.n) {
		return fmt.Errorf("%d messages for %d clients", v.Messages, a.n)
	}
	return nil
}

// storm kills all web processes and starts them again.
func (a *arena) storm(ctx context.Context) error {
	before, err := a.total()
	if err != nil {
		return err
	}
	killed := time.Now()
	for _, s := range a.sites {
		s.web.Kill()
	}
	for _, s := range a.sites {
		if s.web, err = a.launch(ctx, s.web.Addr); err != nil {
			return err
		}
	}
	up := time.Since(killed)
	if err := a.until(ctx, func(v sight) bool { return v.Ready == int64(a.n) && v.Dials > before.Dials }); err != nil {
		return err
	}
	back := time.Since(killed)
	v, err := a.total()
	if err != nil {
		return err
	}
	var peak float64
	for _, s := range a.sites {
		_, p := s.web.Memory()
		peak = max(peak, p)
	}
	fmt.Printf("storm: web was away for %.1f s; all clients are back %.1f s after it was killed, %d of %d attempts failed; web at most %.0f MiB\n",
		up.Seconds(), back.Seconds(), v.Failures-before.Failures, v.Dials-before.Dials, peak)
	if twice := v.Messages - before.Messages; twice != 0 {
		return fmt.Errorf("%d messages came again", twice)
	}
	return nil
}
