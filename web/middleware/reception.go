package middleware

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// perAddressReads is how many bodies of one address are read at a time.
const perAddressReads = 32

// A Reception reads the body of a request before the request enters a [Budget], so that clients
// that send slowly, or nothing, take no place of the budget. Each address has a share of the bodies
// that are read at a time. Above this share, the oldest reading of the address ends: it belongs to
// a slow client.
type Reception struct {
	body   int64 // the greatest body that is read ahead, in bytes
	memory int64 // the greatest size of all bodies together, in bytes

	mu    sync.Mutex
	taken int64
	// reads are the readings under way by address, the oldest first. unread counts the requests
	// whose body was too large to be read ahead.
	reads  map[LimitKey][]*reading
	unread map[LimitKey]int
}

// NewReception returns a reception of bodies of at most body bytes each. All bodies together take
// at most memory bytes until their requests are answered.
func NewReception(body, memory int64) *Reception {
	return &Reception{body: body, memory: memory, reads: map[LimitKey][]*reading{}, unread: map[LimitKey]int{}}
}

// A reading is a body that is being read.
type reading struct{ control *http.ResponseController }

var errNoRoom = errors.New("too many bodies are being read")

// Received passes requests to next with their body in memory. If the body ended early, next gets
// the error where it reads that far. If the body is larger than the limit, next reads the remaining
// bytes from the client. refuse answers requests for which there is no room.
func (c *Reception) Received(refuse http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength == 0 {
				next.ServeHTTP(w, r)
				return
			}
			q, r := Ensure(r)
			key := AddressKey('b', q.ClientIP(r))
			if r.ContentLength > c.body {
				if !c.enterUnread(key) {
					refuse(w, r)
					return
				}
				defer c.leaveUnread(key)
				next.ServeHTTP(w, r)
				return
			}
			start, err := c.read(w, r, key)
			defer c.free(int64(len(start)))
			if errors.Is(err, errNoRoom) {
				w.Header().Set("Connection", "close")
				refuse(w, r)
				return
			}
			rest := io.Reader(r.Body)
			if err != nil {
				rest = failing{err}
			}
			r.Body = received{io.MultiReader(bytes.NewReader(start), rest), r.Body}
			next.ServeHTTP(w, r)
		})
	}
}

// read reads at most one byte more than c.body. The bytes count against the memory until free is
// called. It returns [errNoRoom] if all bodies together, or the bodies of the address, are too
// many.
func (c *Reception) read(w http.ResponseWriter, r *http.Request, key LimitKey) (start []byte, err error) {
	at := c.begin(w, key)
	defer func() {
		if !c.end(key, at) {
			err = errNoRoom
		}
	}()
	chunk := make([]byte, 4<<10)
	for int64(len(start)) <= c.body {
		n, err := r.Body.Read(chunk[:min(int64(len(chunk)), c.body+1-int64(len(start)))])
		start = append(start, chunk[:n]...)
		if !c.take(int64(n)) {
			return start, errNoRoom
		}
		if err != nil {
			return start, err
		}
	}
	return start, nil
}

func (c *Reception) begin(w http.ResponseWriter, key LimitKey) *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := &reading{http.NewResponseController(w)}
	list := c.reads[key]
	if len(list) >= perAddressReads {
		// A writer without deadlines has no connection that could be slow.
		_ = list[0].control.SetReadDeadline(time.Unix(1, 0))
		list = list[1:]
	}
	c.reads[key] = append(slices.Clip(list), at)
	return at
}

// end reports false for a reading that was ended for another of its address.
func (c *Reception) end(key LimitKey, at *reading) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.reads[key]
	i := slices.Index(list, at)
	if i < 0 {
		return false
	}
	if len(list) == 1 {
		delete(c.reads, key)
	} else {
		c.reads[key] = slices.Delete(list, i, i+1)
	}
	return true
}

func (c *Reception) take(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken += n
	return c.taken <= c.memory
}

func (c *Reception) free(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken -= n
}

func (c *Reception) enterUnread(key LimitKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unread[key] >= perAddressReads {
		return false
	}
	c.unread[key]++
	return true
}

func (c *Reception) leaveUnread(key LimitKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unread[key]--; c.unread[key] == 0 {
		delete(c.unread, key)
	}
}

// received is a body of which the start was read.
type received struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
