package redisgate

import (
	"context"

	"dropbell/adapters/redisclient"
	"dropbell/domain/claim/gate"

	goredis "github.com/redis/go-redis/v9"
)

// FinishMove implements [gate.Shards].
func (s Shards) FinishMove(ctx context.Context, templateID int64, shard int, epoch int64) error {
	ctx, cancel := context.WithTimeout(ctx, shardTimeout)
	defer cancel()
	reply, err := s.client.HMGet(ctx, keysOf(templateID, shard).shard, "begun", "done", "donor", "wanted").Result()
	if err != nil {
		return redisclient.Unavailable("shard", err)
	}
	var values [4]int64
	for i := range values {
		text, _ := reply[i].(string)
		if values[i], err = redisclient.Int(text); err != nil {
			return err
		}
	}
	if values[0] == values[1] {
		return nil
	}
	donor := int(values[2])
	epochs, err := s.openEpochs(ctx, templateID, donor)
	if err != nil {
		return err
	}
	_, err = s.move(ctx, templateID, shard, donor, int(values[3]), epoch, epochs[0])
	return err
}

// move is a numbered transfer of stock towards one shard.
type move struct {
	number        int64
	donor, wanted int
}

// move moves stock from donor to shard and returns how much was moved. If another move towards
// the shard is under way, it finishes that move first. epoch is the shard's epoch, donorEpoch
// the donor's. move returns [gate.ErrStaleEpoch] if the shard or the donor has another epoch, or
// is not open.
//
// The donor's epoch is read before the shard's record of the move. If the shard is built anew in
// between, one of the epochs is stale, and no stock is taken for a move that is no longer
// recorded.
func (s Shards) move(ctx context.Context, templateID int64, shard, donor, want int, epoch, donorEpoch int64) (int64, error) {
	for {
		if donorEpoch == 0 {
			return 0, gate.ErrStaleEpoch
		}
		m, err := s.begin(ctx, templateID, shard, donor, want, epoch)
		if err != nil {
			return 0, err
		}
		if m.donor == donor {
			amount, err := s.take(ctx, templateID, shard, m, donorEpoch)
			if err != nil || amount < 0 {
				return 0, err
			}
			return amount, s.put(ctx, templateID, shard, m, amount, epoch)
		}
		epochs, err := s.openEpochs(ctx, templateID, m.donor)
		if err != nil {
			return 0, err
		}
		donor, donorEpoch = m.donor, epochs[0]
	}
}

// openEpochs returns the epoch of each of the shards; 0 for a shard that is not open.
func (s Shards) openEpochs(ctx context.Context, templateID int64, shards ...int) ([]int64, error) {
	pipe := s.client.Pipeline()
	replies := make([]*goredis.SliceCmd, len(shards))
	for i, shard := range shards {
		replies[i] = pipe.HMGet(ctx, keysOf(templateID, shard).shard, "epoch", "state")
	}
	if err := execute(ctx, pipe, "shards"); err != nil {
		return nil, err
	}
	epochs := make([]int64, len(shards))
	for i, reply := range replies {
		epoch, _ := reply.Val()[0].(string)
		state, _ := reply.Val()[1].(string)
		n, err := redisclient.Int(epoch)
		if err != nil {
			return nil, err
		}
		if state == stateOpen || state == stateFilling {
			epochs[i] = n
		}
	}
	return epochs, nil
}

func (s Shards) begin(ctx context.Context, templateID int64, shard, donor, want int, epoch int64) (move, error) {
	reply, err := s.scripts.begin.Run(ctx, s.client, []string{keysOf(templateID, shard).shard}, epoch, donor, want).Int64Slice()
	if err != nil {
		return move{}, redisclient.Unavailable("begin move", err)
	}
	if len(reply) != 3 {
		return move{}, gate.ErrStaleEpoch
	}
	return move{reply[0], int(reply[1]), int(reply[2])}, nil
}

// take returns -1 if the move was finished by another; epoch is the donor's.
func (s Shards) take(ctx context.Context, templateID int64, shard int, m move, epoch int64) (int64, error) {
	k := keysOf(templateID, m.donor)
	amount, err := s.scripts.take.Run(ctx, s.client, []string{k.shard, k.gone}, epoch, shard, m.number, m.wanted).Int64()
	if err != nil {
		return 0, redisclient.Unavailable("take stock", err)
	}
	if amount == -2 {
		return 0, gate.ErrStaleEpoch
	}
	return amount, nil
}

func (s Shards) put(ctx context.Context, templateID int64, shard int, m move, amount, epoch int64) error {
	k := keysOf(templateID, shard)
	done, err := s.scripts.put.Run(ctx, s.client, []string{k.shard, k.came}, epoch, m.number, amount).Int()
	if err != nil {
		return redisclient.Unavailable("put stock", err)
	}
	if done == -2 {
		return gate.ErrStaleEpoch
	}
	return nil
}
