package redisgate

import (
	"context"
	"errors"
	"time"

	"dropbell/domain/claim/gate"

	goredis "github.com/redis/go-redis/v9"
)

// outcome of looking for stock elsewhere.
type outcome int

const (
	nothingLeft outcome = iota + 1 // proven: everything is taken
	somethingLeft
	restocked // this shard has got some
)

// restock moves stock from other shards to this one if want is positive, and
// says whether there is any at all.
func (g *Gate) restock(ctx context.Context, d *drop, shard, want int) (outcome, error) {
	if d.isSoldOut() {
		return nothingLeft, nil
	}
	if want > 0 {
		tour := gate.ProbeOrder(shard, d.shards, d.knownEmpty, newRandom())
		for _, donor := range tour {
			moved, err := g.move(ctx, d, shard, donor, want)
			if err != nil {
				return 0, err
			}
			if moved {
				return restocked, nil
			}
			d.remember(donor)
		}
	}
	return g.proof(ctx, d)
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

// move moves stock from donor to shard, in three repeatable steps, and reports
// whether any was moved. It finishes an unfinished move of another process
// first.
func (g *Gate) move(ctx context.Context, d *drop, shard, donor, want int) (bool, error) {
	epoch, err := g.client.HGet(ctx, keysOf(d.id, shard).shard, "epoch").Int64()
	if errors.Is(err, goredis.Nil) {
		return false, overloaded("its shards are being filled")
	}
	if err != nil {
		return false, overloaded("its shards do not answer")
	}
	mover := Shards{client: g.client, scripts: g.scripts}
	amount, err := mover.move(ctx, d.id, shard, donor, want, epoch)
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
