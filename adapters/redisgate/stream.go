package redisgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/user"
	"dropbell/killpoint"

	goredis "github.com/redis/go-redis/v9"
)

// silentFor is how long the writer that holds a group must have been silent before another
// writer takes the group over.
const silentFor = 5 * time.Second

// Stream holds accepted claims until they are written. It implements [gate.Stream].
type Stream struct {
	client   goredis.UniversalClient
	scripts  scripts
	consumer string
	// takeOver is silentFor but in tests.
	takeOver time.Duration
}

// NewStream returns the streams for one consumer; consumer is its unique name.
// It uses client and does not close it.
func NewStream(client goredis.UniversalClient, consumer string) Stream {
	return Stream{client: client, scripts: newScripts(), consumer: consumer, takeOver: silentFor}
}

// Take implements [gate.Stream]. It first returns the entries of a silent writer. Entries of a
// stream without a consumer group belong to no writer: the gate is about to be rebuilt.
func (s Stream) Take(ctx context.Context, templateID int64, shard, limit int) ([]gate.Group, []gate.Poison, error) {
	stream := keysOf(templateID, shard).stream
	messages, _, err := s.client.XAutoClaim(ctx, &goredis.XAutoClaimArgs{Stream: stream, Group: gateReaders, Consumer: s.consumer,
		MinIdle: s.takeOver, Start: "0-0", Count: int64(limit)}).Result()
	if err == nil && len(messages) == 0 {
		messages, err = s.fresh(ctx, stream, limit)
	}
	if errors.Is(err, goredis.Nil) || err != nil && strings.HasPrefix(err.Error(), "NOGROUP") {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, redisclient.Unavailable("read claims", err)
	}
	groups, poisons := sortOut(messages)
	return groups, poisons, nil
}

func (s Stream) fresh(ctx context.Context, stream string, limit int) ([]goredis.XMessage, error) {
	streams, err := s.client.XReadGroup(ctx, &goredis.XReadGroupArgs{Group: gateReaders, Consumer: s.consumer,
		Streams: []string{stream, ">"}, Count: int64(limit), Block: -1}).Result()
	if err != nil || len(streams) == 0 {
		return nil, err
	}
	return streams[0].Messages, nil
}

// Scan implements [gate.Stream].
func (s Stream) Scan(ctx context.Context, templateID int64, shard int, after string, limit int) ([]gate.Group, []gate.Poison, error) {
	ctx, cancel := context.WithTimeout(ctx, shardTimeout)
	defer cancel()
	from := "-"
	if after != "" {
		from = "(" + after
	}
	messages, err := s.client.XRangeN(ctx, keysOf(templateID, shard).stream, from, "+", int64(limit)).Result()
	if err != nil {
		return nil, nil, redisclient.Unavailable("scan claims", err)
	}
	groups, poisons := sortOut(messages)
	return groups, poisons, nil
}

// Waiting returns which shards have something to write, out of so many.
func (s Stream) Waiting(ctx context.Context, templateID int64, shards int) ([]int, error) {
	pipe := s.client.Pipeline()
	lengths := make([]*goredis.IntCmd, shards)
	for i := range lengths {
		lengths[i] = pipe.XLen(ctx, keysOf(templateID, i).stream)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisclient.Unavailable("waiting claims", err)
	}
	var waiting []int
	for i, n := range lengths {
		if n.Val() > 0 {
			waiting = append(waiting, i)
		}
	}
	return waiting, nil
}

// Settle implements [gate.Stream]. Groups of a former epoch are not settled: the keeper that
// fenced the shard has written or will write them.
func (s Stream) Settle(ctx context.Context, templateID int64, shard int, groups []gate.Group, verdicts map[claim.ID]gate.Settlement) error {
	k := keysOf(templateID, shard)
	for len(groups) > 0 {
		epoch, args, n := groups[0].Epoch, []any{gateReaders, groups[0].Epoch}, 0
		for n < len(groups) && groups[n].Epoch == epoch && len(args) < loadAtOnce {
			args = appendVerdicts(args, groups[n], verdicts)
			n++
		}
		keys := []string{k.shard, k.users, k.claims, k.stream, k.keys}
		if err := killpoint.Around("gate.settle", func() error { return s.scripts.settle.Run(ctx, s.client, keys, args...).Err() }); err != nil {
			return redisclient.Unavailable("settle claims", err)
		}
		groups = groups[n:]
	}
	return nil
}

// The verdicts of settle.lua.
const (
	refused     = 0
	issued      = 1
	refusedHeld = 2
)

func appendVerdicts(args []any, g gate.Group, verdicts map[claim.ID]gate.Settlement) []any {
	args = append(args, g.Entry, len(g.Claims))
	for _, c := range g.Claims {
		v, verdict, free := verdicts[c.ID], refused, ""
		switch {
		case v.Issued:
			verdict = issued
		case v.Held:
			verdict = refusedHeld
		}
		switch {
		case v.Issued:
		case (c.Origin == claim.ByCode || c.Origin == claim.ByCampaign) && v.CouponID == 0:
			// A refused redeem code can be used again, and the claim of a campaign is decided
			// anew, as by the durable gate; a repeated tap gets the outcome of its first attempt.
			free = recordKey(c.Origin, c.Key)
		}
		args = append(args, c.ID.String(), c.UserID.String(), verdict, free)
	}
	return args
}

// Drop implements [gate.Stream].
func (s Stream) Drop(ctx context.Context, templateID int64, shard int, p gate.Poison) error {
	stream := keysOf(templateID, shard).stream
	_, err := s.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		pipe.XAck(ctx, stream, gateReaders, p.Entry)
		pipe.XDel(ctx, stream, p.Entry)
		return nil
	})
	if err != nil {
		return redisclient.Unavailable("drop entry", err)
	}
	return nil
}

// sortOut reads entries; an entry that the claim script did not write is a poison.
func sortOut(messages []goredis.XMessage) (groups []gate.Group, poisons []gate.Poison) {
	for _, m := range messages {
		g, err := readGroup(m)
		if err != nil {
			payload, _ := json.Marshal(m.Values) // of strings
			poisons = append(poisons, gate.Poison{Entry: m.ID, Reason: err.Error(), Payload: payload})
			continue
		}
		groups = append(groups, g)
	}
	return groups, poisons
}

func readGroup(m goredis.XMessage) (gate.Group, error) {
	g := gate.Group{Entry: m.ID}
	text := func(name string) string { s, _ := m.Values[name].(string); return s }
	epoch, err1 := strconv.ParseInt(text("epoch"), 10, 64)
	at, err2 := strconv.ParseInt(text("at"), 10, 64)
	if errors.Join(err1, err2) != nil {
		return g, errors.New("not a group of claims: epoch or instant is missing")
	}
	g.Epoch, g.At = epoch, time.UnixMilli(at).UTC()
	for name, value := range m.Values {
		if name == "epoch" || name == "at" {
			continue
		}
		c, err := readAccepted(name, value)
		if err != nil {
			return g, err
		}
		g.Claims = append(g.Claims, c)
	}
	if len(g.Claims) == 0 {
		return g, errors.New("not a group of claims: it has none")
	}
	slices.SortFunc(g.Claims, func(a, b gate.Accepted) int { return int(a.Number - b.Number) })
	return g, nil
}

// readAccepted reads "number user origin key"; a key may contain spaces.
func readAccepted(name string, value any) (gate.Accepted, error) {
	text, _ := value.(string)
	parts := strings.SplitN(text, " ", 4)
	id, err := claim.ParseID(name)
	if err != nil || len(parts) != 4 {
		return gate.Accepted{}, fmt.Errorf("not a group of claims: %.40q is no claim", name)
	}
	n, err1 := strconv.ParseInt(parts[0], 10, 64)
	by, err2 := user.ParseID(parts[1])
	if errors.Join(err1, err2) != nil {
		return gate.Accepted{}, fmt.Errorf("not a group of claims: claim %s is unreadable", id)
	}
	return gate.Accepted{ID: id, UserID: by, Origin: claim.Origin(parts[2]), Key: parts[3], Number: n}, nil
}
