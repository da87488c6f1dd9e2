package delivery

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// GroupedBatches are [Batches] for many concurrent workers: one statement takes the leases
// that are requested together, and one statement records their checkpoints. For a batch whose
// delivery takes no time, as in the app, these statements are most of the cost.
type GroupedBatches struct {
	Batches
	leases      [delivery.Channels]*pg.Committer[struct{}, leaseOf, []*lease]
	checkpoints [delivery.Channels]*pg.Committer[int64, checkpoint, checkpointAnswer]
	accepted    *pg.Committer[struct{}, accepted, bool]
	// full says, for each channel, that the last leased batches were not small.
	full [delivery.Channels]atomic.Bool
	// contacts are read in groups by channel, without and with names.
	contacts [delivery.Channels][2]*pg.Committer[struct{}, []user.ID, []user.User]
}

// NewGroupedBatches starts the groups.
func NewGroupedBatches(db *pg.DB) *GroupedBatches {
	g := &GroupedBatches{Batches: NewBatches(db)}
	cfg := pg.GroupConfig{Workers: 1, MaxGroup: 64, MaxQueue: 1024, Timeout: 15 * time.Second, Traced: true, Gather: gatherFor, Enough: 16}
	for _, c := range delivery.AllChannels() {
		g.full[c].Store(true)
		cfg.Small = func() bool { return !g.full[c].Load() }
		g.leases[c] = pg.NewCommitter[struct{}](cfg, nil, (&leasing{store: g.Batches, channel: c, usual: delivery.BatchSize, full: &g.full[c]}).next)
	}
	cfg.Workers = 2
	batch := func(c checkpoint) int64 { return c.batch }
	for _, c := range delivery.AllChannels() {
		cfg.Small = func() bool { return !g.full[c].Load() }
		g.checkpoints[c] = pg.NewCommitter(cfg, batch, g.Batches.checkpoints)
	}
	cfg.Small = nil
	for _, c := range delivery.AllChannels() {
		for i, named := range []bool{false, true} {
			g.contacts[c][i] = pg.NewCommitter[struct{}](cfg, nil, func(ctx context.Context, asked [][]user.ID) ([][]user.User, error) {
				return g.recipientsOfAll(ctx, c, asked, named)
			})
		}
	}
	cfg.Gather = 0 // each of these holds up the next message of its call
	// Groups are stored one at a time: operations that arrive meanwhile make the next group
	// larger, and a group costs more than its few messages.
	cfg.Workers = 1
	g.accepted = pg.NewCommitter[struct{}](cfg, nil, g.Batches.accept)
	return g
}

// gatherFor is how long a lease or checkpoint waits for leases or checkpoints of other
// batches, while groups have several operations; see [pg.GroupConfig]. Delivering a batch
// takes several times as long.
const gatherFor = 2 * time.Millisecond

// Close answers everything that was accepted and stops.
func (g *GroupedBatches) Close() {
	for _, c := range delivery.AllChannels() {
		g.leases[c].Close()
		g.checkpoints[c].Close()
		g.contacts[c][0].Close()
		g.contacts[c][1].Close()
	}
	g.accepted.Close()
	g.optOuts.close()
}

// A leaseOf asks for up to most leases.
type leaseOf struct {
	lasting time.Duration
	most    int
}

// LeaseNext leases the most urgent ready batch, or returns [delivery.ErrNoWork]. It waits for
// the answer even if ctx ends: a lease that its holder does not know blocks the batch until
// the lease expires.
func (g *GroupedBatches) LeaseNext(ctx context.Context, c delivery.Channel, lasting time.Duration) (delivery.Lease, error) {
	list, err := g.LeaseSome(ctx, c, lasting, 1)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// LeaseSome leases several batches, as [GroupedBatches.LeaseNext] leases one.
func (g *GroupedBatches) LeaseSome(ctx context.Context, c delivery.Channel, lasting time.Duration, most int) ([]delivery.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	leased, err := g.leases[c].Do(context.WithoutCancel(ctx), leaseOf{lasting, max(1, most)})
	if err != nil {
		return nil, err
	}
	if len(leased) == 0 {
		return nil, delivery.ErrNoWork
	}
	for _, l := range leased {
		l.save, l.accept = g.checkpoints[c].Do, g.accepted.Do
	}
	return readyAll(context.WithoutCancel(ctx), leased)
}

// readyAll completes leases concurrently. In sequence, the first of many leases could expire
// if the batches had run before. Leases that fail are left to expire.
func readyAll(ctx context.Context, leased []*lease) (list []delivery.Lease, err error) {
	errs := make([]error, len(leased))
	var asking sync.WaitGroup
	for i, l := range leased {
		if len(leased) == 1 || !l.incomplete() {
			_, errs[i] = ready(ctx, l)
			continue
		}
		asking.Go(func() { _, errs[i] = ready(ctx, l) })
	}
	asking.Wait()
	for i, l := range leased {
		if errs[i] == nil {
			list = append(list, l)
		}
	}
	return list, errors.Join(errs...)
}

// fewRecipients is the number of recipients of a batch up to which their contacts are read
// together with the contacts of other batches. For more recipients reading together is not
// cheaper.
const fewRecipients = 100

// Recipients returns the stored data of the users; see [delivery.Store].
func (g *GroupedBatches) Recipients(ctx context.Context, c delivery.Channel, ids []user.ID, named bool) ([]user.User, error) {
	if len(ids) > fewRecipients {
		return g.Batches.Recipients(ctx, c, ids, named)
	}
	i := 0
	if named {
		i = 1
	}
	return g.contacts[c][i].Do(ctx, ids)
}

// recipientsOfAll reads the users of all callers at once and answers each caller with all of
// them.
func (g *GroupedBatches) recipientsOfAll(ctx context.Context, c delivery.Channel, asked [][]user.ID, named bool) ([][]user.User, error) {
	ids := slices.Concat(asked...)
	slices.Sort(ids)
	known, err := g.Batches.Recipients(ctx, c, slices.Compact(ids), named)
	return slices.Repeat([][]user.User{known}, len(asked)), err
}

// leasing remembers the place of the last lease of a channel. While a long transaction is
// open, PostgreSQL keeps the dead entries of earlier leases in the index of ready batches.
// Starting after the remembered place avoids scanning these entries again.
type leasing struct {
	store   Batches
	channel delivery.Channel
	behind  place
	since   time.Time
	// usual is the average number of recipients of the batches that were leased last. full
	// says whether usual is more than half of a full batch.
	usual int
	full  *atomic.Bool
}

// lookAgain is how long a more urgent batch may remain unnoticed.
const lookAgain = 100 * time.Millisecond

// next leases a batch for each caller, as far as there are enough. If the previous batches
// were small, it leases as many more batches as fit into a full batch.
func (s *leasing) next(ctx context.Context, callers []leaseOf) ([][]*lease, error) {
	each := delivery.BatchParts / delivery.Parts(s.usual)
	n := 0
	for _, c := range callers {
		n += max(1, min(c.most, each))
	}
	list, err := s.some(ctx, n, len(callers), callers[0].lasting)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		recipients := 0
		for _, l := range list {
			recipients += l.dueCount
		}
		s.usual = recipients / len(list)
		s.full.Store(s.usual > delivery.BatchSize/2)
	}
	// The most urgent batches begin at once: each caller gets one batch before any caller gets
	// a second.
	dealt := make([][]*lease, len(callers))
	for i := 0; len(list) > 0; i = (i + 1) % len(callers) {
		if len(dealt[i]) < callers[i].most {
			dealt[i], list = append(dealt[i], list[0]), list[1:]
		}
	}
	return dealt, nil
}

// some leases up to n batches, which so many callers share.
func (s *leasing) some(ctx context.Context, n, callers int, lasting time.Duration) ([]*lease, error) {
	beginning := place{priority: math.MinInt16}
	if time.Since(s.since) > lookAgain {
		s.behind, s.since = beginning, time.Now()
	}
	from := s.behind
	list, last, err := s.store.lease(ctx, s.channel, n, callers, lasting, from)
	if err != nil {
		return nil, err
	}
	if len(list) < callers && from != beginning {
		var more []*lease
		s.since = time.Now()
		if more, last, err = s.store.lease(ctx, s.channel, n-len(list), callers-len(list), lasting, beginning); err != nil {
			// Batches that have been leased already must still be returned.
			more, last = nil, beginning
		}
		list = append(list, more...)
	}
	s.behind = last
	// If load fails, each lease reads its own opt-outs: a lease must not be lost.
	_ = s.store.optOuts.load(ctx, s.channel, list)
	return list, nil
}
