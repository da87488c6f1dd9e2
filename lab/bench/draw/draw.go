// Package draw measures how long a draw of millions of entries takes to seal and to draw, without
// a database, compared with the bare hashes and sorts; and how fast winners get their coupons, compared with
// a grant of as many coupons.
//
//	go tool task bench:draw
package draw

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"dropbell/domain/draw"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, runs := f.Int("n", 5_000_000, "entries"), f.Runs(3)
	won := f.Int("won", 50_000, "winners whose coupons are measured; 0 = none")
	return func(ctx context.Context) error {
		if err := bench(*n, *runs); err != nil || *won == 0 {
			return err
		}
		return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return issue(ctx, s, *won, *runs) })(ctx)
	}
}

func bench(n, runs int) error {
	fmt.Printf("%d processors, %s\n", runtime.GOMAXPROCS(0), runtime.Version())
	var ratios []float64
	for range runs {
		bare := floor(n)
		sealed, drawn, err := measure(n)
		if err != nil {
			return err
		}
		ratios = append(ratios, bare.Seconds()/(sealed+drawn).Seconds())
		fmt.Printf("%d entries: sealed in %.2f s, drawn in %.2f s, together %.2f s   bare hashes and sorts %.2f s (%.2f of it)\n", n,
			sealed.Seconds(), drawn.Seconds(), (sealed + drawn).Seconds(), bare.Seconds(), ratios[len(ratios)-1])
	}
	fmt.Printf("median bare/draw %.2f\n", stack.Median(ratios))
	return nil
}

// measure seals and draws n entries of weight 1. Commitments are made at the seal, from users and salts.
func measure(n int) (sealed, drawn time.Duration, err error) {
	random := make([]byte, 32*n)
	rand.Read(random)
	began := time.Now()
	rows := make([]draw.Row, n)
	parts(n, func(from, to int) {
		for i := from; i < to; i++ {
			b := random[32*i:]
			rows[i] = draw.Entry{UserID: int64(i + 1), Ticket: draw.Ticket(b[:16]), Salt: draw.Salt(b[16:32]), Weight: 1}.Row()
		}
	})
	closes := draw.RoundTime(1000).Add(-draw.RoundAfter)
	card := draw.Card{Drop: 1, Version: 1, ClosesAt: closes, Stock: n / 100, MaxWeight: 1, Source: draw.Source{Kind: draw.Drand, Detail: draw.QuicknetChain}}
	seal, err := draw.NewSeal(card, rows, closes, nil)
	if err != nil {
		return 0, 0, err
	}
	sealed, began = time.Since(began), time.Now()
	_, _, o, err := draw.NewResult(card, seal, rows, "00", nil, believer{})
	if err == nil && len(o.Winners) != n/100 {
		err = fmt.Errorf("%d of %d won", len(o.Winners), n)
	}
	return sealed, time.Since(began), err
}

// believer accepts every signature, so that no signature is measured.
type believer struct{}

func (believer) Verify(string, int64, []byte) error { return nil }

// floor makes the hashes that n entries need, a commitment, a leaf, an inner node and a score each, on all processors, and
// then sorts two lists of n numbers at the same time.
func floor(n int) time.Duration {
	began := time.Now()
	parts(n, func(from, to int) {
		var in [65]byte
		for i := from; i < to; i++ {
			binary.BigEndian.PutUint64(in[:], uint64(i))
			for _, size := range []int{24, 58, 65, 49} {
				h := sha256.Sum256(in[:size])
				copy(in[8:], h[:16])
			}
		}
	})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			list := make([]uint64, n)
			for i := range list {
				list[i] = mathrand.Uint64()
			}
			slices.Sort(list)
		})
	}
	group.Wait()
	return time.Since(began)
}

// parts calls do with a part of 0…n on each processor.
func parts(n int, do func(from, to int)) {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() { do(n*w/workers, n*(w+1)/workers) })
	}
	group.Wait()
}
