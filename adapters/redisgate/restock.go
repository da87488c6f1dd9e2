package redisgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"dropbell/domain/claim/gate"
)

// outcome of looking for stock elsewhere.
type outcome int

const (
	nothingLeft outcome = iota + 1 // proven: everything is taken
	somethingLeft
	restocked // this shard has got some
)

// restock moves stock from other shards to this shard if want is positive, and reports whether
// any stock is left. Shards that are being built are skipped; while there are such shards,
// restock does not report that nothing is left.
func (g *Gate) restock(ctx context.Context, d *drop, shard, want int) (outcome, error) {
	if d.isSoldOut() {
		return nothingLeft, nil
	}
	closed := false
	if want > 0 {
		tour := gate.ProbeOrder(shard, d.shards, d.knownEmpty, newRandom())
		for _, donor := range tour {
			moved, err := g.move(ctx, d, shard, donor, want)
			switch {
			case errors.Is(err, errDonorClosed):
				closed = true
			case err != nil:
				return 0, err
			case moved:
				return restocked, nil
			default:
				d.remember(donor)
			}
		}
	}
	found, err := g.proof(ctx, d)
	if err == nil && found == somethingLeft && closed {
		return 0, overloaded("one of its shards is being filled")
	}
	return found, err
}

// proofLooks is how often a proof reads all shards at most. Two successive reads without stock
// prove that nothing is left.
const proofLooks = 4

// shareMargin is how far the clocks of two processes may differ when they judge whether a door has
// opened.
const shareMargin = 250 * time.Millisecond

// proof reads all shards until one read shows that stock is left, or two successive reads show
// that none is. If no read shows either, for example while a shard is being rebuilt, proof
// returns [claim.ErrOverloaded]. While a door is open whose share the shards have not been given,
// proof returns errNoShards: the claim waits for that share.
func (g *Gate) proof(ctx context.Context, d *drop) (outcome, error) {
	t, err := g.info.Template(ctx, d.id)
	if err != nil {
		return 0, err
	}
	believed := soldOutFor
	if next, ok := t.NextShare(g.options.Now()); ok {
		believed = min(believed, next.Sub(g.options.Now())-shareMargin)
	}
	until := time.Now().Add(believed)
	shards := Shards{client: g.client, scripts: g.scripts}
	var previous []gate.Shard
	for range proofLooks {
		seen, err := shards.peek(ctx, d.id, d.shards)
		switch {
		case err != nil:
			return 0, overloaded("its shards do not answer")
		case gate.Left(seen):
			d.learn(seen)
			return somethingLeft, nil
		case gate.ShareDue(&t, seen, g.options.Now().Add(shareMargin)):
			return 0, errNoShards
		case !gate.SoldOut(seen, seen):
			return 0, overloaded("one of its shards is being filled")
		case gate.SoldOut(previous, seen):
			d.mu.Lock()
			d.soldOut = until
			d.mu.Unlock()
			return nothingLeft, nil
		}
		previous = seen
	}
	return 0, overloaded("its last coupons are changing hands")
}

// errDonorClosed says that a shard cannot give anything, because it is being built.
var errDonorClosed = errors.New("gate: the donor is being built")

// move moves stock from donor to shard, in three repeatable steps, and reports whether any stock
// was moved. It first finishes a move that another process left unfinished.
func (g *Gate) move(ctx context.Context, d *drop, shard, donor, want int) (bool, error) {
	mover := Shards{client: g.client, scripts: g.scripts}
	epochs, err := mover.openEpochs(ctx, d.id, shard, donor)
	switch {
	case err != nil:
		return false, overloaded("its shards do not answer")
	case epochs[0] == 0:
		return false, overloaded("its shards are being filled")
	case epochs[1] == 0:
		return false, errDonorClosed
	}
	amount, err := mover.move(ctx, d.id, shard, donor, want, epochs[0], epochs[1])
	if errors.Is(err, gate.ErrStaleEpoch) {
		return false, overloaded("its shards are being filled")
	}
	if err != nil {
		return false, overloaded("its shards do not answer")
	}
	return amount > 0, nil
}

func (d *drop) knownEmpty(shard int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.empty[shard]
}

func (d *drop) remember(empty int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.empty[empty] = true
}

// learn replaces the cached state with the shards that were read.
func (d *drop) learn(seen []gate.Shard) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.soldOut = time.Time{}
	for i, s := range seen {
		d.empty[i] = s.Stock <= 0
	}
}

func newRandom() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
