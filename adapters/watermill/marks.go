package watermill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dropbell/adapters/redisclient"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	goredis "github.com/redis/go-redis/v9"
)

// markKey is the key of a stream's mark. The mark is on the same server as the stream and is
// lost with it. The mark holds the run id of the server in which the stream has all published
// events, and a number from the publisher. An emptied server has no mark. A restarted server, or
// a replica that took over, has another run id. A server restored from an older copy has a
// smaller number.
func markKey(topic string) string { return "events:mark:{" + topic + "}" }

func mark(run string, number int64) string { return run + " " + strconv.FormatInt(number, 10) }

// SetMarks gives the marks of all streams the number.
func (b *Bus) SetMarks(ctx context.Context, number int64) error {
	topics := b.topics()
	runs, err := b.runs(ctx, topics)
	if err != nil {
		return err
	}
	if _, err := b.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, topic := range topics {
			p.Set(ctx, markKey(topic), mark(runs[i], number), 0)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("mark streams: %w: %w", ErrUnavailable, err)
	}
	return nil
}

// Marked reports whether the marks of all streams have the number and the current run id of
// their server: then no stream has lost an event since [Bus.SetMarks]. greatest is the greatest
// number of any mark.
func (b *Bus) Marked(ctx context.Context, number int64) (all bool, greatest int64, err error) {
	topics := b.topics()
	runs, err := b.runs(ctx, topics)
	if err != nil {
		return false, 0, err
	}
	replies := make([]*goredis.StringCmd, len(topics))
	// The error is the error of the first mark that does not exist, or an error of the
	// connection.
	_, _ = b.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, topic := range topics {
			replies[i] = p.Get(ctx, markKey(topic))
		}
		return nil
	})
	all = true
	for i, reply := range replies {
		text, err := reply.Result()
		if err != nil && !errors.Is(err, goredis.Nil) {
			return false, 0, fmt.Errorf("mark of %s: %w: %w", topics[i], ErrUnavailable, err)
		}
		all = all && text == mark(runs[i], number)
		_, n, _ := strings.Cut(text, " ")
		if found, err := strconv.ParseInt(n, 10, 64); err == nil {
			greatest = max(greatest, found)
		}
	}
	return all, greatest, nil
}

// runs returns the runs of the servers that keep the streams.
func (b *Bus) runs(ctx context.Context, topics []string) ([]string, error) {
	runs := make([]string, len(topics))
	_, cluster := b.client.(*goredis.ClusterClient)
	for i, topic := range topics {
		if i > 0 && !cluster {
			runs[i] = runs[0]
			continue
		}
		run, err := redisclient.Run(ctx, b.client, topic)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		runs[i] = run
	}
	return runs, nil
}

// Ends are the last entries that streams have had, by topic.
type Ends map[string]entryID

// Ends returns the last entry that each stream has had, deleted or not.
func (b *Bus) Ends(ctx context.Context) (Ends, error) {
	topics := b.topics()
	replies, ends := make([]*goredis.XInfoStreamCmd, len(topics)), Ends{}
	// The error is the error of the first stream that does not exist, or an error of the
	// connection.
	_, _ = b.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, topic := range topics {
			replies[i] = p.XInfoStream(ctx, topic)
		}
		return nil
	})
	for i, topic := range topics {
		stream, err := replies[i].Result()
		if isAbsent(err) {
			continue
		}
		if err == nil {
			ends[topic], err = parseEntryID(stream.LastGeneratedID)
		}
		if err != nil {
			return nil, fmt.Errorf("end of %s: %w: %w", topic, ErrUnavailable, err)
		}
	}
	return ends, nil
}

// Reach reports whether no stream ends before it did.
func (e Ends) Reach(before Ends) bool {
	for topic, end := range before {
		if e[topic].compare(end) < 0 {
			return false
		}
	}
	return true
}

// Handled reports whether every handler has acknowledged all entries up to the ends, including
// handlers that only other processes have. It returns false if Redis does not know a handler of
// this process.
func (b *Bus) Handled(ctx context.Context, ends Ends) (bool, error) {
	topics := b.topics()
	groups, err := b.allGroups(ctx, topics)
	if err != nil {
		return false, fmt.Errorf("handled events: %w: %w", ErrUnavailable, err)
	}
	for i, topic := range topics {
		end := ends[topic]
		if end == (entryID{}) {
			continue
		}
		for _, own := range b.pending.groups {
			if own.topic == topic && !slices.ContainsFunc(groups[i], func(g goredis.XInfoGroup) bool { return g.Name == own.name }) {
				return false, nil
			}
		}
		for _, group := range groups[i] {
			if done, err := b.handledBy(ctx, topic, group, end); err != nil || !done {
				return false, err
			}
		}
	}
	return true, nil
}

// Drop removes the entries of a stream up to its end, which every handler must have
// acknowledged; see [Bus.Handled]. Listeners that are behind miss them.
func (b *Bus) Drop(ctx context.Context, topic string, ends Ends) error {
	end, known := ends[topic]
	if !known {
		return nil
	}
	end.seq++
	if err := b.client.XTrimMinID(ctx, topic, end.String()).Err(); err != nil {
		return fmt.Errorf("drop events of %s: %w: %w", topic, ErrUnavailable, err)
	}
	return nil
}

func (b *Bus) handledBy(ctx context.Context, topic string, group goredis.XInfoGroup, end entryID) (bool, error) {
	read, err := parseEntryID(group.LastDeliveredID)
	if err != nil || read.compare(end) < 0 {
		return false, err
	}
	if group.Pending == 0 {
		return true, nil
	}
	pending, err := b.client.XPending(ctx, topic, group.Name).Result()
	if err != nil {
		return false, fmt.Errorf("pending events of %s: %w: %w", topic, ErrUnavailable, err)
	}
	if pending.Count == 0 {
		return true, nil
	}
	first, err := parseEntryID(pending.Lower)
	return err == nil && first.compare(end) > 0, err
}

// Newest calls see with the events of a stream, the newest first, in groups, until it
// returns false.
func (b *Bus) Newest(ctx context.Context, topic string, group int64, see func([]Event) (bool, error)) error {
	for before := "+"; ; {
		entries, err := b.client.XRevRangeN(ctx, topic, before, "-", group).Result()
		if err != nil {
			return fmt.Errorf("events of %s: %w: %w", topic, ErrUnavailable, err)
		}
		if len(entries) == 0 {
			return nil
		}
		list := make([]Event, 0, len(entries))
		for _, entry := range entries {
			m, err := redisstream.DefaultMarshallerUnmarshaller{}.Unmarshal(entry.Values)
			if err != nil {
				continue // not an event
			}
			list = append(list, Event{ID: m.UUID, Topic: topic, Payload: m.Payload, Metadata: m.Metadata})
		}
		if more, err := see(list); err != nil || !more {
			return err
		}
		before = "(" + entries[len(entries)-1].ID
	}
}
