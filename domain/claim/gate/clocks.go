package gate

import (
	"context"
	"errors"
	"time"
)

// A ServerClock is the clock of the server that has a shard.
type ServerClock struct {
	Server string // which process it is, "" = unknown
	At     time.Time
}

// An Offset says how far the clock of a shard's server is ahead of the database's.
type Offset struct {
	Server string
	Ahead  time.Duration
}

const (
	// measuredWithin is the longest time that a measurement of the clocks may take,
	// because the measurement may be wrong by its whole duration. While a server is
	// halted, a longer measurement would set the opening off by the whole halt.
	measuredWithin = 250 * time.Millisecond
	// measurements is how often the clocks are measured before the keeper gives up.
	measurements = 5
)

// setTerms puts the newest terms in force on these shards and sets their clocks. If the
// clocks cannot be measured, the terms are put in force all the same, since a pause must
// not wait. The shards then keep their clocks.
func (k *Keeper) setTerms(ctx context.Context, plan Plan, shards []int) error {
	offsets, slow := k.measure(ctx, plan.Template.ID, shards)
	terms, place := TermsOf(plan.Template), make(map[int]*Offset, len(shards))
	for i := range offsets {
		place[shards[i]] = &offsets[i]
	}
	return errors.Join(slow, each(shards, func(s int) error {
		return k.Shards.SetTerms(ctx, plan.Template.ID, s, plan.Parts[s].Epoch, terms, place[s])
	}))
}

// measure returns how far the clocks of the shards' servers are ahead of the
// database's. A measurement that took too long is repeated.
func (k *Keeper) measure(ctx context.Context, templateID int64, shards []int) ([]Offset, error) {
	for range measurements {
		began := k.Now()
		now, err := k.Store.Clock(ctx)
		if err != nil {
			return nil, err
		}
		clocks, err := k.Shards.Clocks(ctx, templateID, shards)
		if err != nil {
			return nil, err
		}
		took := k.Now().Sub(began)
		if took > measuredWithin {
			continue
		}
		offsets := make([]Offset, len(clocks))
		for i, c := range clocks {
			offsets[i] = Offset{c.Server, c.At.Sub(now) - took/2}
		}
		return offsets, nil
	}
	return nil, errSlowClocks
}
