package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/domain/inbox"
	"dropbell/web/api/pipeline"
)

const (
	defaultHeartbeat = 20 * time.Second
	// writeTimeout is how long one write to a stream's client may take.
	writeTimeout = 10 * time.Second
	// resumeWindow is how much older than the last message seen a message may be that becomes
	// visible later: batches that finish at the same time commit in any order.
	resumeWindow = 10 * time.Second
	// maxBacklog bounds the missed messages that a reconnected client gets. The client finds older
	// messages in the inbox.
	maxBacklog = 500
)

func (h *handlers) streamRoute() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Stream: true}, Method: http.MethodGet, Path: "/inbox/stream", ID: "inbox-stream",
		Summary: "Receive in-app messages as they are delivered",
		Description: "Server-sent events: ready when the stream has begun, then message with a message as in the inbox. A comment " +
			"every 20 seconds keeps the connection. Reconnect with Last-Event-ID to get the messages in between; each comes once. " +
			"The stream ends with the token or its key, and when the client does not keep up.",
		File: "text/event-stream", FileText: "The events.", Complete: func(op *huma.Operation) {
			op.Parameters = append(op.Parameters, &huma.Param{Name: "Last-Event-ID", In: "header",
				Description: "The id of the last event received.", Schema: &huma.Schema{Type: huma.TypeString}})
		}}, h.stream)
}

func (h *handlers) stream(ctx context.Context, in *streamWish) (*pipeline.Stream, error) {
	s := &stream{api: h, by: pipeline.CallerOf(ctx), seen: parsePosition(in.last)}
	if err := s.subscribe(); err != nil {
		return nil, err
	}
	return pipeline.Streamed(func(w http.ResponseWriter, r *http.Request) {
		s.chunked = r.ProtoAtLeast(1, 1)
		missed, err := s.missed(ctx)
		if err != nil {
			s.end()
			h.Problem(ctx, err).Write(w)
			return
		}
		if !s.takeOver(w, r) {
			return
		}
		if s.conn == nil {
			s.stay(missed)
			return
		}
		// A stream holds nothing of the request, whose stack and buffers are free again.
		go s.begin(missed)
	}), nil
}

type streamWish struct{ last string }

// Resolve is part of [huma.Resolver].
func (in *streamWish) Resolve(ctx huma.Context) []error {
	in.last = ctx.Header("Last-Event-ID")
	return nil
}

// stream is one client's connection, and all the memory that an idle client takes. A goroutine
// serves the client only while there is something to write.
type stream struct {
	api     *handlers
	by      *pipeline.Caller
	sub     *Subscription
	conn    net.Conn // nil if the connection stays with the server
	chunked bool     // as HTTP/1.1 has it
	seen    position
	// turns counts the pending reasons to serve the client. The goroutine that raises it from 0 to
	// 1 serves the client. It stays above 0 after the stream has ended.
	turns   atomic.Int32
	beat    *time.Timer // the next heartbeat, or the end of the credentials
	due     atomic.Bool // beat has fired
	expires time.Time   // of the credentials, by this machine's clock; zero = never
	// Without a connection of its own the stream writes to out until gone is closed.
	out   http.ResponseWriter
	gone  <-chan struct{}
	woken chan struct{}
}

// takeOver sends the head of the answer and takes the connection from the server, which would keep
// a stack, two buffers and the request for each connection. An HTTP/2 connection cannot be taken
// and stays with the server. takeOver returns false if the client has left.
func (s *stream) takeOver(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies must not collect events
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	err := control.Flush()
	if err == nil {
		s.conn, _, err = control.Hijack()
	}
	switch {
	case errors.Is(err, http.ErrNotSupported):
		s.out, s.gone, s.woken = w, r.Context().Done(), make(chan struct{}, 1)
		return true
	case err == nil:
		err = s.conn.SetDeadline(time.Time{}) // those of the server are for answers that end
	}
	if err == nil {
		return true
	}
	s.end()
	return false
}

// subscribe subscribes the client before its missed messages are read, so that no message falls in
// between. It sets turns to 1, so that the client is not served before begin.
func (s *stream) subscribe() (err error) {
	s.turns.Store(1)
	s.sub, err = s.api.Hub.Subscribe(s.by.User, s.wake)
	return err
}

// wake starts a goroutine that serves the client. If the client is being served, it is served once
// more.
func (s *stream) wake() {
	switch {
	case s.turns.Add(1) > 1:
	case s.conn == nil:
		s.woken <- struct{}{} // has room: the stream took the last one before it rested
	default:
		go s.serve()
	}
}

// stay serves a client within its request until it leaves, is cut off, or its
// credentials end.
func (s *stream) stay(missed []inbox.Message) {
	for alive := s.begin(missed); alive; {
		select {
		case <-s.gone:
			s.end()
			return
		case <-s.woken:
			alive = s.serve()
		}
	}
}

// begin sends the stream's position and the missed messages, and then serves the client. It returns
// false if the stream has ended.
func (s *stream) begin(missed []inbox.Message) bool {
	if until := s.by.Until; !until.IsZero() {
		s.expires = time.Now().Add(until.Sub(s.api.Now()))
	}
	s.beat = time.AfterFunc(s.rest(), func() {
		s.due.Store(true)
		s.wake()
	})
	if s.seen.at.IsZero() {
		s.seen.at = s.api.Now().UTC()
	}
	ready := fmt.Appendf(nil, "retry: %d\nevent: ready\nid: %s\ndata: {}\n\n", retryAfter(s.api.Hub.Streams()).Milliseconds(), &s.seen)
	alive := s.write(ready)
	for _, it := range missed {
		alive = alive && s.send(&Shown{Message: it})
	}
	if !alive {
		s.end()
		return false
	}
	return s.serve()
}

// rest returns how long the stream rests when there are no messages.
func (s *stream) rest() time.Duration {
	d := cmp.Or(s.api.Hub.Heartbeat, defaultHeartbeat)
	if !s.expires.IsZero() {
		d = min(d, time.Until(s.expires))
	}
	return d
}

// serve writes until no reason to serve is pending. It returns false if the stream has ended:
// because the client has left or is cut off, or because its credentials have ended.
func (s *stream) serve() bool {
	for {
		n := s.turns.Load()
		if !s.turn() {
			s.end()
			return false
		}
		if s.turns.CompareAndSwap(n, 0) {
			return true
		}
	}
}

// turn writes all pending messages and a due heartbeat. It returns false to end the stream.
func (s *stream) turn() bool {
	items, ended := s.sub.Take()
	if ended {
		s.finish()
		return false
	}
	for _, it := range items {
		if !s.send(it) {
			return false
		}
	}
	if !s.due.Swap(false) {
		return true
	}
	if !s.expires.IsZero() && !time.Now().Before(s.expires) {
		s.finish()
		return false
	}
	if s.by.IsWithdrawn() || !s.write(heartbeat) {
		return false
	}
	s.beat.Reset(s.rest())
	return true
}

// end releases the stream's resources. It leaves turns above 0, so that no goroutine serves the
// stream again.
func (s *stream) end() {
	if s.beat != nil {
		s.beat.Stop()
	}
	s.api.Hub.Cancel(s.by.User, s.sub)
	if s.conn != nil {
		_ = s.conn.Close()
	}
}

var heartbeat = []byte(": still here\n\n")

const (
	// A client that lost its stream reconnects after leastRetry plus a random delay. The delay is
	// up to retrySpread, or longer, so that at most comebacksPerSecond of this process's clients
	// reconnect in a second: when a process ends, all its clients lose their streams at once.
	leastRetry         = time.Second
	retrySpread        = 2 * time.Second
	comebacksPerSecond = 2000
)

// retryAfter returns another time for each client of a process with that many.
func retryAfter(streams int) time.Duration {
	spread := max(retrySpread, time.Duration(streams)*time.Second/comebacksPerSecond)
	return leastRetry + rand.N(spread)
}

// missed returns the messages delivered after the client's position, oldest first.
func (s *stream) missed(ctx context.Context) ([]inbox.Message, error) {
	if s.seen.at.IsZero() {
		return nil, nil
	}
	since := s.seen.at.Add(-resumeWindow)
	// Without an answer the inbox itself is read.
	if may, err := s.api.Inbox.MayHaveMissed(ctx, s.by.User, s.api.Now(), since); err == nil && !may {
		return nil, nil
	}
	var all []inbox.Message
	var before time.Time
	for len(all) < maxBacklog {
		box, err := s.api.Inbox.Page(ctx, s.by.User, before, 100)
		if err != nil {
			return nil, err
		}
		for _, it := range box.Items {
			if it.At.Before(since) {
				slices.Reverse(all)
				return all, nil
			}
			all = append(all, it)
			before = it.At
		}
		if len(box.Items) < 100 {
			break
		}
	}
	slices.Reverse(all)
	return all, nil
}

// send writes one message unless the client has it; false ends the stream.
func (s *stream) send(it *Shown) bool {
	if !s.seen.add(it.Message) {
		return true
	}
	text := events.Get().(*[]byte)
	defer events.Put(text)
	*text = append((*text)[:0], "event: message\nid: "...)
	*text = s.seen.append(*text)
	*text = append(*text, "\ndata: "...)
	*text = append(*text, it.JSON()...)
	*text = append(*text, "\n\n"...)
	return s.write(*text)
}

// events and frames are buffers of streams that are writing.
var (
	events = sync.Pool{New: func() any { return new([]byte) }}
	frames = sync.Pool{New: func() any { return new([]byte) }}
)

// write sends bytes that must arrive together. A client that does not read them in time is cut off,
// so that no bytes wait for it in memory.
func (s *stream) write(text []byte) bool {
	if s.conn == nil {
		control := http.NewResponseController(s.out)
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err := s.out.Write(text)
		return err == nil && control.Flush() == nil
	}
	if s.chunked {
		frame := frames.Get().(*[]byte)
		defer frames.Put(frame)
		*frame = strconv.AppendInt((*frame)[:0], int64(len(text)), 16)
		*frame = append(*frame, "\r\n"...)
		*frame = append(*frame, text...)
		*frame = append(*frame, "\r\n"...)
		text = *frame
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := s.conn.Write(text)
	return err == nil
}

// finish writes the end of the answer.
func (s *stream) finish() {
	if s.conn != nil && s.chunked {
		_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, _ = s.conn.Write([]byte("0\r\n\r\n"))
	}
}
