package delivery

import (
	"encoding/json"
	"sync"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// Limits of a [Hub].
const (
	// streamQueue is how many messages a client may be behind before its stream is cut off. The
	// client resumes at its position.
	streamQueue = 32
	// streamsPerUser is enough for a user's devices and tabs; above it the oldest stream is closed.
	streamsPerUser = 8
	// maxStreams bounds the memory of one process.
	maxStreams = 100_000
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
	users   userIndex // of clients
	count   int
	closed  bool
}

// Subscription is one client's share of a [Hub]. An idle subscription takes only these few words:
// no channel, no goroutine.
type Subscription struct {
	wake  func()
	mu    sync.Mutex
	items []*Shown
	ended bool
}

// Take returns the user's messages since the last call, and whether the subscription has ended. The
// messages are shared with other clients. A subscription ends when the client is too slow, when the
// user opens too many streams, and when the hub closes.
func (s *Subscription) Take() (items []*Shown, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, s.items = s.items, nil
	return items, s.ended
}

// Shown is a message in the API's form, encoded once for all clients.
type Shown struct {
	inbox.Message
	once sync.Once
	data []byte
}

// JSON returns the message as the API shows it.
func (m *Shown) JSON() []byte {
	m.once.Do(func() { m.data, _ = json.Marshal(messageJSON(m.Message)) }) // of strings, numbers and instants
	return m.data
}

func (s *Subscription) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
}

// offer cuts off a client that does not keep up.
func (s *Subscription) offer(it *Shown) {
	s.mu.Lock()
	if len(s.items) < streamQueue {
		s.items = append(s.items, it)
	} else {
		s.ended = true
	}
	s.mu.Unlock()
	s.wake()
}

// Subscribe returns a subscription to the user's messages from now on; [Hub.Cancel] ends it. wake
// is called when there are messages to take; it must neither wait nor call the hub. If this process
// has no room, the error is [errTooManyStreams].
func (h *Hub) Subscribe(by user.ID, wake func()) (*Subscription, error) {
	s := &Subscription{wake: wake}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.count >= maxStreams {
		return nil, errTooManyStreams
	}
	if h.clients == nil {
		h.clients = map[user.ID][]*Subscription{}
	}
	mine := h.clients[by]
	if len(mine) == 0 {
		h.users.insert(by)
	}
	if len(mine) >= streamsPerUser {
		mine[0].end()
		mine = mine[1:]
		h.count--
	}
	h.clients[by] = append(mine[:len(mine):len(mine)], s)
	h.count++
	return s, nil
}

// Cancel ends a subscription, whose client is not woken; it may be called more than once.
func (h *Hub) Cancel(by user.ID, s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left []*Subscription
	for _, other := range h.clients[by] {
		if other != s {
			left = append(left, other)
		}
	}
	h.count -= len(h.clients[by]) - len(left)
	if len(left) == 0 {
		delete(h.clients, by)
		h.users.remove(by)
		return
	}
	h.clients[by] = left
}

// Between reports whether a user between from and to is connected.
func (h *Hub) Between(from, to user.ID) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.users.count(from, to, 1) > 0
}

// Connected returns the users in the range from…to that are connected and in reached. Its steps are
// as many as the smaller of the two sets has members.
func (h *Hub) Connected(from, to user.ID, reached inbox.Users) (list []user.ID) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if n := reached.Len(); h.users.count(from, to, n+1) > n {
		for id := range reached.All() {
			if len(h.clients[id]) > 0 && from <= id && id <= to {
				list = append(list, id)
			}
		}
		return list
	}
	h.users.within(from, to, func(id user.ID) bool {
		if reached.Contains(id) {
			list = append(list, id)
		}
		return true
	})
	return list
}

// Notify sends the users their message. It never waits for a client.
func (h *Hub) Notify(users []user.ID, message func(user.ID) inbox.Message) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	shown := &Shown{}
	for _, id := range users {
		subs := h.clients[id]
		if len(subs) == 0 {
			continue
		}
		if it := message(id); shown.Message != it {
			shown = &Shown{Message: it}
		}
		for _, s := range subs {
			s.offer(shown)
		}
	}
}

// Streams returns how many clients are connected.
func (h *Hub) Streams() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.count
}

// Closed reports whether the server is shutting down.
func (h *Hub) Closed() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.closed
}

// Close ends every stream and refuses new streams, so that a server can shut down.
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
