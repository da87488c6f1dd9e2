package redisgate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// gateReaders is the group of readers of the gate's streams.
	gateReaders = "writers"
	// clockSlack is how far the clocks of Redis and the database may be apart
	// unnoticed; the measurement itself is no better.
	clockSlack = 100 * time.Millisecond
	// keptFor is how long the shards of an ended drop remain for late readers.
	keptFor = time.Hour
)

// Shards are the gate's parts of the stock as its keeper handles them. It
// implements [gate.Shards].
type Shards struct {
	client  goredis.UniversalClient
	scripts scripts
}

// NewShards returns shards that use client and do not close it.
func NewShards(client goredis.UniversalClient) Shards {
	return Shards{client: client, scripts: newScripts()}
}

// Machines returns how many masters a cluster has, 1 for a single Redis or when
// Redis does not answer.
func (s Shards) Machines(ctx context.Context) int {
	cluster, ok := s.client.(*goredis.ClusterClient)
	if !ok {
		return 1
	}
	masters := make(chan struct{}, gate.MaxShards)
	_ = cluster.ForEachMaster(ctx, func(context.Context, *goredis.Client) error {
		select {
		case masters <- struct{}{}:
		default:
		}
		return nil
	})
	return max(1, len(masters))
}

// peekFields are read by one command, hence of one instant.
var peekFields = []string{"epoch", "state", "version", "stock", "allot", "accepted", "returned", "in", "out", "begun", "done"}

// peek returns a look at each shard without what went elsewhere and what waits.
func (s Shards) peek(ctx context.Context, templateID int64, shards int) ([]gate.Shard, error) {
	return s.look(ctx, templateID, shards, false)
}

func (s Shards) look(ctx context.Context, templateID int64, shards int, whole bool) ([]gate.Shard, error) {
	if shards == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	fields, gone, waiting := make([]*goredis.SliceCmd, shards), make([]*goredis.MapStringStringCmd, shards), make([]*goredis.IntCmd, shards)
	clocks := make([]*goredis.Cmd, shards)
	for i := range shards {
		k := keysOf(templateID, i)
		fields[i] = pipe.HMGet(ctx, k.shard, peekFields...)
		if whole {
			gone[i], waiting[i] = pipe.HGetAll(ctx, k.gone), pipe.XLen(ctx, k.stream)
			clocks[i] = s.scripts.clock.Eval(ctx, pipe, []string{k.shard})
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisclient.Unavailable("look at shards", err)
	}
	seen := make([]gate.Shard, shards)
	for i := range shards {
		one, err := readShard(i, fields[i].Val())
		if err != nil {
			return nil, err
		}
		if whole {
			one.Waiting = waiting[i].Val()
			if one.Clock, err = readClock(clocks[i]); err != nil {
				return nil, err
			}
			if one.Gone, err = readGone(gone[i].Val()); err != nil {
				return nil, err
			}
		}
		seen[i] = one
	}
	return seen, nil
}

// Look returns a look at each shard. What went elsewhere is compared only
// where nothing moved between a look before and one after.
func (s Shards) Look(ctx context.Context, templateID int64, shards int) ([]gate.Shard, error) {
	before, err := s.peek(ctx, templateID, shards)
	if err != nil {
		return nil, err
	}
	seen, err := s.look(ctx, templateID, shards, true)
	if err != nil {
		return nil, err
	}
	after, err := s.peek(ctx, templateID, shards)
	if err != nil {
		return nil, err
	}
	for i := range seen {
		seen[i].Still = before[i].Begun == before[i].Done && before[i].Begun == after[i].Begun &&
			before[i].Epoch == after[i].Epoch && seen[i].Open
	}
	return seen, nil
}

func readShard(shard int, values []any) (gate.Shard, error) {
	s := gate.Shard{Number: shard}
	numbers := map[string]*int64{"epoch": &s.Epoch, "version": &s.Version, "stock": &s.Stock, "allot": &s.Allot, "accepted": &s.Accepted,
		"returned": &s.Returned, "in": &s.In, "out": &s.Out, "begun": &s.Begun, "done": &s.Done}
	for i, name := range peekFields {
		text, _ := values[i].(string)
		if name == "state" {
			s.Open = text == "open"
			continue
		}
		n, err := redisclient.Int(text)
		if err != nil {
			return s, fmt.Errorf("shard %d: %s: %w", shard, name, err)
		}
		*numbers[name] = n
	}
	return s, nil
}

func readClock(reply *goredis.Cmd) (time.Time, error) {
	ms, err := reply.Int64()
	return time.UnixMilli(ms), err
}

func readGone(stored map[string]string) (map[int]int64, error) {
	gone := make(map[int]int64, len(stored))
	for to, move := range stored {
		shard, err1 := strconv.Atoi(to)
		total, err2 := redisclient.Int(move[strings.LastIndexByte(move, ' ')+1:])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("moved stock: %w", err)
		}
		gone[shard] = total
	}
	return gone, nil
}

// fenced runs a script that returns 1, or else [gate.ErrStaleEpoch].
func (s Shards) fenced(ctx context.Context, script *goredis.Script, keys []string, args ...any) error {
	n, err := script.Run(ctx, s.client, keys, args...).Int()
	if err != nil {
		return redisclient.Unavailable("shard", err)
	}
	if n != 1 {
		return gate.ErrStaleEpoch
	}
	return nil
}

// Fence implements [gate.Shards].
func (s Shards) Fence(ctx context.Context, templateID int64, shard int, epoch int64) error {
	return s.fenced(ctx, s.scripts.seal, []string{keysOf(templateID, shard).shard}, epoch)
}

// Reset implements [gate.Shards].
func (s Shards) Reset(ctx context.Context, templateID int64, shard int, epoch, allot int64) error {
	k := keysOf(templateID, shard)
	return s.fenced(ctx, s.scripts.reset, []string{k.shard, k.users, k.keys, k.claims, k.stream, k.gone}, epoch, allot, gateReaders)
}

// Open implements [gate.Shards].
func (s Shards) Open(ctx context.Context, templateID int64, shard int, epoch int64) error {
	return s.fenced(ctx, s.scripts.open, []string{keysOf(templateID, shard).shard}, epoch)
}

// Fill implements [gate.Shards].
func (s Shards) Fill(ctx context.Context, templateID int64, shard int, epoch, allot int64) error {
	return s.fenced(ctx, s.scripts.fill, []string{keysOf(templateID, shard).shard}, epoch, allot)
}

// SetTerms implements [gate.Shards].
func (s Shards) SetTerms(ctx context.Context, templateID int64, shard int, epoch int64, t gate.Terms, now time.Time) error {
	gone, over := int64(0), 0
	if !t.GoneAt.IsZero() {
		gone = t.GoneAt.UnixMilli()
	}
	if t.Over {
		over = 1
	}
	return s.fenced(ctx, s.scripts.tell, []string{keysOf(templateID, shard).shard}, epoch, t.Version, string(t.Status), string(t.Obtain),
		t.OpensAt.UnixMilli(), t.ClosesAt.UnixMilli(), t.PerUserLimit, gone, over, now.UnixMilli(), clockSlack.Milliseconds())
}

// LoadUserCounts implements [gate.Shards].
func (s Shards) LoadUserCounts(ctx context.Context, templateID int64, shards int, epoch int64, list []gate.UserCount) error {
	fields := make([][]any, shards)
	for _, h := range list {
		home := gate.HomeShard(h.UserID, shards)
		fields[home] = append(fields[home], int64(h.UserID), h.Count)
	}
	return s.load(ctx, templateID, epoch, fields, func(k shardKeys) string { return k.users })
}

// LoadIdempotencyRecords implements [gate.Shards].
func (s Shards) LoadIdempotencyRecords(ctx context.Context, templateID int64, shards int, epoch int64, list []gate.IdempotencyRecord) error {
	fields := make([][]any, shards)
	for _, p := range list {
		home := gate.HomeShard(p.UserID, shards)
		fields[home] = append(fields[home], recordKey(p.Origin, p.Key), p.Claim.String()+" "+p.UserID.String())
	}
	return s.load(ctx, templateID, epoch, fields, func(k shardKeys) string { return k.keys })
}

// recordKey is how the claim script names a request.
func recordKey(o claim.Origin, key string) string { return string(o) + ":" + key }

// loadAtOnce is how many arguments one call has; Lua takes less than 8,000.
const loadAtOnce = 2000

func (s Shards) load(ctx context.Context, templateID, epoch int64, fields [][]any, hash func(shardKeys) string) error {
	for shard, list := range fields {
		k := keysOf(templateID, shard)
		for len(list) > 0 {
			n := min(len(list), loadAtOnce)
			if err := s.fenced(ctx, s.scripts.load, []string{k.shard, hash(k)}, append([]any{epoch}, list[:n]...)...); err != nil {
				return err
			}
			list = list[n:]
		}
	}
	return nil
}

// Clear implements [gate.Shards]. Keys that it misses expire.
func (s Shards) Clear(ctx context.Context, templateID int64, shards int) error {
	pipe := s.client.Pipeline()
	for i := range shards {
		k := keysOf(templateID, i)
		for _, key := range []string{k.shard, k.users, k.keys, k.claims, k.stream, k.gone, k.pace} {
			pipe.Expire(ctx, key, keptFor)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return redisclient.Unavailable("clear shards", err)
	}
	return nil
}

// FinishMove implements [gate.Shards].
func (s Shards) FinishMove(ctx context.Context, templateID int64, shard int, epoch int64) error {
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
	_, err = s.finish(ctx, templateID, shard, move{number: values[0], donor: int(values[2]), wanted: int(values[3])}, epoch)
	return err
}

// move is a numbered transfer of stock towards one shard.
type move struct {
	number        int64
	donor, wanted int
}

// move moves stock from donor to shard and returns how much was moved. If
// another move is under way it finishes that one instead.
func (s Shards) move(ctx context.Context, templateID int64, shard, donor, want int, epoch int64) (int64, error) {
	m, err := s.begin(ctx, templateID, shard, donor, want, epoch)
	if err != nil {
		return 0, err
	}
	return s.finish(ctx, templateID, shard, m, epoch)
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

func (s Shards) finish(ctx context.Context, templateID int64, shard int, m move, epoch int64) (int64, error) {
	amount, err := s.take(ctx, templateID, shard, m, epoch)
	if err != nil || amount < 0 {
		return 0, err
	}
	return amount, s.put(ctx, templateID, shard, m, amount, epoch)
}

// take returns -1 if the move was finished by another.
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
	done, err := s.scripts.put.Run(ctx, s.client, []string{keysOf(templateID, shard).shard}, epoch, m.number, amount).Int()
	if err != nil {
		return redisclient.Unavailable("put stock", err)
	}
	if done == -2 {
		return gate.ErrStaleEpoch
	}
	return nil
}
