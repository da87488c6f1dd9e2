package dropbell

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"time"
)

const (
	// firstPause and longestPause limit the pause before a retry, if the server has not asked
	// for a pause.
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second

	keyHeader = "Idempotency-Key"
	inProcess = "idempotency_in_progress"
)

// transport sends requests of the generated client, again where that is safe.
type transport struct {
	http       *http.Client
	credential Credential
	user       string // of act-as-user; "" = none
	clock      *Clock
	tries      int
	longest    time.Duration
	wait       func(context.Context, time.Duration) error
}

// Do returns an answer of 2xx, or an error: a [*Problem] for any other answer.
func (t *transport) Do(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && r.Header.Get(keyHeader) == "" {
		r.Header.Set(keyHeader, rand.Text())
	}
	if t.user != "" && r.Header.Get("X-User-ID") == "" {
		r.Header.Set("X-User-ID", t.user)
	}
	for try := 1; ; try++ {
		answer, err := t.once(r)
		after, again := retryable(r, err)
		if !again || try >= t.tries || after > t.longest || r.Body != nil && r.GetBody == nil {
			return answer, err
		}
		after = max(after, backoff(try))
		if end, ok := r.Context().Deadline(); ok && time.Until(end) < after {
			return answer, err
		}
		if t.wait(r.Context(), after) != nil {
			return answer, err
		}
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// once sends r one time.
func (t *transport) once(r *http.Request) (*http.Response, error) {
	if credential, err := t.credential(r.Context()); err != nil {
		return nil, err
	} else if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	sent := time.Now()
	answer, err := t.http.Do(r)
	if err != nil {
		return nil, err
	}
	t.clock.observe(sent, time.Now(), answer.Header)
	if answer.StatusCode/100 == 2 && !isJSON(answer.Header) {
		return answer, nil // such as a stream
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		// It is read here, so that an answer that breaks off is asked for again.
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, err
		}
		answer.Body = io.NopCloser(bytes.NewReader(body))
		return answer, nil
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20)) // a truncated body is no JSON
	return nil, problemOf(answer, body)
}

func isJSON(h http.Header) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "application/json"
}

// retryable reports whether r may be sent again after err, and the pause that the server has
// asked for. A request without an answer may have had its effect. It may be sent again if it has
// an Idempotency-Key or if its repetition changes nothing.
func retryable(r *http.Request, err error) (after time.Duration, again bool) {
	if err == nil || r.Context().Err() != nil {
		return 0, false
	}
	p, answered := errors.AsType[*Problem](err)
	switch {
	case !answered:
		return 0, repeatable(r)
	case p.Status == http.StatusTooManyRequests, p.Status == http.StatusConflict && p.Code == inProcess:
		return p.RetryAfter, true
	case p.Status == http.StatusServiceUnavailable, p.Status == http.StatusBadGateway, p.Status == http.StatusGatewayTimeout:
		return p.RetryAfter, repeatable(r)
	}
	return 0, false
}

func repeatable(r *http.Request) bool { return r.Method != http.MethodPatch }

// backoff returns a random pause that doubles with each try.
func backoff(try int) time.Duration {
	most := min(firstPause<<min(try-1, 6), longestPause) // longestPause from the seventh on
	return most/2 + mathrand.N(most/2)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryAfter reads the header: seconds, or an instant.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
