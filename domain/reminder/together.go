package reminder

import (
	"context"
	"errors"
	"slices"
	"time"

	"dropbell/domain/delivery"
)

// An OwnedBatch is a batch to be stored for one of several slots.
type OwnedBatch struct {
	Of int // index of the slot's cut
	NewBatch
}

// Found is how many users a cut has found per channel.
type Found struct {
	Cut
	Reserved [delivery.Channels]int64
}

// TogetherStore cuts many small slots with few statements. The cuts of a group share a token, but
// each slot is fenced separately.
type TogetherStore interface {
	// BeginTogether makes other slots firing, under the token of c. It selects slots that
	// BeginFiring would accept and that are small and have no users to leave out. It returns a
	// bounded number of cuts, and skips slots whose row is locked. Cut.Parts is not set. After an
	// error, no slot stays claimed for longer than lasting.
	BeginTogether(ctx context.Context, c Cut, lasting time.Duration) ([]Cut, error)
	// ReadTogether reads the users due in each of the cuts.
	ReadTogether(ctx context.Context, cuts []Cut) ([]Due, error)
	// StoreTogether stores batches and extends the right to cut. It returns the id of each batch,
	// or 0 if another worker has taken the batch's slot over.
	StoreTogether(ctx context.Context, cuts []Cut, bs []OwnedBatch) ([]int64, error)
	// KeepTogether renews the right to cut. It returns [delivery.ErrLeaseLost] if other workers
	// have taken all slots over.
	KeepTogether(ctx context.Context, cuts []Cut, lasting time.Duration) error
	// EndTogether is EndFiring for each cut.
	EndTogether(ctx context.Context, found []Found) error
}

// SmallSlot is the most reminders of a slot that is cut together with other slots. GroupSlots and
// GroupReminders bound a group and so its memory. A slot with more than hugeSlot reminders is
// read in parts, to bound memory too.
const (
	SmallSlot      = 20_000
	GroupSlots     = 250
	GroupReminders = 200_000
	hugeSlot       = 4_000_000
)

// small reports whether [TogetherStore.BeginTogether] would select the slot.
func (c Cut) small() bool { return c.Expected <= SmallSlot && c.Round == 0 && !c.RemindOnce }

func (c Cut) huge() bool { return c.Expected > hugeSlot }

// fireTogether cuts a small slot and other due slots together. If thousands of drops open at the
// same instant, separate transactions for each slot would take longer than its reminders. If the
// worker dies, the sweep finds all of these slots.
func (f *Timers) fireTogether(ctx context.Context, first Cut) error {
	cuts := []Cut{first}
	more, errMore := f.Store.BeginTogether(ctx, first, f.LeaseFor)
	cuts = append(cuts, more...)
	f.firings.remember(cuts)
	err := delivery.Keep(ctx, f.LeaseFor, func(ctx context.Context) error { return f.Store.KeepTogether(ctx, cuts, f.LeaseFor) },
		func(ctx context.Context) error { return f.cutTogether(ctx, cuts) })
	if err != nil {
		f.firings.forget(cuts)
	}
	if errors.Is(err, delivery.ErrLeaseLost) {
		err = nil // the worker that took over finishes
	}
	return errors.Join(err, errMore)
}

// storedTogether is how many batches of several slots are stored by one
// statement.
const storedTogether = 250

func (f *Timers) cutTogether(ctx context.Context, cuts []Cut) error {
	due, err := f.Store.ReadTogether(ctx, cuts)
	if err != nil {
		return err
	}
	var batches []OwnedBatch
	found := make([]Found, len(cuts))
	for i, cut := range cuts {
		found[i].Cut = cut
		for c, ids := range due[i] {
			found[i].Reserved[c] = int64(len(ids))
			for _, users := range delivery.CutIntoBatches(ids, cut.Covered[c], delivery.BatchSize) {
				batches = append(batches, OwnedBatch{i, NewBatch{delivery.Channel(c), users}})
			}
		}
	}
	lost := make([]bool, len(cuts))
	var before woken
	for group := range slices.Chunk(batches, storedTogether) {
		ids, err := f.Store.StoreTogether(ctx, cuts, group)
		if err != nil {
			return err
		}
		for i, id := range ids {
			lost[group[i].Of] = lost[group[i].Of] || id == 0
		}
		wake(ctx, f.Queue, ids, func(i int) (delivery.Channel, int) { return group[i].Channel, delivery.Parts(len(group[i].Users)) }, &before)
	}
	mine := found[:0]
	var slotIDs []int64
	for i, one := range found {
		if lost[i] {
			f.firings.forget(cuts[i : i+1])
			continue
		}
		mine, slotIDs = append(mine, one), append(slotIDs, one.ID)
	}
	if len(mine) == 0 {
		return nil
	}
	if err := f.Store.EndTogether(ctx, mine); err != nil {
		return err
	}
	return f.Queue.Enqueue(ctx, watch(slotIDs, f.Now().Add(f.WatchEvery)))
}
