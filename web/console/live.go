package console

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
	writeTimeout  = 10 * time.Second
	// reconnectIn is how soon a browser comes back to a broken stream.
	reconnectIn = time.Second
	// reloadEvent tells a page that it has become another.
	reloadEvent = "dropbell:reload"
)

func digest(values ...any) string {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(values) // plain values into memory cannot fail
	return fmt.Sprintf("%x", h.Sum64())
}

// streamParts sends what changes on a page, as server-sent events with the
// HTML of the elements that have changed.
func (sh *Shell) streamParts(w http.ResponseWriter, r *http.Request) error {
	if len(r.Form["of"]) == 0 {
		return errNoPage
	}
	s, err := sh.openStream(w, r)
	if err != nil {
		return err
	}
	defer s.close()
	pump(sh, s, nil, func(*part) error { return nil })
	return nil
}

// A stream is one viewer's connection. It tells of a page's own state, if it
// has one, and of its live parts.
type stream struct {
	w   http.ResponseWriter
	out *http.ResponseController
	// r is the request by whoever the viewer is by now, first as it came.
	r, first *http.Request
	parts    []watched
	// seen are the sums of the states that the viewer has: of the page's own,
	// then of its parts. They are the id of every event, with which a broken
	// connection is resumed.
	seen []string
}

// openStream begins the answer to a request for events. It fails if one of
// the parts cannot be had.
func (sh *Shell) openStream(w http.ResponseWriter, r *http.Request) (*stream, error) {
	paths, err := partPaths(r)
	if err != nil {
		return nil, err
	}
	s := &stream{w: w, out: http.NewResponseController(w), r: r, first: r, seen: make([]string, 1+len(paths))}
	from := r.Header.Get("Last-Event-ID")
	if from == "" {
		from = r.FormValue("from")
	}
	copy(s.seen, strings.Split(from, "."))
	for _, path := range paths {
		key := sh.keyOf(frame(r), path)
		states, leave := sh.live.hub.join(key)
		s.parts = append(s.parts, watched{key, states, leave})
		if _, err := sh.live.hub.peek(r.Context(), key); err != nil && !errors.Is(err, errReload) {
			s.close()
			return nil, err
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	return s, nil
}

// close ends looking after what the stream tells of.
func (s *stream) close() {
	for _, p := range s.parts {
		p.leave()
	}
}

// pump sends what changes until the viewer leaves or the states end. update
// is for states of the page's own.
func pump[S view](sh *Shell, s *stream, states <-chan S, update func(S) error) {
	ctx := s.r.Context()
	if s.r.Method == http.MethodHead || s.send([]byte(": welcome\n\n")) != nil {
		return
	}
	parts := make(chan news)
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

// updatePart sends the difference between what the viewer has of a part and
// what there is.
func (sh *Shell) updatePart(s *stream, n news) error {
	if n.part == nil {
		if sh.live.hub.ended() {
			return errReload // another node has it
		}
		_, err := sh.live.hub.peek(s.r.Context(), s.parts[n.index].partKey)
		if errors.Is(err, errReload) {
			_ = s.event(reloadEvent, nil) // the stream ends either way
		}
		return errReload
	}
	data, err := n.part.since(s.seen[1+n.index])
	s.seen[1+n.index] = n.part.sum
	if err != nil || data == nil {
		return err
	}
	return s.event("", data)
}

// stillWelcome ends the stream of who has been signed out meanwhile, or may
// see other things than before.
func (sh *Shell) stillWelcome(s *stream) error {
	who, err := sh.present.of(s.r.Context(), sh.signedInAs(s.r))
	if errors.Is(err, staff.ErrUnauthenticated) {
		_ = s.event("dropbell:signed-out", nil) // the stream ends either way
	}
	if err != nil {
		return err
	}
	if who.MustEnrol {
		_ = s.event(reloadEvent, nil) // to the page where that is done
		return errReload
	}
	f := *frame(s.r)
	f.Member = who.Member
	for _, p := range s.parts {
		if sh.keyOf(&f, p.path) != p.partKey {
			return errReload
		}
	}
	s.r = s.first.WithContext(ui.With(s.first.Context(), &f)) // not one around the other, for hours
	return nil
}

// event sends one message; scripts are told of it by its name.
func (s *stream) event(name string, data []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s\nretry: %d\n", strings.Join(s.seen, "."), reconnectIn.Milliseconds())
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

func (s *stream) send(raw []byte) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	if _, err := s.w.Write(raw); err != nil {
		return err
	}
	return s.out.Flush()
}
