package oidc_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/oidc"
	"dropbell/adapters/oidctest"
	"dropbell/domain/staff"
	"dropbell/musttest"
)

var _ staff.IdentityProvider = (*oidc.Provider)(nil)

// watch is a clock that tests set.
type watch struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (w *watch) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *watch) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

func start(t *testing.T) (*oidc.Provider, *oidctest.Provider, *watch) {
	t.Helper()
	clock := &watch{}
	there := oidctest.New(t, clock.now)
	return oidc.New(oidc.Options{Issuer: there.Issuer(), ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret,
		PublicURL: "https://drops.example/", Now: clock.now}), there, clock
}

// through goes the whole way; spoil changes the attempt in between.
func through(t *testing.T, p *oidc.Provider, there *oidctest.Provider, spoil func(*staff.Attempt)) (staff.Identity, error) {
	t.Helper()
	a, to, err := p.Begin(t.Context())
	musttest.OK(t, err)
	back := there.Agree(to)
	if got := back.Scheme + "://" + back.Host + back.Path; got != "https://drops.example/signin/oidc/callback" {
		t.Errorf("the provider sends back to %s", got)
	}
	if back.Query().Get("state") != a.State {
		t.Error("another state comes back")
	}
	if spoil != nil {
		spoil(&a)
	}
	return p.Finish(t.Context(), a, back.Query().Get("code"))
}

func TestWhoItIs(t *testing.T) {
	p, there, _ := start(t)
	for claim, want := range map[any]bool{true: true, "true": true, false: false, "yes": false, 1: false, nil: false} {
		there.Says("email_verified", claim)
		got, err := through(t, p, there, nil)
		if err != nil || got != (staff.Identity{Issuer: there.Issuer(), Subject: "subject-1", Email: "lin@example.com", Verified: want}) {
			t.Errorf("email_verified %v: %+v %v", claim, got, err)
		}
	}
	if n := there.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("discovery was asked %d times, want once", n)
	}
}

// TestAddressFromUserinfo: if the ID token has no email address, the userinfo endpoint is asked
// about the same subject. A failure of this endpoint gives an error of its own.
func TestAddressFromUserinfo(t *testing.T) {
	p, there, _ := start(t)
	there.Says("email", nil)
	there.Says("email_verified", nil)
	there.Knows(map[string]any{"sub": "subject-1", "email": "lin@example.com", "email_verified": "true"})
	got, err := through(t, p, there, nil)
	if err != nil || got != (staff.Identity{Issuer: there.Issuer(), Subject: "subject-1", Email: "lin@example.com", Verified: true}) {
		t.Errorf("%+v %v", got, err)
	}
	there.Knows(map[string]any{"sub": "subject-1", "email": "lin@example.com"})
	if got, err = through(t, p, there, nil); err != nil || got.Verified {
		t.Errorf("an address that nobody verified: %+v %v", got, err)
	}
	there.Knows(map[string]any{"sub": "subject-2", "email": "lin@example.com", "email_verified": true})
	if got, err = through(t, p, there, nil); !errors.Is(err, staff.ErrAttempt) || strings.Contains(err.Error(), "lin@") {
		t.Errorf("another subject: %+v %v", got, err)
	}
	there.Knows(map[string]any{"sub": "subject-1", "email": 7})
	if got, err = through(t, p, there, nil); !errors.Is(err, staff.ErrAttempt) {
		t.Errorf("nonsense: %+v %v", got, err)
	}
	there.Down("/userinfo", true)
	if got, err = through(t, p, there, nil); !errors.Is(err, staff.ErrProviderDown) {
		t.Errorf("down: %+v %v", got, err)
	}
	there.Says("email", "lin@example.com")
	if got, err = through(t, p, there, nil); err != nil || got.Email != "lin@example.com" {
		t.Errorf("asked although the ID token has it: %+v %v", got, err)
	}
}

func TestEveryAttemptIsItsOwn(t *testing.T) {
	p, _, _ := start(t)
	seen := map[string]bool{}
	for range 20 {
		a, _, err := p.Begin(t.Context())
		musttest.OK(t, err)
		for _, s := range []string{a.State, a.Nonce, a.Verifier} {
			if len(s) < 26 || seen[s] {
				t.Fatalf("%q is short or stands twice", s)
			}
			seen[s] = true
		}
	}
}

func TestWhatProvesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*oidctest.Provider, *watch, *staff.Attempt){
		"another nonce":         func(_ *oidctest.Provider, _ *watch, a *staff.Attempt) { a.Nonce = "other" },
		"no nonce kept":         func(p *oidctest.Provider, _ *watch, a *staff.Attempt) { a.Nonce = ""; p.Says("nonce", "") },
		"a nonce of the answer": func(p *oidctest.Provider, _ *watch, _ *staff.Attempt) { p.Says("nonce", "replayed") },
		"another verifier":      func(_ *oidctest.Provider, _ *watch, a *staff.Attempt) { a.Verifier = strings.Repeat("x", 43) },
		"expired": func(p *oidctest.Provider, w *watch, _ *staff.Attempt) {
			p.Says("exp", w.now().Add(-time.Second).Unix())
		},
		"another issuer":   func(p *oidctest.Provider, _ *watch, _ *staff.Attempt) { p.Says("iss", "https://evil.example") },
		"another audience": func(p *oidctest.Provider, _ *watch, _ *staff.Attempt) { p.Says("aud", "somebody else") },
		"made for another": func(p *oidctest.Provider, _ *watch, _ *staff.Attempt) { p.Says("azp", "somebody else") },
		"an address that is no text": func(p *oidctest.Provider, _ *watch, _ *staff.Attempt) {
			p.Says("email", []string{"lin@example.com"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, there, clock := start(t)
			_, err := through(t, p, there, func(a *staff.Attempt) { spoil(there, clock, a) })
			if !errors.Is(err, staff.ErrAttempt) || errors.Is(err, staff.ErrProviderDown) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSignatureByAnotherKey(t *testing.T) {
	p, there, _ := start(t)
	if _, err := through(t, p, there, nil); err != nil {
		t.Fatal(err)
	}
	there.Rotate(true) // a new key under a new name is fetched
	if _, err := through(t, p, there, nil); err != nil {
		t.Errorf("after the provider changed its key: %v", err)
	}
	there.Rotate(false)
	if _, err := through(t, p, there, nil); !errors.Is(err, staff.ErrAttempt) || errors.Is(err, staff.ErrProviderDown) {
		t.Errorf("signed by a key that is not the provider's: %v", err)
	}
}

func TestCodeServesOnce(t *testing.T) {
	p, there, _ := start(t)
	a, to, err := p.Begin(t.Context())
	musttest.OK(t, err)
	code := there.Agree(to).Query().Get("code")
	if _, err := p.Finish(t.Context(), a, code); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Finish(t.Context(), a, code); !errors.Is(err, staff.ErrAttempt) {
		t.Errorf("the same code again: %v", err)
	}
}

func TestWrongSecret(t *testing.T) {
	there := oidctest.New(t, time.Now)
	p := oidc.New(oidc.Options{Issuer: there.Issuer(), ClientID: oidctest.ClientID, ClientSecret: "guess", PublicURL: "https://drops.example", Now: time.Now})
	_, err := through(t, p, there, nil)
	if !errors.Is(err, staff.ErrAttempt) || strings.Contains(err.Error(), "guess") {
		t.Errorf("got %v", err)
	}
}

func TestProviderDown(t *testing.T) {
	p, there, clock := start(t)
	there.Down("", true)
	gone, leave := context.WithCancel(t.Context())
	leave() // the first caller has left; that must not count as an answer
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ctx := t.Context()
			if i == 0 {
				ctx = gone
			}
			if _, _, err := p.Begin(ctx); !errors.Is(err, staff.ErrProviderDown) {
				t.Errorf("while it is down: %v", err)
			}
		})
	}
	all.Wait()
	if n := there.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("%d calls of a provider that is down, want 1 a second", n)
	}
	there.Down("", false)
	clock.wait(time.Second)
	if _, err := through(t, p, there, nil); err != nil {
		t.Errorf("once it is back: %v", err)
	}
	for _, path := range []string{"/token", "/keys"} {
		p, there, _ := start(t)
		if _, _, err := p.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		there.Down(path, true)
		if _, err := through(t, p, there, nil); !errors.Is(err, staff.ErrProviderDown) {
			t.Errorf("%s is down: %v", path, err)
		}
	}
}

func TestAnotherIssuerAnswers(t *testing.T) {
	there := oidctest.New(t, time.Now)
	p := oidc.New(oidc.Options{Issuer: there.Issuer() + "/", ClientID: oidctest.ClientID, ClientSecret: "x", Now: time.Now})
	if _, _, err := p.Begin(t.Context()); !errors.Is(err, staff.ErrProviderDown) {
		t.Errorf("got %v", err)
	}
}
