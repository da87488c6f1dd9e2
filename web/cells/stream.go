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
	"time"
)

// retryStream is how long after a failure a cell's stream is opened again, and streamWrite how long the
// client may take to receive an event.
const retryStream, streamWrite = 5 * time.Second, 10 * time.Second

// stream sends the events of all cells' inbox streams to one client. The id of an event is the
// position in the streams of all cells, so that any process can continue from there. If a cell's stream
// ends, so does the client's, which the client opens again. A cell that does not answer is tried again,
// while the client receives the events of the others.
func (f *Front) stream(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &streams{f: f, w: w, control: http.NewResponseController(w), position: f.cursors(r.Header.Get("Last-Event-ID")), end: cancel, answers: make([]*answer, len(f.cells))}
	var all sync.WaitGroup
	for n := range f.cells {
		all.Go(func() {
			for s.open(ctx, r, n) {
				select {
				case <-ctx.Done():
				case <-time.After(f.retry):
				}
			}
		})
	}
	all.Wait()
	if !s.begun {
		f.refusal(w, r, s.answers)
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
	position []string
	// answers are the refusals of cells, and failed is how many cells have refused or failed at first.
	answers []*answer
	failed  int
}

// open opens the stream of cell n and copies it until it ends. It returns whether to try again.
func (s *streams) open(ctx context.Context, r *http.Request, n int) bool {
	s.mu.Lock()
	last := s.position[n]
	s.mu.Unlock()
	own := again(ctx, r, nil)
	if own.Header.Del("Last-Event-ID"); last != "" {
		own.Header.Set("Last-Event-ID", last)
	}
	from, to := io.Pipe()
	p := &piped{s: s, header: http.Header{}, to: to}
	var copying sync.WaitGroup
	copying.Go(func() {
		s.copy(n, from)
		_ = from.Close()
	})
	s.f.cells[n].Handler.ServeHTTP(p, own)
	_ = to.Close()
	copying.Wait()
	if p.kept == nil { // it has ended, or the client has left
		s.end()
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers[n] == nil {
		s.failed++
	}
	s.answers[n] = p.kept
	if s.failed == len(s.answers) || p.kept.status < 500 {
		s.end()
	}
	return ctx.Err() == nil
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
	_ = s.control.SetReadDeadline(time.Time{}) // those of the server are for answers that end
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite))
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
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite))
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
