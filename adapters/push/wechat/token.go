package wechat

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/sender"
)

const (
	// lead is how long before its end an access token is replaced. WeChat issues a new token in
	// the last five minutes of a token; before that WeChat returns the same token again.
	lead = 4 * time.Minute
	// turn is for how long one process has the turn to ask for a token.
	turn = 5 * time.Second
	// lookAgain is how often processes without the turn look for the stored token.
	lookAgain = 100 * time.Millisecond
)

// Shared keeps the access token of a mini program for all processes. Errors of Shared cost no
// message: the process then asks WeChat itself, which issues the same token to all processes.
type Shared interface {
	// Load returns the value that was stored last, or nil.
	Load(ctx context.Context) ([]byte, error)
	// Store keeps the value until lasting has passed.
	Store(ctx context.Context, value []byte, lasting time.Duration) error
	// Turn reports whether the caller may ask WeChat for a new token. The turn ends after
	// lasting.
	Turn(ctx context.Context, lasting time.Duration) (bool, error)
}

// tokens hold the access token that all messages share.
type tokens struct {
	sender.Tokens
	cfg     Config
	account *push.Account
}

func newTokens(cfg Config, account *push.Account) *tokens {
	t := &tokens{cfg: cfg, account: account}
	t.Lead, t.Pause, t.Now = lead, time.Second, cfg.Time
	t.Issue = func(refused string) (sender.Token, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*turn+account.HTTP.Timeout)
		defer cancel()
		return t.shared(ctx, refused)
	}
	return t
}

// shared returns the token that another process has stored. Otherwise the process with the turn
// asks WeChat for a token and stores it.
func (t *tokens) shared(ctx context.Context, refused string) (sender.Token, error) {
	if t.cfg.Shared == nil {
		return t.issue(ctx)
	}
	for begun := time.Now(); time.Since(begun) < turn; {
		k, err := t.stored(ctx, refused)
		if k.Access != "" {
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
			return sender.Token{}, ctx.Err()
		case <-time.After(lookAgain):
		}
	}
	// Another process may have stored a token and ended its turn since the last look.
	k, err := t.stored(ctx, refused)
	if k.Access == "" {
		k, err = t.issue(ctx)
	}
	if err != nil {
		return k, err
	}
	if raw, err := json.Marshal(k); err == nil {
		_ = t.cfg.Shared.Store(ctx, raw, k.Ends.Sub(t.Now())) // without it each process asks WeChat itself
	}
	return k, nil
}

// stored returns the token that all processes share; zero if it is not usable.
func (t *tokens) stored(ctx context.Context, refused string) (k sender.Token, err error) {
	raw, err := t.cfg.Shared.Load(ctx)
	if err != nil || json.Unmarshal(raw, &k) != nil || !t.Usable(k, refused) {
		return sender.Token{}, err
	}
	return k, nil
}

// issue asks WeChat for the token (getStableAccessToken). It never forces a new token, which
// would invalidate the token of the shop's other programs.
func (t *tokens) issue(ctx context.Context) (sender.Token, error) {
	body, err := json.Marshal(map[string]string{"grant_type": "client_credential", "appid": t.cfg.AppID, "secret": t.cfg.Secret})
	if err != nil {
		return sender.Token{}, err
	}
	got, err := sender.Post(ctx, t.account.HTTP, t.cfg.URL+"/cgi-bin/stable_token", nil, body, push.MaxAnswer)
	if err = cmp.Or(err, got.Cut); err != nil {
		return sender.Token{}, err
	}
	var issued struct {
		answer
		Access  string `json:"access_token"`
		Seconds int    `json:"expires_in"`
	}
	if json.Unmarshal(got.Body, &issued) != nil {
		return sender.Token{}, errNoToken
	}
	if issued.Code != nil && *issued.Code != codeOK {
		return sender.Token{}, &tokenRefusal{issued.answer}
	}
	if issued.Access == "" || issued.Seconds <= 0 {
		return sender.Token{}, errNoToken
	}
	return sender.Token{Access: issued.Access, Ends: t.Now().Add(time.Duration(issued.Seconds) * time.Second)}, nil
}
