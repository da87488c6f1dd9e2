package cells

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// stream sends the events of all cells' inbox streams to one client. The id of an event is the
// position in the streams of all cells, so that any process can continue from there. A stream of a
// cell that ends, or does not begin, ends the client's stream, which the client opens again, unless
// the cell does not answer: then the others go on, and the comment names it.
func (f *Front) stream(w http.ResponseWriter, r *http.Request) {
	last := f.cursors(r.Header.Get("Last-Event-ID"))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &streams{f: f, w: w, control: http.NewResponseController(w), position: last, end: cancel}
	var all sync.WaitGroup
	for n, c := range f.cells {
		if f.Now().UnixNano() < c.silent.Load() {
			continue
		}
		pipe, sent := io.Pipe()
		own := again(ctx, r, nil)
		own.Header.Del("Last-Event-ID")
		if last[n] != "" {
			own.Header.Set("Last-Event-ID", last[n])
		}
		all.Go(func() {
			defer sent.Close()
			c.Handler.ServeHTTP(&piped{s: s, header: http.Header{}, to: sent}, own)
		})
		all.Go(func() {
			s.copy(n, pipe)
			_ = pipe.Close()
		})
	}
	all.Wait()
	if !s.begun && s.refused != nil {
		s.refused.write(w)
	} else if !s.begun {
		refuse(w, r, errSilent)
	}
}

// streams is one client with the streams of the cells.
type streams struct {
	f        *Front
	w        http.ResponseWriter
	control  *http.ResponseController
	end      context.CancelFunc
	mu       sync.Mutex
	begun    bool
	ready    bool
	refused  *answer
	position []string
}

// begin sends the head of the client's answer once.
func (s *streams) begin(header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return
	}
	s.begun = true
	for name, values := range header {
		s.w.Header()[name] = values
	}
	s.w.WriteHeader(http.StatusOK)
	_ = s.control.Flush()
}

// copy copies the events of cell n with the position in all streams as their id.
func (s *streams) copy(n int, from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var event bytes.Buffer
	ready := false
	for lines.Scan() {
		line := lines.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			s.mu.Lock()
			s.position[n] = id
			line = "id: " + joinCursors(s.position)
			s.mu.Unlock()
		}
		ready = ready || line == "event: ready"
		fmt.Fprintln(&event, line)
		if line != "" {
			continue
		}
		if !s.send(event.Bytes(), ready) {
			break
		}
		event.Reset()
		ready = false
	}
	if s.f.Now().UnixNano() >= s.f.cells[n].silent.Load() {
		s.end()
	}
}

// send writes one event; of the cells' first events the client is sent one. It returns false if the
// client has left.
func (s *streams) send(event []byte, ready bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ready && s.ready {
		return true
	}
	s.ready = s.ready || ready
	if _, err := s.w.Write(event); err != nil {
		s.end()
		return false
	}
	return s.control.Flush() == nil
}

// piped is the writer of one cell's stream.
type piped struct {
	s      *streams
	header http.Header
	to     io.Writer
	status int
	kept   *answer
}

// Header is part of [http.ResponseWriter].
func (p *piped) Header() http.Header { return p.header }

// WriteHeader is part of [http.ResponseWriter].
func (p *piped) WriteHeader(status int) {
	if p.status != 0 {
		return
	}
	if p.status = status; status == http.StatusOK {
		p.s.begin(p.header)
		return
	}
	p.kept = &answer{status: status, header: p.header}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.refused.missing() {
		p.s.refused = p.kept
	}
}

// Write is part of [http.ResponseWriter].
func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if p.kept != nil {
		return p.kept.Write(b)
	}
	return p.to.Write(b)
}

// FlushError is for [http.ResponseController].
func (p *piped) FlushError() error { return nil }
