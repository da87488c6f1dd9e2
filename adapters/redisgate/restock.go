package redisgate

import (
	"context"
	"errors"
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

// restock moves stock from other shards to this one if want is positive, and
// says whether there is any at all. Shards that are being built are passed over;
// while there are any, nobody can say that nothing is left.
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

// proof looks at all shards, twice if the first look suggests that nothing
// is left.
func (g *Gate) proof(ctx context.Context, d *drop) (outcome, error) {
	shards := Shards{client: g.client, scripts: g.scripts}
	first, err := shards.peek(ctx, d.id, d.shards)
	if err != nil {
		return 0, overloaded("its shards do not answer")
	}
	if !gate.SoldOut(first, first) {
		d.learn(first)
		return somethingLeft, nil
	}
	second, err := shards.peek(ctx, d.id, d.shards)
	if err != nil {
		return 0, overloaded("its shards do not answer")
	}
	if !gate.SoldOut(first, second) {
		d.learn(second)
		return somethingLeft, nil
	}
	d.mu.Lock()
	d.soldOut = time.Now().Add(soldOutFor)
	d.mu.Unlock()
	return nothingLeft, nil
}

// errDonorClosed says that a shard cannot give anything, because it is being built.
var errDonorClosed = errors.New("gate: the donor is being built")

// move brings stock from donor to shard, in three repeatable steps, and
// reports whether any came. It finishes first what another left half done.
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

// learn replaces the cached state with the one that was read.
func (d *drop) learn(seen []gate.Shard) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.soldOut = time.Time{}
	for i, s := range seen {
		d.empty[i] = s.Stock <= 0
	}
}
