// Package oidc signs members of the staff in at an identity provider, by OpenID Connect: the
// authorization code flow with PKCE and a nonce.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"dropbell/domain/staff"
)

const (
	// patience is how long one call of the provider may take.
	patience = 5 * time.Second
	// pause is how long after a failed discovery no further attempt is made.
	pause = time.Second
)

// Options say which provider to use and as whom.
type Options struct {
	Issuer       string
	ClientID     string
	ClientSecret string
	// PublicURL is where browsers reach the console.
	PublicURL string
	Now       func() time.Time
}

// CallbackPath is where the provider sends browsers back to.
const CallbackPath = "/signin/oidc/callback"

// Provider implements [staff.IdentityProvider]. Discovery runs at the first sign-in, and again
// at later sign-ins until it has succeeded once.
type Provider struct {
	o      Options
	client *http.Client

	mu     sync.Mutex
	found  *found
	failed error
	until  time.Time // failed holds until then
}

// found is the result of discovery.
type found struct {
	provider *gooidc.Provider
	endpoint oauth2.Endpoint
	keys     gooidc.KeySet
	algs     []string
}

// New returns the provider without calling it.
func New(o Options) *Provider {
	return &Provider{o: o, client: &http.Client{Timeout: patience, Transport: &calls{http.DefaultTransport}}}
}

// calls turns answers of a provider that cannot answer now (5xx, 429) into errors.
type calls struct{ http.RoundTripper }

func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.RoundTripper.RoundTrip(r)
	if err == nil && (res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests) {
		_ = res.Body.Close()
		return nil, fmt.Errorf("answered %d", res.StatusCode)
	}
	return res, err
}

// discover returns the provider's metadata. One caller fetches it and other callers wait. The
// fetch continues if its caller hangs up.
func (p *Provider) discover(ctx context.Context) (*found, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if p.o.Now().Before(p.until) {
		return nil, p.failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	f, err := p.ask(ctx)
	if err != nil {
		p.failed, p.until = fmt.Errorf("%w: discovery: %w", staff.ErrProviderDown, err), p.o.Now().Add(pause)
		return nil, p.failed
	}
	p.found = f
	return f, nil
}

func (p *Provider) ask(ctx context.Context) (*found, error) {
	ctx = gooidc.ClientContext(ctx, p.client)
	provider, err := gooidc.NewProvider(ctx, p.o.Issuer)
	if err != nil {
		return nil, err
	}
	var more struct {
		Keys string   `json:"jwks_uri"`
		Algs []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, err
	}
	f := &found{provider: provider, endpoint: provider.Endpoint()}
	for _, address := range []string{f.endpoint.AuthURL, f.endpoint.TokenURL, more.Keys} {
		if u, err := url.Parse(address); err != nil || u.Host == "" {
			return nil, errors.New("an endpoint is missing")
		}
	}
	// The key set outlives this call and has its own deadline: the client's.
	f.keys = gooidc.NewRemoteKeySet(gooidc.ClientContext(context.WithoutCancel(ctx), p.client), more.Keys)
	for _, a := range more.Algs {
		// Not HS256: every holder of a shared secret could forge tokens.
		if strings.HasPrefix(a, "RS") || strings.HasPrefix(a, "PS") || strings.HasPrefix(a, "ES") || a == gooidc.EdDSA {
			f.algs = append(f.algs, a)
		}
	}
	return f, nil
}

func (p *Provider) oauth(f *found) *oauth2.Config {
	return &oauth2.Config{ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, Endpoint: f.endpoint,
		RedirectURL: strings.TrimRight(p.o.PublicURL, "/") + CallbackPath, Scopes: []string{gooidc.ScopeOpenID, "email"}}
}

// Begin returns a new attempt and the address to which the browser is sent; see
// [staff.IdentityProvider].
func (p *Provider) Begin(ctx context.Context) (staff.Attempt, string, error) { return p.begin(ctx) }

// BeginAgain requires the provider to authenticate the person again. The provider must state the
// time of the authentication (auth_time), because max_age is sent.
func (p *Provider) BeginAgain(ctx context.Context) (staff.Attempt, string, error) {
	return p.begin(ctx, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
}

func (p *Provider) begin(ctx context.Context, more ...oauth2.AuthCodeOption) (staff.Attempt, string, error) {
	f, err := p.discover(ctx)
	if err != nil {
		return staff.Attempt{}, "", err
	}
	a := staff.Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), At: p.o.Now()}
	more = append(more, gooidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	return a, p.oauth(f).AuthCodeURL(a.State, more...), nil
}

// Finish exchanges the code and verifies the identity; see
// [staff.IdentityProvider].
func (p *Provider) Finish(ctx context.Context, a staff.Attempt, code string) (staff.Identity, error) {
	f, err := p.discover(ctx)
	if err != nil {
		return staff.Identity{}, err
	}
	ctx, cancel := context.WithTimeout(gooidc.ClientContext(ctx, p.client), 2*patience)
	defer cancel()
	token, err := p.oauth(f).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return staff.Identity{}, why("token endpoint", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return staff.Identity{}, fmt.Errorf("%w: the token endpoint sent no id_token", staff.ErrAttempt)
	}
	keys := &listening{KeySet: f.keys}
	id, err := gooidc.NewVerifier(p.o.Issuer, keys, &gooidc.Config{ClientID: p.o.ClientID, SupportedSigningAlgs: f.algs, Now: p.o.Now}).Verify(ctx, raw)
	if err != nil {
		// The verifier keeps only the text of an error; keys.err is the error itself.
		return staff.Identity{}, why("id_token", errors.Join(err, keys.err))
	}
	who, err := p.identity(id, a)
	if err != nil || who.Email != "" {
		return who, err
	}
	return p.withEmail(ctx, f, token, who)
}

// withEmail adds the email address from the userinfo endpoint: some providers do not put it into
// the ID token. The subject of the userinfo answer must equal the token's subject.
func (p *Provider) withEmail(ctx context.Context, f *found, token *oauth2.Token, who staff.Identity) (staff.Identity, error) {
	if f.provider.UserInfoEndpoint() == "" {
		return who, nil
	}
	info, err := f.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if call, ok := errors.AsType[*url.Error](err); ok {
		return staff.Identity{}, fmt.Errorf("%w: userinfo endpoint: %w", staff.ErrProviderDown, call.Err)
	}
	if err != nil { // its text contains the answer, which holds personal data
		return staff.Identity{}, fmt.Errorf("%w: the answer of the userinfo endpoint cannot be used", staff.ErrAttempt)
	}
	if info.Subject != who.Subject {
		return staff.Identity{}, fmt.Errorf("%w: the userinfo endpoint speaks of another subject", staff.ErrAttempt)
	}
	who.Email, who.Verified = info.Email, info.EmailVerified
	return who, nil
}

func (p *Provider) identity(id *gooidc.IDToken, a staff.Attempt) (staff.Identity, error) {
	var claims struct {
		Email    string `json:"email"`
		Verified yes    `json:"email_verified"`
		For      string `json:"azp"`
		At       int64  `json:"auth_time"`
	}
	if err := id.Claims(&claims); err != nil {
		return staff.Identity{}, fmt.Errorf("%w: claims cannot be read", staff.ErrAttempt)
	}
	if a.Nonce == "" || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1 {
		return staff.Identity{}, fmt.Errorf("%w: the id_token has another nonce", staff.ErrAttempt)
	}
	if claims.For != "" && claims.For != p.o.ClientID {
		return staff.Identity{}, fmt.Errorf("%w: the id_token was made for another client", staff.ErrAttempt)
	}
	who := staff.Identity{Issuer: id.Issuer, Subject: id.Subject, Email: claims.Email, Verified: bool(claims.Verified)}
	if claims.At > 0 {
		who.At = time.Unix(claims.At, 0)
	}
	return who, nil
}

// why distinguishes a provider that does not answer from a provider that refuses. The error
// omits the description of a refusal, because the description may contain personal data.
func why(what string, err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("%w: %s: %q", staff.ErrAttempt, what, refused.ErrorCode)
	}
	if call, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%w: %s: %w", staff.ErrProviderDown, what, call.Err)
	}
	return fmt.Errorf("%w: %s: %w", staff.ErrAttempt, what, err)
}

// listening keeps the error of one check of a signature.
type listening struct {
	gooidc.KeySet
	err error
}

func (l *listening) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := l.KeySet.VerifySignature(ctx, jwt)
	l.err = err
	return payload, err
}

// yes is a boolean that some providers send as text. Anything but true means no.
type yes bool

func (y *yes) UnmarshalJSON(raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	*y = v == true || v == "true"
	return nil
}
