// Package codes measures redeem codes: making and refusing codes without any store, generating
// and exporting a batch, and the memory of generating and exporting.
//
//	go tool task bench:codes
package codes

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"runtime"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, runs := f.Int64("n", redeemcode.MaxCount, "codes in the batch"), f.Runs(3)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *n, *runs) })
}

func bench(ctx context.Context, s *stack.Stack, n int64, runs int) error {
	t, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	if _, err := s.SQL.Exec(ctx, `update templates set obtain = 'code' where id = $1`, t.ID); err != nil {
		return err
	}
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	keys, err := redeemcode.ParseKeys("1:" + base64.StdEncoding.EncodeToString(key[:]))
	if err != nil {
		return err
	}
	for range runs {
		if err := run(ctx, s, keys, t.ID, n); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, s *stack.Stack, keys *redeemcode.Keyring, templateID, n int64) error {
	sample := min(n, 200_000)
	bare := perSecond(sample, floor(sample))
	made, err := timed(func() error {
		for i := range sample {
			if _, err := keys.Code(1, redeemcode.Serial(i+1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	refused, err := timed(func() error { return forge(keys, sample) })
	if err != nil {
		return err
	}
	fmt.Printf("one core: %8.0f/s eleven bare HMACs   %8.0f/s codes made (%.2f of it)   %8.0f/s forged ones refused\n",
		bare, perSecond(sample, made), perSecond(sample, made)/bare, perSecond(sample, refused))
	return batch(ctx, &redeemcode.Service{Store: couponsdb.NewCodes(s.DB), Keys: keys, Now: time.Now}, workdb.NewJobs(s.DB), templateID, n)
}

// floor does the least work for a code: ten rounds and a check value.
func floor(n int64) time.Duration {
	mac, sum := hmac.New(sha256.New, []byte("a key of 32 bytes, for benchmark")), make([]byte, 0, 32)
	in := make([]byte, 9)
	start := time.Now()
	for range 11 * n {
		mac.Reset()
		mac.Write(in)
		sum = mac.Sum(sum[:0])
	}
	return time.Since(start)
}

func forge(keys *redeemcode.Keyring, n int64) error {
	code, err := redeemcode.Parse("1000-0000-0000-0000")
	if err != nil {
		return err
	}
	for range n {
		if _, err := keys.Serial(code); err == nil {
			return fmt.Errorf("a forged code passes")
		}
	}
	return nil
}

// batch generates n codes as a worker does, and exports them.
func batch(ctx context.Context, service *redeemcode.Service, jobs workdb.Jobs, templateID, n int64) error {
	b, err := service.Generate(ctx, staff.System(), templateID, n, "")
	if err != nil {
		return err
	}
	generated, err := timed(func() error {
		return work(ctx, jobs, &redeemcode.Generator{Store: couponsdb.NewCodes(jobs.DB), Keys: service.Keys}, b.JobID)
	})
	if err != nil {
		return err
	}
	x, err := service.Export(ctx, staff.System(), templateID, b.ID)
	if err != nil {
		return err
	}
	out := &sink{}
	exported, err := timed(func() error { return service.Write(ctx, x, out) })
	if err != nil {
		return err
	}
	if out.lines != n+1 {
		return fmt.Errorf("%d lines for %d codes", out.lines, n)
	}
	fmt.Printf("batch of %d: generated and verified in %v (%.0f/s), exported in %v (%.0f/s, %d MB); heap while exporting at most %.1f MiB\n",
		n, generated.Round(time.Millisecond), perSecond(n, generated), exported.Round(time.Millisecond), perSecond(n, exported), out.bytes/1_000_000, float64(out.peak)/(1<<20))
	return nil
}

func work(ctx context.Context, jobs workdb.Jobs, g *redeemcode.Generator, id int64) error {
	l, err := jobs.LeaseJob(ctx, id, []string{redeemcode.JobKind}, time.Minute)
	for err == nil {
		var p job.Progress
		if p, err = g.Step(ctx, l.Job); err != nil {
			return err
		}
		if l.Job, err = jobs.SaveJob(ctx, l, p, time.Minute); p.Finished {
			return err
		}
	}
	return err
}

// sink counts the written bytes and watches the heap.
type sink struct {
	lines, bytes int64
	peak         uint64
	writes       int
}

func (s *sink) Write(p []byte) (int, error) {
	for _, c := range p {
		if c == '\n' {
			s.lines++
		}
	}
	s.bytes += int64(len(p))
	if s.writes++; s.writes%10 == 1 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.peak = max(s.peak, m.HeapInuse)
	}
	return len(p), nil
}

func timed(do func() error) (time.Duration, error) {
	start := time.Now()
	err := do()
	return time.Since(start), err
}

func perSecond(n int64, took time.Duration) float64 { return float64(n) / took.Seconds() }
