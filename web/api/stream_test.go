package api_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/lestrrat-go/jwx/v3/jwa"

	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// deliver stores a delivery of the template's slot to the users in the app, and returns their
// message.
func (r *fixture) deliver(template string, slot int, users ...uint64) inbox.Message {
	r.Helper()
	set := roaring64.BitmapOf(users...)
	b, err := set.ToBytes()
	r.must(err)
	r.exec(`update slots set state = 'finished', fired_at = now(), finished_at = now() where template_id = $1 and slot = $2`, template, slot)
	r.exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count, finished_at)
		select 'reminder', id, template_id, 0, $3, $4, 'done', due_at, opens_at, $5, $5, $6, $6, clock_timestamp() from slots where template_id = $1 and slot = $2`,
		template, slot, int64(set.Minimum()), int64(set.Maximum()), b, len(users))
	var it inbox.Message
	r.must(r.sql.QueryRow(context.Background(), `select s.id::text, s.template_id, s.slot, s.opens_at, s.due_at, b.finished_at from batches b
		join slots s on s.id = b.owner_id where s.template_id = $1 and s.slot = $2`, template, slot).
		Scan(&it.ID, &it.TemplateID, &it.Slot, &it.OpensAt, &it.DueAt, &it.At))
	it.Kind, it.ShopNumber, it.Name = delivery.KindReminder, 10, "20 off"
	return it
}

// push notifies a process that a batch is done, as the bus does.
func (r *fixture) push(it inbox.Message, users ...user.ID) {
	r.hub.Notify(users, func(user.ID) inbox.Message { return it })
}

func (r *fixture) server(t *testing.T) *httptest.Server {
	s := httptest.NewUnstartedServer(r)
	s.Config.WriteTimeout, s.Config.ReadTimeout = 300*time.Millisecond, 300*time.Millisecond
	s.Start()
	t.Cleanup(func() {
		r.hub.Close()
		s.Close()
	})
	return s
}

func TestStream(t *testing.T) {
	r := newFixture(t, nil)
	r.hub.Heartbeat = 50 * time.Millisecond
	s := r.server(t)
	id := r.drop(2 * time.Hour)
	for _, u := range []string{"7", "8"} {
		r.want(r.call(as(token(u)), "POST", "/reservations", reserve(id, "app", 5, "app", 10)), 201, "")
	}
	seven, eight := connect(t, s, token(7), ""), connect(t, s, token(8), "")
	if kind := seven.answer.Header.Get("Content-Type"); kind != "text/event-stream" || seven.answer.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("answered %v", seven.answer.Header)
	}
	seven.expect("ready", "")
	eight.expect("ready", "")
	// Longer than the server's own deadlines.
	for range 10 {
		select {
		case <-seven.beats:
		case <-time.After(5 * time.Second):
			t.Fatal("no heartbeat")
		}
	}
	first := r.deliver(id, 2, 7)
	r.push(first, 7)
	e := seven.expect("message", first.ID)
	if m := e.item(); m["template_id"] != id || m["minutes"] != 10.0 || m["template_name"] != "20 off" || m["read"] != false {
		t.Fatalf("message %v", m)
	}
	second := r.deliver(id, 1, 7, 8)
	r.push(second, 7, 8)
	eight.expect("message", second.ID) // and not the first
	seven.expect("message", second.ID)
	r.push(second, 7, 8) // events come at least once, messages exactly once
	third := r.deliver(r.drop(2*time.Hour), 1, 7, 8)
	r.push(third, 7, 8)
	seven.expect("message", third.ID)
	eight.expect("message", third.ID)
	seven.stop()
	for deadline := time.Now().Add(10 * time.Second); r.hub.Streams() != 1; {
		if time.Now().After(deadline) {
			t.Fatalf("%d streams are held after one of two left", r.hub.Streams())
		}
		time.Sleep(time.Millisecond) // polling
	}
}

// A client that was disconnected gets the missed messages once, from another process.
func TestStreamResume(t *testing.T) {
	r := newFixture(t, nil)
	other := r.second()
	here, there := r.server(t), other.server(t)
	id := r.drop(2 * time.Hour)
	r.want(r.call(as(token(7)), "POST", "/reservations", reserve(id, "app", 5, "app", 10, "app", 15, "app", 20)), 201, "")
	c := connect(t, here, token(7), "")
	ready := c.expect("ready", "")
	one := r.deliver(id, 4, 7)
	r.push(one, 7)
	seen := c.expect("message", one.ID)
	c.stop()
	two := r.deliver(id, 3, 7) // without a notification
	d := connect(t, there, token(7), seen.id)
	d.expect("ready", "")
	d.expect("message", two.ID)
	three := r.deliver(id, 2, 7)
	other.push(two, 7) // the event comes late, after the message was found
	other.push(three, 7)
	last := d.expect("message", three.ID)
	d.stop()

	// Two batches that finish together may become visible in any order.
	four := r.deliver(id, 1, 7)
	r.exec(`update batches set finished_at = $1 where owner_id = $2`, three.At.Add(-time.Second), four.ID)
	e := connect(t, here, token(7), last.id)
	e.expect("ready", "")
	e.expect("message", four.ID)
	e.stop()

	// A client that got nothing but ready resumes from there.
	f := connect(t, here, token(7), ready.id)
	f.expect("ready", "")
	got := map[string]bool{}
	for range 4 {
		got[f.next().item()["id"].(string)] = true
	}
	if len(got) != 4 || !got[one.ID] || !got[two.ID] || !got[three.ID] || !got[four.ID] {
		t.Fatalf("resumed from the start with %v", got)
	}
	f.stop()
	for _, nonsense := range []string{"x", "-1", "99999999999999999999999", "9000000000000000000", "1,1=%zz", strings.Repeat("1,", 5000)} {
		g := connect(t, here, token(7), nonsense)
		if g.answer.StatusCode != 200 && g.answer.StatusCode != 431 {
			t.Fatalf("Last-Event-ID %.20q answers %d", nonsense, g.answer.StatusCode)
		}
		g.stop()
	}
}

func TestStreamEnds(t *testing.T) {
	r := newFixture(t, nil)
	s := r.server(t)
	if c := connect(t, s, "dbk_wrong", ""); c.answer.StatusCode != 401 {
		t.Fatalf("a wrong key gets %d", c.answer.StatusCode)
	}
	brief := connect(t, s, sign(jwa.HS256(), []byte(secret), map[string]any{"sub": "7", "exp": in(-28 * time.Second)}), "")
	brief.expect("ready", "")
	if e := brief.next(); e.name != "" {
		t.Fatalf("after the token's end: %+v", e)
	}
	// The ninth stream ends the first.
	var streams []*client
	for range 9 {
		streams = append(streams, connect(t, s, token(9), ""))
		streams[len(streams)-1].expect("ready", "")
	}
	if e := streams[0].next(); e.name != "" {
		t.Fatalf("the oldest of nine streams got %+v", e)
	}
	r.hub.Close()
	for _, c := range streams[1:] {
		if e := c.next(); e.name != "" {
			t.Fatalf("a stream outlived the hub: %+v", e)
		}
	}
	if c := connect(t, s, token(9), ""); c.answer.StatusCode != 503 {
		t.Fatalf("a closed hub answers %d", c.answer.StatusCode)
	}
}

// A slow client is cut off; the hub does not wait for it.
func TestHubNeverWaits(t *testing.T) {
	r := newFixture(t, nil)
	slow, err := r.hub.Subscribe(7, func() {})
	r.must(err)
	woken := make(chan struct{}, 1)
	fast, err := r.hub.Subscribe(8, func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	r.must(err)
	told := make(chan struct{})
	taken := make(chan int)
	go func() {
		defer close(told)
		for i := range 200 {
			r.push(inbox.Message{ID: string(rune('a' + i))}, 7, 8)
			if i%16 == 15 {
				<-taken // the fast one keeps up
			}
		}
	}()
	deadline := time.After(20 * time.Second)
	for got := 0; got < 200; {
		select {
		case <-woken:
			items, ended := fast.Take()
			if ended {
				t.Fatal("the fast client was cut off")
			}
			for range items {
				if got++; got%16 == 0 {
					taken <- got
				}
			}
		case <-deadline:
			t.Fatal("the slow client holds everybody up")
		}
	}
	<-told
	if _, ended := slow.Take(); !ended {
		t.Fatal("a client that is 200 messages behind is not cut off")
	}
	r.hub.Cancel(7, slow)
	r.hub.Cancel(7, slow)
	r.hub.Cancel(8, fast)
	if n := r.hub.Streams(); n != 0 {
		t.Fatalf("%d streams left", n)
	}
}

// A stream opened by a service key ends after the key was revoked, when the key is next read.
func TestStreamEndsWithItsServiceKey(t *testing.T) {
	t.Parallel()
	r := newFixture(t, nil)
	r.hub.Heartbeat = 10 * time.Millisecond
	s := r.server(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/inbox/stream", nil)
	q.Header = as(r.keys[staff.ScopeActAsUser], "X-User-ID", "7")
	answer, err := http.DefaultClient.Do(q)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", answer, err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "still here") {
	}
	r.exec(`update api_keys set revoked_at = now()`)
	for lines.Scan() {
	}
	if ctx.Err() != nil {
		t.Fatal("the stream goes on")
	}
}
