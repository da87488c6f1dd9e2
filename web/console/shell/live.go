package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

const (
	heartbeat     = 15 * time.Second
	recheckAccess = 5 * time.Second
	// WriteTimeout bounds one look at a watched state, and one write to a viewer.
	WriteTimeout = 10 * time.Second
	// reconnectIn is the delay after which a browser reconnects to a broken stream.
	reconnectIn = time.Second
	// ReloadEvent makes a page reload because its layout has changed.
	ReloadEvent = "dropbell:reload"
)

// Digest returns a sum that is equal for equal values.
func Digest(values ...any) string {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(values) // plain values into memory cannot fail
	return fmt.Sprintf("%x", h.Sum64())
}

// StreamParts sends the changes of a page as server-sent events with the HTML of the changed
// elements.
func (sh *Shell) StreamParts(w http.ResponseWriter, r *http.Request) error {
	if len(r.Form["of"]) == 0 {
		return ErrNoPage
	}
	s, err := sh.OpenStream(w, r)
	if err != nil {
		return err
	}
	defer s.Close()
	Pump(sh, s, nil, func(*liveFragment) error { return nil })
	return nil
}

// A Stream is one viewer's connection. It sends the changes of the page's own state, if the page
// has a state, and of its live parts.
type Stream struct {
	w   http.ResponseWriter
	out *http.ResponseController
	// Request is the request with the viewer's present session; first is the request as it arrived.
	Request, first *http.Request
	parts          []watched
	// Seen are the digests of the states that the viewer has: of the page's own state, then of its
	// parts. They are the id of every event, with which a broken connection is resumed.
	Seen []string
}

// OpenStream begins the answer to a request for events. It fails if one of the parts cannot be
// read.
func (sh *Shell) OpenStream(w http.ResponseWriter, r *http.Request) (*Stream, error) {
	paths, err := partPaths(r)
	if err != nil {
		return nil, err
	}
	s := &Stream{w: w, out: http.NewResponseController(w), Request: r, first: r, Seen: make([]string, 1+len(paths))}
	from := r.Header.Get("Last-Event-ID")
	if from == "" {
		from = r.FormValue("from")
	}
	copy(s.Seen, strings.Split(from, "."))
	for _, path := range paths {
		key := sh.KeyOf(Frame(r), path)
		states, leave := sh.live.hub.Join(key)
		s.parts = append(s.parts, watched{key, states, leave})
		if _, err := sh.live.hub.Peek(r.Context(), key); err != nil && !errors.Is(err, ErrReload) {
			s.Close()
			return nil, err
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	return s, nil
}

// Close ends the subscriptions of the stream.
func (s *Stream) Close() {
	for _, p := range s.parts {
		p.leave()
	}
}

// Pump sends changes until the viewer leaves or the states end. update is called for states of the
// page's own.
func Pump[S view](sh *Shell, s *Stream, states <-chan S, update func(S) error) {
	ctx := s.Request.Context()
	if s.Request.Method == http.MethodHead || s.send([]byte(": welcome\n\n")) != nil {
		return
	}
	parts := make(chan partState)
	for i, p := range s.parts {
		go p.tell(ctx, i, parts)
	}
	beat, recheck := time.NewTicker(heartbeat), time.NewTicker(recheckAccess)
	defer beat.Stop()
	defer recheck.Stop()
	for {
		var err error
		select {
		case state, ok := <-states:
			if !ok {
				return
			}
			err = update(state)
		case n := <-parts:
			err = sh.updatePart(s, n)
		case <-beat.C:
			err = s.send([]byte(": still here\n\n"))
		case <-recheck.C:
			err = sh.stillWelcome(s)
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// updatePart sends the difference between the viewer's state of a part and its current state.
func (sh *Shell) updatePart(s *Stream, n partState) error {
	if n.part == nil {
		if sh.live.hub.ended() {
			return ErrReload // another node has it
		}
		_, err := sh.live.hub.Peek(s.Request.Context(), s.parts[n.index].partKey)
		if errors.Is(err, ErrReload) {
			_ = s.Event(ReloadEvent, nil) // the stream ends either way
		}
		return ErrReload
	}
	data, err := n.part.since(s.Seen[1+n.index])
	s.Seen[1+n.index] = n.part.sum
	if err != nil || data == nil {
		return err
	}
	return s.Event("", data)
}

// stillWelcome ends the stream if the member was signed out, or if the member's rights have
// changed.
func (sh *Shell) stillWelcome(s *Stream) error {
	who, err := sh.present.of(s.Request.Context(), sh.SignedInAs(s.Request))
	if errors.Is(err, staff.ErrUnauthenticated) {
		_ = s.Event("dropbell:signed-out", nil) // the stream ends either way
	}
	if err != nil {
		return err
	}
	if who.MustEnrol {
		_ = s.Event(ReloadEvent, nil) // to the page where that is done
		return ErrReload
	}
	f := *Frame(s.Request)
	f.Member = who.Member
	for _, p := range s.parts {
		if sh.KeyOf(&f, p.path) != p.partKey {
			return ErrReload
		}
	}
	s.Request = s.first.WithContext(ui.With(s.first.Context(), &f)) // not one around the other, for hours
	return nil
}

// Event sends one message; scripts listen for it by its name.
func (s *Stream) Event(name string, data []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s\nretry: %d\n", strings.Join(s.Seen, "."), reconnectIn.Milliseconds())
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) { // every line of the data is marked as such
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return s.send(b.Bytes())
}

func (s *Stream) send(raw []byte) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(WriteTimeout)) // not every writer has one
	if _, err := s.w.Write(raw); err != nil {
		return err
	}
	return s.out.Flush()
}
