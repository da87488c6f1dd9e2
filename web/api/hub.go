package api

import (
	"sync"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// Limits of a [Hub].
const (
	// streamQueue is how many messages a client may be behind before it is cut
	// off; it resumes where it was.
	streamQueue = 32
	// streamsPerUser allows a user's devices and tabs; the oldest goes first.
	streamsPerUser = 8
	// maxStreams bounds the memory of one process: some 20 kB each.
	maxStreams = 50_000
)

var errTooManyStreams = fault.New(fault.Unavailable, "overloaded", "too many open streams; try again")

// Hub sends in-app messages to the clients connected to this process. It stores
// nothing: clients that were not connected, or too slow, find all messages in
// the inbox. The zero Hub is ready; a Hub must not be copied.
type Hub struct {
	// Heartbeat is how often idle streams show that they are alive, 0 = 20 s.
	Heartbeat time.Duration

	mu      sync.RWMutex
	clients map[user.ID][]*Subscription
	count   int
	closed  bool
}

// Subscription is one client's share of a [Hub].
type Subscription struct {
	// Items are the user's messages.
	Items <-chan inbox.Message
	// Done is closed when the client is too slow, when the user opens too many
	// streams, and when the hub closes.
	Done <-chan struct{}

	items chan inbox.Message
	done  chan struct{}
	once  sync.Once
}

func (s *Subscription) end() { s.once.Do(func() { close(s.done) }) }

// offer cuts off a client that does not keep up.
func (s *Subscription) offer(it inbox.Message) {
	select {
	case s.items <- it:
	default:
		s.end()
	}
}

// Subscribe returns the user's messages from now on; [Hub.Cancel] ends it. It
// returns [errTooManyStreams] when this process has no room.
func (h *Hub) Subscribe(by user.ID) (*Subscription, error) {
	items, done := make(chan inbox.Message, streamQueue), make(chan struct{})
	s := &Subscription{Items: items, Done: done, items: items, done: done}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.count >= maxStreams {
		return nil, errTooManyStreams
	}
	if h.clients == nil {
		h.clients = map[user.ID][]*Subscription{}
	}
	mine := h.clients[by]
	if len(mine) >= streamsPerUser {
		mine[0].end()
		mine = mine[1:]
		h.count--
	}
	h.clients[by] = append(mine[:len(mine):len(mine)], s)
	h.count++
	return s, nil
}

// Cancel ends a subscription; it may be called more than once.
func (h *Hub) Cancel(by user.ID, s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.end()
	var left []*Subscription
	for _, other := range h.clients[by] {
		if other != s {
			left = append(left, other)
		}
	}
	h.count -= len(h.clients[by]) - len(left)
	if len(left) == 0 {
		delete(h.clients, by)
		return
	}
	h.clients[by] = left
}

// Notify notifies the connected users of a finished batch, those from…to for
// whom contains reports that the message was sent to them. It never waits for a
// client.
func (h *Hub) Notify(from, to user.ID, contains func(user.ID) bool, item func(user.ID) inbox.Message) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for id := range h.clients {
		if from <= id && id <= to {
			h.tell(id, contains, item)
		}
	}
}

// Connected returns who of from…to is connected and contained.
func (h *Hub) Connected(from, to user.ID, contains func(user.ID) bool) []user.ID {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var list []user.ID
	for id := range h.clients {
		if from <= id && id <= to && contains(id) {
			list = append(list, id)
		}
	}
	return list
}

func (h *Hub) tell(id user.ID, contains func(user.ID) bool, item func(user.ID) inbox.Message) {
	subs := h.clients[id]
	if len(subs) == 0 || !contains(id) {
		return
	}
	it := item(id)
	for _, s := range subs {
		s.offer(it)
	}
}

// Streams returns how many clients are connected.
func (h *Hub) Streams() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.count
}

// Close ends every stream and refuses new ones, so that a server can shut down.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, subs := range h.clients {
		for _, s := range subs {
			s.end()
		}
	}
}
