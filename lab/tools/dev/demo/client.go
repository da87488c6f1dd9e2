// Package demo fills a Dropbell with demo data through Dropbell's public HTTP API.
package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// callers is how many requests are made at once.
const callers = 64

// Client calls the API of a Dropbell with a service key of every scope.
type Client struct {
	Base string // http://127.0.0.1:8080
	Key  string // dbk_…

	http *http.Client
}

// NewClient returns a client for the server at base.
func NewClient(base, key string) *Client {
	return &Client{Base: base, Key: key, http: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: callers},
	}}
}

// request is one call. Body is JSON unless it is an io.Reader.
type request struct {
	method, path string
	user         int64  // in whose name, 0 for none
	token        string // of the user who calls; "" = the service key
	body         any
	version      int64  // that a change is based on; 0 = none
	key          string // the idempotency key of a call that must not be repeated; "" = a new one
}

// refusal is an answer other than 2xx, see RFC 9457.
type refusal struct {
	Status     int    `json:"-"`
	Code       string `json:"code"`
	Detail     string `json:"detail"`
	retryAfter time.Duration
}

func (r *refusal) Error() string {
	return fmt.Sprintf("answer %d %s: %s", r.Status, r.Code, r.Detail)
}

// call repeats a request that was refused only because there were too many.
func (c *Client) call(ctx context.Context, q request, into any) error {
	payload, kind, err := encode(q.body)
	if err != nil {
		return err
	}
	key := cmp.Or(q.key, uuid.NewString())
	for attempt := 1; ; attempt++ {
		err := c.once(ctx, q, key, kind, payload, into)
		busy, ok := err.(*refusal)
		if !ok || busy.retryAfter == 0 || attempt == 10 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(busy.retryAfter, 10*time.Second)):
		}
	}
}

func encode(body any) (payload []byte, kind string, err error) {
	if r, ok := body.(io.Reader); ok {
		payload, err = io.ReadAll(r)
		return payload, "application/x-ndjson", err
	}
	if body == nil {
		return nil, "", nil
	}
	payload, err = json.Marshal(body)
	return payload, "application/json", err
}

func (c *Client) once(ctx context.Context, q request, key, kind string, payload []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, q.method, c.Base+"/api/v1"+q.path, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+cmp.Or(q.token, c.Key))
	if q.user != 0 {
		r.Header.Set("X-User-ID", strconv.FormatInt(q.user, 10))
	}
	if q.method == http.MethodPost && q.user == 0 { // for thousands of reservations it would cost a row each
		r.Header.Set("Idempotency-Key", key)
	}
	if q.version != 0 {
		r.Header.Set("If-Match", fmt.Sprintf("%q", strconv.FormatInt(q.version, 10)))
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return refused(response, raw)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s %s: cannot read the answer: %w", q.method, q.path, err)
	}
	return nil
}

func refused(response *http.Response, raw []byte) *refusal {
	e := &refusal{Status: response.StatusCode}
	if json.Unmarshal(raw, e) != nil {
		e.Detail = string(raw[:min(len(raw), 200)])
	}
	busy := e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
	if busy {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // absent: the shortest
		e.retryAfter = max(time.Duration(seconds)*time.Second, 100*time.Millisecond)
	}
	return e
}

// Issuer makes users' tokens, as the shop's own sign-in would. Name and
// Audience may be empty.
type Issuer struct{ Secret, Name, Audience string }

// Token returns a JWT with which user calls the API for the given time.
func (i Issuer) Token(user int64, now time.Time, life time.Duration) (string, error) {
	b := jwt.NewBuilder().Subject(strconv.FormatInt(user, 10)).IssuedAt(now).Expiration(now.Add(life))
	if i.Name != "" {
		b = b.Issuer(i.Name)
	}
	if i.Audience != "" {
		b = b.Audience([]string{i.Audience})
	}
	t, err := b.Build()
	if err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	signed, err := jwt.Sign(t, jwt.WithKey(jwa.HS256(), []byte(i.Secret)))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return string(signed), nil
}
