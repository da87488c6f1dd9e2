package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type sseEvent struct{ name, id, data string }

func (e sseEvent) item() (m map[string]any) {
	_ = json.Unmarshal([]byte(e.data), &m)
	return m
}

// client is one open stream.
type client struct {
	t      *testing.T
	events chan sseEvent
	beats  chan struct{}
	stop   func()
	answer *http.Response
}

func connect(t *testing.T, s *httptest.Server, credential, lastID string) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	q, _ := http.NewRequestWithContext(ctx, "GET", s.URL+"/api/v1/inbox/stream", nil)
	q.Header.Set("Authorization", "Bearer "+credential)
	if lastID != "" {
		q.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, events: make(chan sseEvent, 1000), beats: make(chan struct{}, 1000), stop: cancel, answer: answer}
	t.Cleanup(cancel)
	go c.read()
	return c
}

func (c *client) read() {
	defer close(c.events)
	defer c.answer.Body.Close()
	var e sseEvent
	for lines := bufio.NewScanner(c.answer.Body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			if value != "" {
				c.beats <- struct{}{}
			} else if e.name != "" {
				c.events <- e
			}
			e = sseEvent{}
		}
	}
}

// next returns the next event, or fails; a zero event says that the stream ended.
func (c *client) next() sseEvent {
	c.t.Helper()
	select {
	case e := <-c.events:
		return e
	case <-time.After(10 * time.Second):
		c.t.Fatal("no event within 10 s")
		return sseEvent{}
	}
}

func (c *client) expect(name, itemID string) sseEvent {
	c.t.Helper()
	e := c.next()
	if e.name != name || (itemID != "" && e.item()["id"] != itemID) {
		c.t.Fatalf("got %+v, want %s of %s", e, name, itemID)
	}
	return e
}
