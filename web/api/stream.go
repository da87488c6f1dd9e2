package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/inbox"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

const (
	defaultHeartbeat = 20 * time.Second
	// writeTimeout is how long one write to a stream's client may take.
	writeTimeout = 10 * time.Second
	// resumeWindow is how much earlier than the last message seen another one
	// may have been recorded and yet become visible later: batches that
	// finish at the same time commit in any order.
	resumeWindow = 10 * time.Second
	// maxBacklog bounds the missed messages that a reconnected client gets; older
	// ones are in the inbox.
	maxBacklog = 500
)

func (a *API) streamRoute() {
	op := a.Operation(pipeline.Route{Traits: pipeline.Traits{Stream: true}, Method: http.MethodGet, Path: "/inbox/stream", ID: "inbox-stream", Tag: pipeline.TagUsers,
		Summary: "Receive in-app messages as they are delivered",
		Description: "Server-sent events: ready when the stream has begun, then message with a message as in the inbox. A comment " +
			"every 20 seconds keeps the connection. Reconnect with Last-Event-ID to get what was missed; each message comes once. " +
			"The stream ends with the token or its key, and when the client does not keep up."})
	op.Parameters = append(op.Parameters, &huma.Param{Name: "Last-Event-ID", In: "header",
		Description: "The id of the last event received.", Schema: &huma.Schema{Type: huma.TypeString}})
	op.Responses["200"] = &huma.Response{Description: "The events.",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	pipeline.Register(a.Pipeline, op, func(ctx context.Context, in *streamWish) (*struct{ Body func(huma.Context) }, error) {
		sub, err := a.Hub.Subscribe(pipeline.UserOf(ctx))
		if err != nil {
			return nil, err
		}
		return &struct{ Body func(huma.Context) }{func(hc huma.Context) {
			defer a.Hub.Cancel(pipeline.UserOf(ctx), sub)
			_, w := humachi.Unwrap(hc)
			s := &stream{api: a, user: pipeline.UserOf(ctx), w: w, control: http.NewResponseController(w), seen: parsePosition(in.last)}
			s.run(ctx, sub, pipeline.CallerOf(ctx))
		}}, nil
	})
}

type streamWish struct{ last string }

// Resolve is part of [huma.Resolver].
func (in *streamWish) Resolve(ctx huma.Context) []error {
	in.last = ctx.Header("Last-Event-ID")
	return nil
}

// stream is one client's connection.
type stream struct {
	api     *API
	user    user.ID
	w       http.ResponseWriter
	control *http.ResponseController
	seen    position
}

// run serves the client until it leaves, is cut off, or its credentials end.
func (s *stream) run(ctx context.Context, sub *Subscription, by *pipeline.Caller) {
	if !by.Until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, by.Until.Sub(s.api.Now()))
		defer cancel()
	}
	// The server's own read deadline would end the stream.
	_ = s.control.SetReadDeadline(time.Time{})
	if !s.begin(ctx) {
		return
	}
	beat := time.NewTicker(cmp.Or(s.api.Hub.Heartbeat, defaultHeartbeat))
	defer beat.Stop()
	for alive := true; alive; {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			alive = !by.IsWithdrawn() && s.write(": still here\n\n")
		case <-sub.Done:
			return
		case it := <-sub.Items:
			alive = s.send(it)
		}
	}
}

// begin answers, sends the missed messages, and the position of the stream. The
// client is subscribed already, so that no message is lost in between.
func (s *stream) begin(ctx context.Context) bool {
	missed, err := s.missed(ctx)
	if err != nil {
		s.api.Problem(ctx, err).Write(s.w)
		return false
	}
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies must not collect events
	s.w.WriteHeader(http.StatusOK)
	if s.seen.at.IsZero() {
		s.seen.at = s.api.Now().UTC()
	}
	if !s.write("retry: 2000\nevent: ready\nid: " + s.seen.String() + "\ndata: {}\n\n") {
		return false
	}
	for _, it := range missed {
		if !s.send(it) {
			return false
		}
	}
	return true
}

// missed returns what was delivered since the client's position, oldest first.
func (s *stream) missed(ctx context.Context) ([]inbox.Message, error) {
	if s.seen.at.IsZero() {
		return nil, nil
	}
	since := s.seen.at.Add(-resumeWindow)
	var all []inbox.Message
	var before time.Time
	for len(all) < maxBacklog {
		box, err := s.api.Inbox.Page(ctx, s.user, before, 100)
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
func (s *stream) send(it inbox.Message) bool {
	if !s.seen.add(it) {
		return true
	}
	data, err := json.Marshal(messageJSON(it))
	if err != nil {
		return false
	}
	return s.write(fmt.Sprintf("event: message\nid: %s\ndata: %s\n\n", s.seen, data))
}

// write sends what must arrive together. The server's write deadline is for
// answers that end, so each write sets its own.
func (s *stream) write(text string) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	return s.control.Flush() == nil
}

// position is a client's position in its messages. Its text is the event id: the
// latest instant, and the messages around it that it has, so that any process
// can continue from there without having served the client before.
type position struct {
	at     time.Time
	recent []placed
}

type placed struct {
	id string
	at time.Time
}

const maxRecent = 64

// add returns false if the client has the message.
func (p *position) add(it inbox.Message) bool {
	for _, r := range p.recent {
		if r.id == it.ID {
			return false
		}
	}
	if it.At.After(p.at) {
		p.at = it.At
	}
	p.recent = append(p.recent, placed{it.ID, it.At})
	p.recent = slices.DeleteFunc(p.recent, func(r placed) bool { return r.at.Before(p.at.Add(-resumeWindow)) })
	if len(p.recent) > maxRecent {
		p.recent = p.recent[len(p.recent)-maxRecent:]
	}
	return true
}

func (p position) String() string {
	var b strings.Builder
	b.WriteString(strconv.FormatInt(p.at.UnixMicro(), 10))
	for _, r := range p.recent {
		fmt.Fprintf(&b, ",%d=%s", p.at.Sub(r.at).Microseconds(), url.QueryEscape(r.id))
	}
	return b.String()
}

// parsePosition returns the zero position for anything it did not write.
func parsePosition(s string) position {
	first, rest, _ := strings.Cut(s, ",")
	micros, err := strconv.ParseInt(first, 10, 64)
	// Instants that a database can hold, 1970 to 9000.
	if err != nil || micros <= 0 || micros > 221845392000000000 || len(s) > 8<<10 {
		return position{}
	}
	p := position{at: time.UnixMicro(micros).UTC()}
	for part := range strings.SplitSeq(rest, ",") {
		age, escaped, ok := strings.Cut(part, "=")
		n, err := strconv.ParseInt(age, 10, 64)
		id, bad := url.QueryUnescape(escaped)
		if ok && err == nil && bad == nil && n >= 0 && n <= resumeWindow.Microseconds() && len(p.recent) < maxRecent {
			p.recent = append(p.recent, placed{id, p.at.Add(-time.Duration(n) * time.Microsecond)})
		}
	}
	return p
}
