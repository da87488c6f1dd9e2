package sender

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// A Token is an access token.
type Token struct {
	Access string `json:"access"`
	// Ends is when it expires; zero = not known.
	Ends time.Time `json:"ends"`
}

// Tokens hold the access token that all calls of a process share. Fields other than Issue may be
// left zero.
type Tokens struct {
	// Issue returns a new token that differs from the refused token. Calls of Issue never
	// overlap. Issue limits its own duration.
	Issue func(refused string) (Token, error)
	// Lead is how long before its end a token is replaced.
	Lead time.Duration
	// Pause is how long no token is asked for after Issue has failed.
	Pause time.Duration
	Now   func() time.Time

	flight  singleflight.Group
	mu      sync.Mutex
	current Token
	failed  error
	until   time.Time // the end of the pause
}

// Get returns the token. It issues a new token if the current token ends soon or is the refused
// token. All callers wait for the same call of Issue, each until its own context ends.
func (t *Tokens) Get(ctx context.Context, refused string) (string, error) {
	if access, err := t.standing(refused); access != "" || err != nil {
		return access, err
	}
	answer := t.flight.DoChan("", func() (any, error) {
		if access, err := t.standing(refused); access != "" || err != nil { // another flight has just ended
			return access, err
		}
		next, err := t.Issue(refused)
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.failed = err; err != nil {
			t.until = t.Now().Add(t.Pause)
			return "", err
		}
		t.current = next
		return next.Access, nil
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-answer:
		return a.Val.(string), a.Err
	}
}

// standing returns the token if it is usable, or why none was issued a moment ago.
func (t *Tokens) standing(refused string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Usable(t.current, refused) {
		return t.current.Access, nil
	}
	if t.failed != nil && t.Now().Before(t.until) {
		return "", t.failed
	}
	return "", nil
}

// Usable reports whether the token does not end soon and is not the refused one.
func (t *Tokens) Usable(k Token, refused string) bool {
	return k.Access != "" && k.Access != refused && (k.Ends.IsZero() || t.Now().Add(t.Lead).Before(k.Ends))
}

// WithToken returns the result of a call with an access token. The service may refuse a token
// that was replaced or revoked early; WithToken then calls once more with a new token. get
// returns a token other than the refused token. call reports whether its token was refused.
// without gives the result if get fails.
func WithToken[R any](get func(refused string) (string, error), call func(access string) (result R, refused bool), without func(error) R) R {
	access, err := get("")
	if err != nil {
		return without(err)
	}
	result, refused := call(access)
	if !refused {
		return result
	}
	if access, err = get(access); err != nil {
		return without(err)
	}
	result, _ = call(access)
	return result
}
