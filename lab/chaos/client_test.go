package chaos_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"dropbell/lab/tools/dev/demo"
)

// A client is the shop's app. It repeats requests without an answer, at any of the web
// processes, and records the acknowledged requests.
type client struct {
	t        *testing.T
	webs     []string
	http     *http.Client
	patience time.Duration
	repeats  atomic.Int64
	fives    atomic.Int64 // answers 500, of which there may be none
}

func newClient(t *testing.T, f *fleet, patience time.Duration) *client {
	c := &client{t: t, patience: patience, http: &http.Client{Timeout: 5 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: callers}}}
	for _, m := range f.webs {
		c.webs = append(c.webs, "http://"+m.addr)
	}
	return c
}

// A call is one request.
type call struct {
	method, path string
	user         int64 // 0 = the administrator
	ifMatch      string
	body         any
	at           string // the web process to ask; empty = any
}

// A reply is the last answer to a call.
type reply struct {
	status int
	code   string // of a problem
	// retryAfter is the header of the name.
	retryAfter string
	body       []byte
	repeated   bool // it was not the first attempt
}

func (r reply) ok() bool { return r.status/100 == 2 }

// send repeats the call under one idempotency key until it gets a final answer. final is false
// if no such answer came in time.
func (c *client) send(ctx context.Context, q call) (r reply, final bool) {
	return c.sendAs(ctx, q, uuid.NewString())
}

// sendAs is send under a key of the caller's.
func (c *client) sendAs(ctx context.Context, q call, key string) (r reply, final bool) {
	var payload []byte
	if text, ok := q.body.(string); ok {
		payload = []byte(text)
	} else if q.body != nil {
		payload, _ = json.Marshal(q.body)
	}
	began := time.Now()
	for first := true; ; first = false {
		r, err := c.once(ctx, q, key, payload)
		r.repeated = !first
		if err == nil && !c.later(q, r) {
			return r, true
		}
		if time.Since(began) > c.patience || ctx.Err() != nil {
			return r, false
		}
		c.repeats.Add(1)
		wait(50*time.Millisecond+rand.N(200*time.Millisecond), ctx.Done())
	}
}

// later reports whether the answer says only that there is none yet.
func (c *client) later(q call, r reply) bool {
	if r.status == http.StatusInternalServerError && c.fives.Add(1) <= 5 {
		c.t.Errorf("%s %s: answer 500 %s", q.method, q.path, r.body)
	}
	return r.status >= 500 || r.status == http.StatusTooManyRequests || r.code == "idempotency_in_progress"
}

func (c *client) once(ctx context.Context, q call, key string, payload []byte) (reply, error) {
	base := cmp.Or(q.at, c.webs[rand.IntN(len(c.webs))])
	r, err := http.NewRequestWithContext(ctx, q.method, base+"/api/v1"+q.path, bytes.NewReader(payload))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token(q.user))
	r.Header.Set("Content-Type", "application/json")
	if _, lines := q.body.(string); lines {
		r.Header.Set("Content-Type", "application/x-ndjson")
	}
	if q.method == http.MethodPost {
		r.Header.Set("Idempotency-Key", key)
	}
	if q.ifMatch != "" {
		r.Header.Set("If-Match", q.ifMatch)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err // cut off: it counts as unanswered
	}
	a := reply{status: resp.StatusCode, body: body, retryAfter: resp.Header.Get("Retry-After")}
	if !a.ok() {
		var problem struct{ Code string }
		_ = json.Unmarshal(body, &problem) // a proxy's answer has no code
		a.code = problem.Code
	}
	return a, nil
}

func (c *client) token(user int64) string {
	if user == 0 {
		return adminKey
	}
	token, err := demo.Issuer{Secret: jwtSecret}.Token(user, time.Now().Add(-time.Minute), time.Hour)
	if err != nil {
		c.t.Errorf("token: %v", err)
	}
	return token
}

// must sends an administrator's call that has to succeed and decodes its answer.
func (c *client) must(ctx context.Context, q call, into any) {
	c.t.Helper()
	r, final := c.send(ctx, q)
	if !final || !r.ok() {
		c.t.Fatalf("%s %s: answer %d %s", q.method, q.path, r.status, r.body)
	}
	if into != nil {
		if err := json.Unmarshal(r.body, into); err != nil {
			c.t.Fatalf("%s %s: %v", q.method, q.path, err)
		}
	}
}

// tell makes the users known, with their mail addresses.
func (c *client) tell(ctx context.Context, users []int64) {
	var lines bytes.Buffer
	for _, id := range users {
		fmt.Fprintf(&lines, `{"id":"%d","email":"u%d@example.com","locale":"en"}`+"\n", id, id)
	}
	var done struct{ Upserted int }
	c.must(ctx, call{method: "PUT", path: "/admin/users", body: lines.String()}, &done)
	if done.Upserted != len(users) {
		c.t.Fatalf("%d of %d users were stored", done.Upserted, len(users))
	}
}

// A drop is one template.
type drop struct {
	id      int64
	version string
	slot    int64 // row of the five-minute slot
	dueAt   time.Time
	opensAt time.Time
}

type templateBody struct {
	ID      int64 `json:"id,string"`
	Version int64 `json:"version"`
}

// publish creates a drop that opens in the given time.
func (c *client) publish(ctx context.Context, name string, opensIn time.Duration) *drop {
	opens := time.Now().Add(opensIn).Truncate(time.Second).UTC()
	var t templateBody
	c.must(ctx, call{method: "POST", path: "/admin/templates", body: map[string]any{
		"shop_number": fmt.Sprint(shopNumber), "name": name, "kind": "amount_off", "amount_off": 1000, "currency": "CNY", "stock": 1000,
		"opens_at": opens, "closes_at": opens.Add(24 * time.Hour), "valid_hours": 48}}, &t)
	c.must(ctx, call{method: "POST", path: fmt.Sprintf("/admin/templates/%d/publish", t.ID), body: map[string]any{"reason": "chaos"}}, &t)
	return &drop{id: t.ID, version: fmt.Sprintf("%q", strconv.FormatInt(t.Version, 10))}
}

// move moves the opening, as staff would, so that the drop's five-minute reminders are due at
// dueAt.
func (c *client) move(ctx context.Context, d *drop, dueAt time.Time) {
	d.dueAt, d.opensAt = dueAt.UTC(), dueAt.Add(5*time.Minute).UTC()
	c.must(ctx, call{method: "PATCH", path: fmt.Sprintf("/admin/templates/%d", d.id), ifMatch: d.version,
		body: map[string]any{"opens_at": d.opensAt}}, nil)
}
