package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"time"

	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/pages"
	"dropbell/views/ui"
)

const (
	heartbeat     = 15 * time.Second
	recheckAccess = 5 * time.Second
	writeTimeout  = 10 * time.Second
	// reconnectIn is how soon a browser comes back to a broken stream.
	reconnectIn = time.Second
)

// A snapshot is the state of one template's page. Equal states have equal sums.
type snapshot struct {
	page  pages.Template
	state template.State
	late  []template.Slot
	at    time.Time
	sum   string
}

func (s snapshot) digest() string { return s.sum }

func (c *Console) snapshot(ctx context.Context, templateID int64, _ snapshot) (snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	t, err := c.Templates.Template(ctx, staff.System(), templateID)
	if err != nil {
		return snapshot{}, err
	}
	p, err := c.templatePage(ctx, t)
	s := snapshot{page: p, at: c.Now()}
	s.state, s.late = t.State(s.at), late(p.Board, s.at)
	s.sum = digest(s.page.Drop, s.page.Shards, s.state, s.late)
	return s, err
}

// late lists the slots that are overdue, which no stored value says.
func late(b reminder.Board, now time.Time) (list []template.Slot) {
	for _, row := range b.Rows {
		if ui.Overdue(row, now) {
			list = append(list, row.Slot.Slot)
		}
	}
	return list
}

func digest(values ...any) string {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(values) // plain values into memory cannot fail
	return fmt.Sprintf("%x", h.Sum64())
}

// streamTemplate sends what changes on a template's page, as server-sent
// events with the HTML of the parts that changed.
func (c *Console) streamTemplate(w http.ResponseWriter, r *http.Request) error {
	t, err := c.loadTemplate(r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	states, leave := c.live.join(t.ID)
	defer leave()
	s := &stream{w: w, out: http.NewResponseController(w), r: r, seen: r.Header.Get("Last-Event-ID")}
	if s.send([]byte(": welcome\n\n")) != nil {
		return nil
	}
	pump(c, s, states, s.update)
	return nil
}

// pump sends what changes until the viewer leaves or the states end.
func pump[S view](c *Console, s *stream, states <-chan S, update func(S) error) {
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
		case <-beat.C:
			err = s.send([]byte(": still here\n\n"))
		case <-recheck.C:
			err = c.stillWelcome(s)
		case <-s.r.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// stillWelcome ends the stream of who has been signed out meanwhile.
func (c *Console) stillWelcome(s *stream) error {
	m, err := c.present.of(s.r.Context(), c.sessions.GetString(s.r.Context(), signInKey))
	if err == nil {
		f := *frame(s.r)
		f.Member = m
		s.r = s.r.WithContext(ui.With(s.r.Context(), &f))
		return nil
	}
	_ = s.send([]byte("event: dropbell:signed-out\ndata: \n\n")) // the stream ends either way
	return err
}

// A stream is one viewer's connection.
type stream struct {
	w    http.ResponseWriter
	out  *http.ResponseController
	r    *http.Request
	seen string // sum of the last state the viewer has, from an earlier connection
	last *snapshot
}

// update sends the difference between what the viewer has and state.
func (s *stream) update(state snapshot) error {
	before := s.last
	s.last = &state
	if before == nil && s.seen == state.sum {
		return nil // the viewer comes back and nothing has happened
	}
	if before != nil && len(before.page.Board.Rows) != len(state.page.Board.Rows) {
		return s.send([]byte("id: " + state.sum + "\nevent: dropbell:reload\ndata: \n\n"))
	}
	f := *frame(s.r)
	f.Now = state.at
	rows, head := changed(before, state)
	var html bytes.Buffer
	if err := state.page.Patch(rows, head).Render(ui.With(s.r.Context(), &f), &html); err != nil {
		return err
	}
	return s.send(event(state.sum, html.Bytes()))
}

// changed returns the rows that look different now, and whether the head does.
func changed(before *snapshot, now snapshot) (rows []reminder.Row, head bool) {
	if before == nil {
		return now.page.Board.Rows, true
	}
	was := before.page.Board.Rows
	all := ui.Peak(was) != ui.Peak(now.page.Board.Rows) // every shade is relative to the darkest
	for i, row := range now.page.Board.Rows {
		turned := slices.Contains(now.late, row.Slot.Slot) != slices.Contains(before.late, row.Slot.Slot)
		if all || turned || digest(row) != digest(was[i]) {
			rows = append(rows, row)
		}
	}
	return rows, before.state != now.state || before.page.Version != now.page.Version
}

// event writes one message; every line of its data is marked as such.
func event(id string, data []byte) []byte { return namedEvent(id, "", data) }

// namedEvent writes a message that scripts are told by its name.
func namedEvent(id, name string, data []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s\nretry: %d\n", id, reconnectIn.Milliseconds())
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	for line := range bytes.Lines(data) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func (s *stream) send(raw []byte) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	if _, err := s.w.Write(raw); err != nil {
		return err
	}
	return s.out.Flush()
}
