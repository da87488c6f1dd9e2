// Package doors measures what doors cost a claim: claims per second at the durable gate of a drop with four
// frozen doors of a million members each, beside a drop without doors, in turns on the same database. It also
// measures the memory of the members and the time of one look at them.
//
//	go tool task bench:doors
package doors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/claim"
	"dropbell/domain/door"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// doors is how many doors the drop has.
const doors = 4

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs := f.Callers(256), f.Lasting(5), f.Runs(5)
	members, among := f.Int("members", 1_000_000, "members of each door"), f.Int("among", 10_000_000, "users among whom the members are spread at random")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := &bench{Stack: s, callers: *callers, lasting: *lasting}
		return b.run(ctx, *runs, *members, *among)
	})
}

type bench struct {
	*stack.Stack
	callers int
	lasting time.Duration
	gate    claim.Doors
	// comers are the members of the doors, each once, in random order.
	comers []user.ID
}

func (b *bench) run(ctx context.Context, runs, members, among int) error {
	plain, err := b.drop(ctx)
	if err != nil {
		return err
	}
	doored, err := b.drop(ctx)
	if err != nil {
		return err
	}
	if err := b.fill(ctx, doored, members, among); err != nil {
		return err
	}
	templates, err := lookup.New(dropsdb.NewTemplates(b.DB), time.Now)
	if err != nil {
		return err
	}
	durable := couponsdb.NewClaims(b.DB, postgres.Grouping{})
	defer durable.Close()
	b.gate = claim.Doors{Gate: durable, Templates: templates, Members: &door.Members{Store: audiencedb.NewDoors(b.DB), Now: time.Now}, Now: time.Now}
	if err := b.look(ctx, doored); err != nil {
		return err
	}
	var next [2]atomic.Int64
	ratios := make([]float64, runs)
	for i := range ratios {
		var perSecond [2]float64
		for n, id := range []int64{plain, doored} {
			w, err := scenario.Drive(b.callers, b.lasting, func(int64) error {
				at := next[n].Add(1) - 1
				if at >= int64(len(b.comers)) {
					return errors.New("all members have claimed: choose more members")
				}
				_, err := b.gate.Claim(ctx, claim.Request{ID: claim.NewID(rand.Uint64(), id), TemplateID: id, UserID: b.comers[at], Origin: claim.ByTap})
				return err
			})
			if err != nil {
				return fmt.Errorf("claim: %w", err)
			}
			perSecond[n] = w.PerSecond
		}
		ratios[i] = perSecond[1] / perSecond[0]
		fmt.Printf("without doors %8.0f claims/s, with four %8.0f/s (%.3f)\n", perSecond[0], perSecond[1], ratios[i])
	}
	fmt.Printf("median: a claim through a door at %.3f of the rate of a claim without doors\n", stack.Median(ratios))
	return nil
}

// drop returns an open drop whose stock does not end.
func (b *bench) drop(ctx context.Context) (int64, error) {
	t, err := b.Drop(ctx, time.Hour)
	if err != nil {
		return 0, err
	}
	_, err = b.SQL.Exec(ctx, `update templates set opens_at = date_trunc('second', now()) - interval '1 minute', stock = 1000000000 where id = $1`, t.ID)
	return t.ID, err
}

// fill gives the drop frozen doors whose members are spread at random.
func (b *bench) fill(ctx context.Context, id int64, members, among int) error {
	all := roaring64.New()
	for place := 1; place <= doors; place++ {
		set := roaring64.New()
		for int(set.GetCardinality()) < members {
			set.Add(1 + rand.Uint64N(uint64(among)))
		}
		all.Or(set)
		if _, err := b.SQL.Exec(ctx, `insert into doors (template_id, place, name, who, lead_minutes, share, user_limit, texts, cut_to, members, cut_at, frozen_at)
			values ($1, $2::int, 'Door ' || $2::int, 'list', 0, 0, 0, '{}', 9223372036854775807, $3, now(), now())`, id, place, members); err != nil {
			return err
		}
		for chunk := range uint64(among)>>16 + 1 {
			part := roaring64.New()
			part.AddRange(chunk<<16, (chunk+1)<<16)
			part.And(set)
			raw, err := part.ToBytes()
			if err != nil {
				return err
			}
			if _, err := b.SQL.Exec(ctx, `insert into door_members (template_id, place, chunk, members, count) values ($1, $2, $3, $4, $5)`,
				id, place, int64(chunk), raw, part.GetCardinality()); err != nil {
				return err
			}
		}
	}
	for it := all.Iterator(); it.HasNext(); {
		b.comers = append(b.comers, user.ID(it.Next()))
	}
	rand.Shuffle(len(b.comers), func(i, j int) { b.comers[i], b.comers[j] = b.comers[j], b.comers[i] })
	_, err := b.SQL.Exec(ctx, `update templates set doors = $2, version = version + 1 where id = $1`, id, doors)
	return err
}

// look reads the members, and prints their memory and the time of one look.
func (b *bench) look(ctx context.Context, id int64) error {
	t, err := b.gate.Templates.Current(ctx, id)
	if err != nil {
		return err
	}
	before := heap()
	began := time.Now()
	for place := 1; place <= doors; place++ {
		set, err := audiencedb.NewDoors(b.DB).Frozen(ctx, id, place)
		if err != nil {
			return err
		}
		defer runtime.KeepAlive(set)
	}
	took, size := time.Since(began), heap()-before
	fmt.Printf("members in memory: %.2f MB a million, read in %s\n", float64(size)/1e6/float64(len(t.Doors))/(float64(t.Doors[0].Members)/1e6), took.Round(time.Millisecond))
	for begin := time.Now(); time.Since(begin) < time.Second; { // until the gate has read them
		if _, err := b.gate.Members.Door(ctx, t, b.comers[0]); err != nil {
			return err
		}
	}
	begin := time.Now()
	for _, by := range b.comers[:min(len(b.comers), 1_000_000)] {
		if _, err := b.gate.Members.Door(ctx, t, by); err != nil {
			return err
		}
	}
	fmt.Printf("one look: %s\n", time.Since(begin)/time.Duration(min(len(b.comers), 1_000_000)))
	return nil
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
