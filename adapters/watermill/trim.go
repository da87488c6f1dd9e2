package watermill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/event"

	goredis "github.com/redis/go-redis/v9"
)

// countedLag bounds the counting that replaces a lag Redis does not know.
const countedLag = 10_000

// An entryID is a position in a stream: milliseconds and a counter in them.
type entryID struct{ ms, seq uint64 }

func parseEntryID(text string) (entryID, error) {
	left, right, _ := strings.Cut(text, "-")
	ms, err1 := strconv.ParseUint(left, 10, 64)
	seq, err2 := strconv.ParseUint(right, 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return entryID{}, fmt.Errorf("stream position %q: %w", text, err)
	}
	return entryID{ms, seq}, nil
}

func (id entryID) String() string { return fmt.Sprintf("%d-%d", id.ms, id.seq) }

func (id entryID) compare(other entryID) int {
	return cmp.Or(cmp.Compare(id.ms, other.ms), cmp.Compare(id.seq, other.seq))
}

func (b *Bus) topics() []string {
	topics := event.All()
	for _, s := range b.subscriptions {
		topics = append(topics, s.topic)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// Trim deletes events older than olderThan that every group has handled. An event that one group
// has not read or not acknowledged stays, however old it is. A group without consumers therefore
// keeps its stream growing, which [Bus.Lag] shows. Trim returns the number of deleted events,
// and [ErrUnavailable] when Redis does not answer.
func (b *Bus) Trim(ctx context.Context, olderThan time.Duration) (int64, error) {
	now, err := b.client.Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("trim streams: %w: %w", ErrUnavailable, err)
	}
	total, age := int64(0), entryID{ms: uint64(max(0, now.Add(-olderThan).UnixMilli()))}
	for _, topic := range b.topics() {
		keep, err := b.keepFrom(ctx, topic, age)
		if err != nil {
			return total, fmt.Errorf("trim %s: %w: %w", topic, ErrUnavailable, err)
		}
		n, err := b.client.XTrimMinID(ctx, topic, keep.String()).Result()
		if err != nil {
			return total, fmt.Errorf("trim %s: %w: %w", topic, ErrUnavailable, err)
		}
		total += n
	}
	return total, nil
}

// keepFrom returns the first position that must stay: age, or the first entry that the slowest
// group still needs, if that is earlier. Groups only move forward meanwhile.
func (b *Bus) keepFrom(ctx context.Context, topic string, age entryID) (entryID, error) {
	groups, err := b.groups(ctx, topic)
	if err != nil {
		return entryID{}, err
	}
	keep := age
	for _, group := range groups {
		needs := group.LastDeliveredID
		if group.Pending > 0 {
			pending, err := b.client.XPending(ctx, topic, group.Name).Result()
			if err != nil {
				return entryID{}, err
			}
			if pending.Count > 0 {
				needs = pending.Lower
			}
		}
		id, err := parseEntryID(needs)
		if err != nil {
			return entryID{}, err
		}
		if id.compare(keep) < 0 {
			keep = id
		}
	}
	return keep, nil
}

// groups returns the consumer groups of a stream; no groups if the stream does not exist.
func (b *Bus) groups(ctx context.Context, topic string) ([]goredis.XInfoGroup, error) {
	groups, err := b.client.XInfoGroups(ctx, topic).Result()
	if isAbsent(err) {
		return nil, nil
	}
	return groups, err
}

// isAbsent reports whether Redis has answered that there is no such stream.
func isAbsent(err error) bool { return err != nil && strings.Contains(err.Error(), "no such key") }

// allGroups returns the consumer groups of the streams, in one round trip.
func (b *Bus) allGroups(ctx context.Context, topics []string) ([][]goredis.XInfoGroup, error) {
	replies := make([]*goredis.XInfoGroupsCmd, len(topics))
	// The error is the error of the first stream that does not exist, or an error of the
	// connection.
	_, _ = b.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, topic := range topics {
			replies[i] = p.XInfoGroups(ctx, topic)
		}
		return nil
	})
	groups := make([][]goredis.XInfoGroup, len(topics))
	for i, reply := range replies {
		var err error
		if groups[i], err = reply.Result(); err != nil && !isAbsent(err) {
			return nil, fmt.Errorf("%s: %w", topics[i], err)
		}
	}
	return groups, nil
}

// A Group is a consumer group of one stream.
type Group struct{ Topic, Name string }

// Lag returns how many events of each group are unread or not yet acknowledged. If Redis cannot
// count them (after entries were deleted), Lag counts up to ten thousand. Lag returns
// [ErrUnavailable] when Redis does not answer.
func (b *Bus) Lag(ctx context.Context) (map[Group]int64, error) {
	lags, topics := map[Group]int64{}, b.topics()
	groups, err := b.allGroups(ctx, topics)
	if err != nil {
		return nil, fmt.Errorf("lag of events: %w: %w", ErrUnavailable, err)
	}
	for i, topic := range topics {
		for _, group := range groups[i] {
			unread, err := b.unread(ctx, topic, group)
			if err != nil {
				return nil, fmt.Errorf("lag of %s: %w: %w", topic, ErrUnavailable, err)
			}
			lags[Group{topic, group.Name}] = unread + group.Pending
		}
	}
	return lags, nil
}

func (b *Bus) unread(ctx context.Context, topic string, group goredis.XInfoGroup) (int64, error) {
	if group.Lag >= 0 {
		return group.Lag, nil
	}
	entries, err := b.client.XRangeN(ctx, topic, "("+group.LastDeliveredID, "+", countedLag).Result()
	return int64(len(entries)), err
}
