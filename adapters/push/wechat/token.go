package wechat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// lead is how long before its end an access token is replaced. In its last five
	// minutes WeChat issues a new one, and before them the same again.
	lead = 4 * time.Minute
	// turn is for how long one process has the turn to ask for a token.
	turn = 5 * time.Second
	// lookAgain is after how long the others look whether it is there.
	lookAgain = 100 * time.Millisecond
)

// Shared keeps the access token of a mini program for all processes. Its errors cost no
// message: the process then asks WeChat itself, which issues the same token to all.
type Shared interface {
	// Load returns what was stored last, or nil.
	Load(ctx context.Context) ([]byte, error)
	// Store keeps the value for so long.
	Store(ctx context.Context, value []byte, lasting time.Duration) error
	// Turn reports whether the caller is the one who asks for a new token; it has the turn
	// for so long.
	Turn(ctx context.Context, lasting time.Duration) (bool, error)
}

// A token is an access token.
type token struct {
	Access string    `json:"access"`
	Ends   time.Time `json:"ends"`
}

// tokens hold the access token that all messages share.
type tokens struct {
	cfg    Config
	client *http.Client
	flight singleflight.Group

	mu      sync.Mutex
	current token
	// failed is why none was issued, and until when none is asked for.
	failed error
	until  time.Time
}

// get returns the token, a new one if it ends soon or is the refused one. All callers of a
// process wait for the same request, each as long as its own context lasts.
func (t *tokens) get(ctx context.Context, refused string) (string, error) {
	if access, err := t.standing(refused); access != "" || err != nil {
		return access, err
	}
	answer := t.flight.DoChan("", func() (any, error) {
		if access, err := t.standing(refused); access != "" || err != nil { // another flight has just ended
			return access, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*turn+t.cfg.Timeout)
		defer cancel()
		next, err := t.shared(ctx, refused)
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.failed = err; err != nil {
			t.until = t.cfg.Now().Add(time.Second)
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
func (t *tokens) standing(refused string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.usable(t.current, refused) {
		return t.current.Access, nil
	}
	if t.failed != nil && t.cfg.Now().Before(t.until) {
		return "", t.failed
	}
	return "", nil
}

func (t *tokens) usable(k token, refused string) bool {
	return k.Access != "" && k.Access != refused && t.cfg.Now().Add(lead).Before(k.Ends)
}

// shared returns the token that another process has stored, or asks WeChat for one and
// stores it, in turns.
func (t *tokens) shared(ctx context.Context, refused string) (token, error) {
	if t.cfg.Shared == nil {
		return t.issue(ctx)
	}
	for begun := time.Now(); time.Since(begun) < turn; {
		var k token
		raw, err := t.cfg.Shared.Load(ctx)
		if err == nil && json.Unmarshal(raw, &k) == nil && t.usable(k, refused) {
			return k, nil
		}
		if err != nil {
			break
		}
		if mine, err := t.cfg.Shared.Turn(ctx, turn); mine || err != nil {
			break
		}
		select {
		case <-ctx.Done():
			return token{}, ctx.Err()
		case <-time.After(lookAgain):
		}
	}
	k, err := t.issue(ctx)
	if err != nil {
		return k, err
	}
	if raw, err := json.Marshal(k); err == nil {
		_ = t.cfg.Shared.Store(ctx, raw, k.Ends.Sub(t.cfg.Now())) // else the others ask themselves
	}
	return k, nil
}

// issue asks WeChat for the token (getStableAccessToken). It never forces a new one, which
// would make that of the shop's other programs invalid.
func (t *tokens) issue(ctx context.Context) (token, error) {
	body, err := json.Marshal(map[string]string{"grant_type": "client_credential", "appid": t.cfg.AppID, "secret": t.cfg.Secret})
	if err != nil {
		return token{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.cfg.URL+"/cgi-bin/stable_token", bytes.NewReader(body))
	if err != nil {
		return token{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := t.client.Do(request)
	if err != nil {
		return token{}, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return token{}, err
	}
	var issued struct {
		answer
		Access  string `json:"access_token"`
		Seconds int    `json:"expires_in"`
	}
	if json.Unmarshal(raw, &issued) != nil {
		return token{}, errNoToken
	}
	if issued.Code != nil && *issued.Code != codeOK {
		return token{}, &tokenRefusal{issued.answer}
	}
	if issued.Access == "" || issued.Seconds <= 0 {
		return token{}, errNoToken
	}
	return token{issued.Access, t.cfg.Now().Add(time.Duration(issued.Seconds) * time.Second)}, nil
}
