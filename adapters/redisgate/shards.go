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
	"dropbell/domain/user"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// gateReaders is the group of readers of the gate's streams.
	gateReaders = "writers"
	// clockSlack is how far the clocks of Redis and of the database may differ without being
	// noticed; measuring the difference is no more precise.
	clockSlack = 100 * time.Millisecond
	// shardTimeout bounds one call about a shard, so that a builder whose Redis server died
	// without closing the connection starts again soon.
	shardTimeout = 2 * time.Second
	// keptFor is how long the shards of an ended drop remain for late readers.
	keptFor = time.Hour
)

// Shards gives the gate's keeper access to the shards of the stock. It implements [gate.Shards].
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

// peekFields are read by one command, so all values are of one instant.
var peekFields = []string{"epoch", "state", "version", "stock", "allot", "accepted", "returned", "in", "out", "begun", "done", "shares"}

// peek reads each shard without its transfers to other shards and its waiting claims.
func (s Shards) peek(ctx context.Context, templateID int64, shards int) ([]gate.Shard, error) {
	return s.look(ctx, templateID, shards, false)
}

func (s Shards) look(ctx context.Context, templateID int64, shards int, whole bool) ([]gate.Shard, error) {
	if shards == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	fields, gone, waiting := make([]*goredis.SliceCmd, shards), make([]*goredis.MapStringStringCmd, shards), make([]*goredis.IntCmd, shards)
	states := make([]*goredis.Cmd, shards)
	for i := range shards {
		k := keysOf(templateID, i)
		fields[i] = pipe.HMGet(ctx, k.shard, peekFields...)
		if whole {
			gone[i], waiting[i] = pipe.HGetAll(ctx, k.gone), pipe.XLen(ctx, k.stream)
			states[i] = s.scripts.look.Eval(ctx, pipe, []string{k.shard, k.users, k.keys, k.stream})
		}
	}
	if err := execute(ctx, pipe, "look at shards"); err != nil {
		return nil, err
	}
	seen := make([]gate.Shard, shards)
	for i := range shards {
		one, err := readShard(i, fields[i].Val())
		if err != nil {
			return nil, err
		}
		if whole {
			one.Waiting = waiting[i].Val()
			if err := readState(states[i], &one); err != nil {
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

// Look reads each shard. It marks a shard as Still if no transfer of the shard was under way or
// began between the reads before and after; only transfers of Still shards are compared.
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
		"returned": &s.Returned, "in": &s.In, "out": &s.Out, "begun": &s.Begun, "done": &s.Done, "shares": &s.Shares}
	for i, name := range peekFields {
		text, _ := values[i].(string)
		if name == "state" {
			s.Open, s.Filling = text == stateOpen || text == stateFilling, text == stateFilling
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

// readState reads the reply of look.lua.
func readState(reply *goredis.Cmd, s *gate.Shard) error {
	values, err := reply.Int64Slice()
	if err != nil || len(values) != 3 {
		return errors.Join(err, fmt.Errorf("state of a shard: %d values", len(values)))
	}
	s.Clock, s.Broken, s.Moved = time.UnixMilli(values[0]), values[1] == 1, values[2] == 1
	return nil
}

// execute sends a pipeline of calls about shards.
func execute(ctx context.Context, pipe goredis.Pipeliner, call string) error {
	ctx, cancel := context.WithTimeout(ctx, shardTimeout)
	defer cancel()
	if _, err := pipe.Exec(ctx); err != nil {
		return redisclient.Unavailable(call, err)
	}
	return nil
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

// The states of a shard that decides claims; a shard in the state "sealed" decides none.
const (
	stateOpen    = "open"
	stateFilling = "filling"
)

// fenced runs a script. Its results mean: 1 = done, 2 = [gate.ErrMoved], any other number =
// [gate.ErrStaleEpoch].
func (s Shards) fenced(ctx context.Context, script *goredis.Script, keys []string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, shardTimeout)
	defer cancel()
	n, err := script.Run(ctx, s.client, keys, args...).Int()
	switch {
	case err != nil:
		return redisclient.Unavailable("shard", err)
	case n == 2:
		return gate.ErrMoved
	case n != 1:
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
	return s.fenced(ctx, s.scripts.reset, []string{k.shard, k.users, k.keys, k.claims, k.stream, k.gone, k.came}, epoch, allot, gateReaders)
}

// Detach implements [gate.Shards].
func (s Shards) Detach(ctx context.Context, templateID int64, shard int, epoch int64, lost int, number int64) (gate.Link, error) {
	k := keysOf(templateID, shard)
	reply, err := s.scripts.detach.Run(ctx, s.client, []string{k.shard, k.gone, k.came}, epoch, lost, number).Int64Slice()
	if err != nil {
		return gate.Link{}, redisclient.Unavailable("detach shard", err)
	}
	if len(reply) != 4 {
		return gate.Link{}, gate.ErrStaleEpoch
	}
	return gate.Link{Came: reply[0], Gone: reply[1], Number: reply[2], Whole: reply[3] == 1}, nil
}

// Resume implements [gate.Shards].
func (s Shards) Resume(ctx context.Context, templateID int64, shard int, epoch int64, past gate.Past) error {
	k := keysOf(templateID, shard)
	args := []any{epoch, past.Stock, past.Accepted, past.Returned, past.Begun}
	for other, l := range past.Links {
		// The other shard's Gone is this shard's total of received stock, and its Came is this
		// shard's total of sent stock.
		args = append(args, other, l.Gone, l.Came, l.Number)
	}
	return s.fenced(ctx, s.scripts.resume, []string{k.shard, k.gone, k.came}, args...)
}

// Remembered implements [gate.Shards]. A claim without a key is a tap of a user; all other
// claims have a key.
func (s Shards) Remembered(ctx context.Context, templateID int64, shard int, load func([]gate.Accepted) error) error {
	key, cursor := keysOf(templateID, shard).keys, uint64(0)
	for {
		pairs, next, err := s.client.HScan(ctx, key, cursor, "", loadAtOnce).Result()
		if err != nil {
			return redisclient.Unavailable("scan keys", err)
		}
		var list []gate.Accepted
		for i := 0; i+1 < len(pairs); i += 2 {
			if c, ok := readRemembered(pairs[i], pairs[i+1]); ok {
				list = append(list, c)
			}
		}
		if len(list) > 0 {
			if err := load(list); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// readRemembered reads a field of the hash of keys, as the claim script writes it.
func readRemembered(request, promise string) (c gate.Accepted, ok bool) {
	idText, userText, _ := strings.Cut(promise, " ")
	id, err1 := claim.ParseID(idText)
	by, err2 := user.ParseID(userText)
	if err1 != nil || err2 != nil {
		return c, false // the mark
	}
	c = gate.Accepted{ID: id, UserID: by, Origin: claim.ByTap}
	if !strings.HasPrefix(request, "#") {
		origin, key, _ := strings.Cut(request, ":")
		c.Origin, c.Key = claim.Origin(origin), key
	}
	return c, true
}

// Open implements [gate.Shards].
func (s Shards) Open(ctx context.Context, templateID int64, shard int, epoch int64, whole bool) error {
	state := stateFilling
	if whole {
		state = stateOpen
	}
	return s.fenced(ctx, s.scripts.open, []string{keysOf(templateID, shard).shard}, epoch, state)
}

// Fill implements [gate.Shards].
func (s Shards) Fill(ctx context.Context, templateID int64, shard int, epoch, allot int64, shares int) error {
	return s.fenced(ctx, s.scripts.fill, []string{keysOf(templateID, shard).shard}, epoch, allot, shares)
}

// Clocks implements [gate.Shards].
func (s Shards) Clocks(ctx context.Context, templateID int64, shards []int) ([]gate.ServerClock, error) {
	pipe := s.client.Pipeline()
	replies := make([]*goredis.Cmd, len(shards))
	for i, shard := range shards {
		replies[i] = s.scripts.clock.Eval(ctx, pipe, []string{keysOf(templateID, shard).shard})
	}
	if err := execute(ctx, pipe, "clocks of shards"); err != nil {
		return nil, err
	}
	clocks := make([]gate.ServerClock, len(shards))
	for i, reply := range replies {
		values, err := reply.Slice()
		if err != nil || len(values) != 2 {
			return nil, errors.Join(err, fmt.Errorf("clock of a shard: %d values", len(values)))
		}
		server, _ := values[0].(string)
		ms, _ := values[1].(int64)
		clocks[i] = gate.ServerClock{Server: server, At: time.UnixMilli(ms)}
	}
	return clocks, nil
}

// SetTerms implements [gate.Shards].
func (s Shards) SetTerms(ctx context.Context, templateID int64, shard int, epoch int64, t gate.Terms, by *gate.Offset) error {
	gone, over := int64(0), 0
	if !t.GoneAt.IsZero() {
		gone = t.GoneAt.UnixMilli()
	}
	if t.Over {
		over = 1
	}
	args := []any{epoch, t.Version, string(t.Status), string(t.Obtain), t.OpensAt.UnixMilli(), t.ClosesAt.UnixMilli(), t.PerUserLimit, gone, over, t.HouseholdLimit}
	if by != nil {
		ahead := by.Ahead
		if ahead.Abs() <= clockSlack {
			ahead = 0
		}
		args = append(args, ahead.Milliseconds(), by.Server)
	}
	return s.fenced(ctx, s.scripts.tell, []string{keysOf(templateID, shard).shard}, args...)
}

// Clear implements [gate.Shards]. Keys that it misses expire.
func (s Shards) Clear(ctx context.Context, templateID int64, shards int) error {
	pipe := s.client.Pipeline()
	for i := range shards {
		for _, key := range keysOf(templateID, i).all() {
			pipe.Expire(ctx, key, keptFor)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return redisclient.Unavailable("clear shards", err)
	}
	return nil
}

// Remove removes the gate of a rehearsal at once, however many shards it has. It may be repeated.
func (s Shards) Remove(ctx context.Context, templateID int64) error {
	pipe := s.client.Pipeline()
	for i := range gate.MaxShards {
		for _, key := range keysOf(templateID, i).all() { // keys of a cluster are on several machines
			pipe.Unlink(ctx, key)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return redisclient.Unavailable("remove shards", err)
	}
	return nil
}
