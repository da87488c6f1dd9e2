package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/maypok86/otter/v2"

	"dropbell/domain/user"
)

// TokenOptions say how end users' tokens are verified.
type TokenOptions struct {
	// Secret verifies HS256 tokens; empty = none are accepted.
	Secret string
	// JWKSURL is the address of the public keys for all other tokens; empty = no such tokens are
	// accepted.
	JWKSURL string
	// Issuer and Audience, if set, must be the token's.
	Issuer   string
	Audience string
	// MaxAge is how long after its iat a token is accepted, whatever its exp
	// says; 0 = until exp.
	MaxAge time.Duration
	Now    func() time.Time
	Log    *slog.Logger // nil = slog.Default()
}

// Tokens verifies end users' tokens. The kind of algorithm decides which key is tried, so that a
// public key is never used as a secret.
type Tokens struct {
	o     TokenOptions
	sets  *keySets
	known *otter.Cache[[sha256.Size]byte, *Caller]
	// headers caches parsed headers: all tokens of a key have the same header.
	headers *otter.Cache[string, tokenHeader]
	// refreshed is the last time that the key set was fetched because of an unknown key, in Unix
	// nanoseconds.
	refreshed atomic.Int64
}

const (
	tokenLeeway = 30 * time.Second
	maxToken    = 8 << 10
	// rememberedTokens bounds the memory for verified tokens to some 30 MB.
	rememberedTokens = 100_000
	// rememberedHeaders are as many as there may be keys and algorithms in use.
	rememberedHeaders = 64
	// refreshEvery keeps strangers' tokens from hammering the key server.
	refreshEvery = 10 * time.Second
)

// publicAlgorithms are the algorithms accepted from a key set; none of them can be verified with a
// secret.
var publicAlgorithms = map[string]bool{
	"RS256": true, "RS384": true, "RS512": true, "PS256": true, "PS384": true, "PS512": true,
	"ES256": true, "ES384": true, "ES512": true, "EdDSA": true,
}

// NewTokens returns a verifier. It does not wait for the key set, so that a key server that is down
// does not prevent the start. Fetching the key set ends with ctx.
func NewTokens(ctx context.Context, o TokenOptions) (*Tokens, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	t := &Tokens{o: o, known: otter.Must(&otter.Options[[sha256.Size]byte, *Caller]{MaximumSize: rememberedTokens}),
		headers: otter.Must(&otter.Options[string, tokenHeader]{MaximumSize: rememberedHeaders})}
	if o.JWKSURL == "" {
		return t, nil
	}
	var err error
	if t.sets, err = fetchKeySets(ctx, o.JWKSURL, o.Log); err != nil {
		return nil, err
	}
	return t, nil
}

// caller returns the user that the token belongs to. Errors are [staff.ErrUnauthenticated], and
// [errOverloaded] while the key set cannot be fetched.
func (t *Tokens) caller(ctx context.Context, token string) (*Caller, error) {
	if len(token) > maxToken {
		return nil, invalid("the token is too long; send one with fewer claims")
	}
	hash := sha256.Sum256([]byte(token))
	if c, ok := t.known.GetIfPresent(hash); ok {
		if t.o.Now().Before(c.Until) && !c.IsWithdrawn() {
			return c, nil
		}
		t.known.Invalidate(hash)
	}
	c, err := t.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	t.known.Set(hash, c)
	return c, nil
}

func (t *Tokens) verify(ctx context.Context, token string) (*Caller, error) {
	head, ok := t.header(token)
	if !ok {
		return nil, invalid("the token's header cannot be read; send it as it was issued")
	}
	if head.critical {
		// RFC 7515, section 4.1.11; no extension is understood here.
		return nil, invalid("the token's crit names extensions that are not understood here")
	}
	payload, key, err := t.signed(ctx, head.algorithm, token)
	if err != nil {
		return nil, err
	}
	claims, err := t.claims(head, payload)
	if err != nil {
		return nil, err
	}
	id, err := user.ParseID(claims.subject)
	if err != nil {
		return nil, invalid("the token's sub must be the user's id in decimal")
	}
	c := &Caller{User: id, Attested: claims.attested != ""}
	if key != nil {
		c.withdrawn = func() bool { return !t.sets.publishes(*key) }
	}
	c.Until, err = t.end(claims, key != nil)
	return c, err
}

// header is [headerOf], from memory for headers that were read before.
func (t *Tokens) header(token string) (tokenHeader, bool) {
	first, _, _ := strings.Cut(token, ".")
	if h, known := t.headers.GetIfPresent(first); known {
		return h, true
	}
	h, ok := headerOf(token)
	if ok {
		t.headers.Set(strings.Clone(first), h)
	}
	return h, ok
}

// validate checks everything in the claims except their subject and their age.
func (t *Tokens) validate(head tokenHeader, claims jwt.Token) error {
	options := []jwt.ValidateOption{jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithAcceptableSkew(tokenLeeway),
		jwt.WithClock(jwt.ClockFunc(t.o.Now))}
	if t.o.Issuer != "" {
		options = append(options, jwt.WithIssuer(t.o.Issuer))
	}
	if t.o.Audience != "" {
		options = append(options, jwt.WithAudience(t.o.Audience))
	}
	if err := jwt.Validate(claims, options...); err != nil {
		return invalid(validationText(err))
	}
	if t.o.Issuer == "" && t.o.Audience == "" {
		return nil // no identity provider is configured
	}
	return head.forAccess(claims)
}

// end returns when the token stops being accepted. Tokens verified with a key set come from an
// identity provider and should have iat; without iat such a token may not last longer than MaxAge
// from now. Tokens made with the shared secret without iat last until exp.
func (t *Tokens) end(claims tokenClaims, byKeySet bool) (time.Time, error) {
	end := claims.expires.Add(tokenLeeway)
	if t.o.MaxAge == 0 {
		return end, nil
	}
	now := t.o.Now()
	switch oldest := claims.issued.Add(t.o.MaxAge + tokenLeeway); {
	case !claims.dated && byKeySet && end.Sub(now) > t.o.MaxAge+2*tokenLeeway:
		return end, invalid("the token has no iat and lasts longer than tokens may here")
	case !claims.dated:
		return end, nil
	case !now.Before(oldest):
		return end, invalid("the token was issued too long ago; get a new one")
	case oldest.Before(end):
		return oldest, nil
	}
	return end, nil
}

func validationText(err error) string {
	switch {
	case errors.Is(err, jwt.TokenExpiredError()):
		return "the token has expired"
	case errors.Is(err, jwt.TokenNotYetValidError()):
		return "the token is not valid yet"
	case errors.Is(err, jwt.InvalidIssuedAtError()):
		return "the token was issued in the future"
	case errors.Is(err, jwt.MissingRequiredClaimError()):
		return "the token has no exp"
	case errors.Is(err, jwt.InvalidIssuerError()):
		return "the token has another issuer"
	case errors.Is(err, jwt.InvalidAudienceError()):
		return "the token is meant for another audience"
	}
	return "the token's claims are not valid"
}

// signed returns the token's payload if the signature is good. The key is returned too if it
// belongs to the key set.
func (t *Tokens) signed(ctx context.Context, algorithm, token string) ([]byte, *keyPrint, error) {
	switch {
	case algorithm == "HS256" && t.o.Secret != "":
		payload, err := jws.VerifyCompactFast([]byte(t.o.Secret), []byte(token), jwa.HS256())
		if err != nil {
			return nil, nil, invalid("the token's signature is wrong; check that its issuer's key is the one configured here")
		}
		return payload, nil, nil
	case publicAlgorithms[algorithm] && t.sets != nil:
		payload, key, err := t.signedByKeySet(ctx, token)
		return payload, &key, err
	}
	return nil, nil, invalid("tokens with this algorithm are not accepted; sign with the configured one")
}

// signedByKeySet tries the cached keys. If none fits, it fetches the key set, which may have
// changed, and tries again.
func (t *Tokens) signedByKeySet(ctx context.Context, token string) ([]byte, keyPrint, error) {
	keys, err := t.sets.known()
	if err == nil {
		if payload, key, err := keys.verify(token); err == nil {
			return payload, key, nil
		}
	}
	if !t.mayRefresh() {
		if err != nil {
			return nil, keyPrint{}, unfetched(err)
		}
		return nil, keyPrint{}, invalid("the token's signature is wrong; check that its issuer's key is the one configured here")
	}
	if keys, err = t.sets.refresh(ctx); err != nil {
		return nil, keyPrint{}, unfetched(err)
	}
	payload, key, err := keys.verify(token)
	if err != nil {
		return nil, keyPrint{}, invalid("the token's signature is wrong; check that its issuer's key is the one configured here")
	}
	return payload, key, nil
}

func unfetched(err error) error { return fmt.Errorf("%w (key set: %w)", errOverloaded, err) }

func (t *Tokens) mayRefresh() bool {
	now, last := t.o.Now().UnixNano(), t.refreshed.Load()
	return now-last > int64(refreshEvery) && t.refreshed.CompareAndSwap(last, now)
}
