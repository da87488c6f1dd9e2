package watermill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/domain/pause"
)

const (
	// watchFor is how long one blocked XREAD of a streamWatch takes, and how often the
	// streamWatch compares its positions with the positions in Redis.
	watchFor = 5 * time.Second
	// watchAnswer is how much longer Redis may take to answer it.
	watchAnswer = 3 * time.Second
	// watchPause follows a failure.
	watchPause = 200 * time.Millisecond
	// watchGap is the least time between two notices, so that readers of a busy stream are not
	// woken for each event.
	watchGap = 2 * time.Millisecond
)

// A streamWatch notices that streams have new entries, for all subscriptions of a process. It
// uses one blocked XREAD, or with a cluster one for each stream. It reads outside of all groups
// and only says when reading is worth while, so an interrupted watch loses nothing.
type streamWatch struct {
	client  goredis.UniversalClient
	mu      sync.Mutex
	changed map[string]chan struct{} // by topic; closed at the next change
}

func newStreamWatch(client goredis.UniversalClient) *streamWatch {
	return &streamWatch{client: client, changed: map[string]chan struct{}{}}
}

// next returns a channel that is closed once the stream has changed after this call. Call next
// before reading the stream.
func (w *streamWatch) next(topic string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.changed[topic]
	if c == nil {
		c = make(chan struct{})
		w.changed[topic] = c
	}
	return c
}

func (w *streamWatch) notify(topics ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, topic := range topics {
		if c := w.changed[topic]; c != nil {
			close(c)
			delete(w.changed, topic)
		}
	}
}

// start watches the topics until ctx ends. A read in flight then ends when the client is closed,
// or within [watchFor].
func (w *streamWatch) start(ctx context.Context, topics []string) {
	if len(topics) == 0 {
		return
	}
	if _, cluster := w.client.(*goredis.ClusterClient); !cluster {
		go w.watch(ctx, topics)
		return
	}
	for _, topic := range topics { // one XREAD can read from one slot only
		go w.watch(ctx, []string{topic})
	}
}

func (w *streamWatch) watch(ctx context.Context, topics []string) {
	var known map[string]string // newest id by topic; nil = unknown
	for ctx.Err() == nil {
		var err error
		if known, err = w.step(ctx, topics, known); err != nil {
			known = nil
			// Wake all readers: each reader gets the error itself.
			w.notify(topics...)
			if !pause.For(ctx, watchPause) {
				return
			}
		}
	}
}

// step waits for new entries, notifies readers of streams that have new entries, and returns the
// newest ids of the streams. Without known ids it reads the ids and reports all streams.
func (w *streamWatch) step(ctx context.Context, topics []string, known map[string]string) (map[string]string, error) {
	if known == nil {
		known, err := w.newest(ctx, topics)
		if err == nil {
			w.notify(topics...)
		}
		return known, err
	}
	grown, err := w.block(ctx, topics, known)
	if err != nil {
		return nil, err
	}
	look := grown
	if len(grown) == 0 {
		look = topics // also notices streams that have vanished
	}
	now, err := w.newest(ctx, look)
	if err != nil {
		return nil, err
	}
	for topic, id := range now {
		if known[topic] != id {
			known[topic] = id
			w.notify(topic)
		}
	}
	if len(grown) > 0 {
		pause.For(ctx, watchGap)
	}
	return known, nil
}

// block returns the topics with entries after the known ids; no topics if there were no new
// entries for [watchFor].
func (w *streamWatch) block(ctx context.Context, topics []string, known map[string]string) (grown []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchFor+watchAnswer)
	defer cancel()
	streams := append(make([]string, 0, 2*len(topics)), topics...)
	for _, topic := range topics {
		streams = append(streams, known[topic])
	}
	reply, err := w.client.XRead(ctx, &goredis.XReadArgs{Streams: streams, Count: 1, Block: watchFor}).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	for _, s := range reply {
		grown = append(grown, s.Stream)
	}
	return grown, nil
}

// newest returns the id of the newest entry of each stream, 0-0 without any.
func (w *streamWatch) newest(ctx context.Context, topics []string) (map[string]string, error) {
	replies := make([]*goredis.XMessageSliceCmd, len(topics))
	look := func(c goredis.Cmdable) {
		for i, topic := range topics {
			replies[i] = c.XRevRangeN(ctx, topic, "+", "-", 1)
		}
	}
	if len(topics) == 1 {
		look(w.client)
	} else if _, err := w.client.Pipelined(ctx, func(p goredis.Pipeliner) error { look(p); return nil }); err != nil {
		return nil, err
	}
	ids := make(map[string]string, len(topics))
	for i, topic := range topics {
		entries, err := replies[i].Result()
		if err != nil {
			return nil, fmt.Errorf("newest event of %s: %w", topic, err)
		}
		ids[topic] = "0-0"
		if len(entries) > 0 {
			ids[topic] = entries[0].ID
		}
	}
	return ids, nil
}
