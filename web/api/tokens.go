package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/maypok86/otter/v2"

	"dropbell/domain/user"
)

// TokenOptions say how end users' tokens are verified.
type TokenOptions struct {
	// Secret verifies HS256 tokens; empty = none are accepted.
	Secret string
	// JWKSURL is where the public keys for all other tokens are; empty = none
	// are accepted.
	JWKSURL string
	// Issuer and Audience, if set, must be the token's.
	Issuer   string
	Audience string
	Now      func() time.Time
	Log      *slog.Logger // nil = slog.Default()
}

// Tokens verifies end users' tokens. Which key is tried follows from the kind
// of algorithm, so that a public key can never be used as a secret.
type Tokens struct {
	o     TokenOptions
	sets  *keySets
	known *otter.Cache[[sha256.Size]byte, *caller]
	// refreshed is when the key set was last fetched because of an unknown
	// key, in Unix nanoseconds.
	refreshed atomic.Int64
}

const (
	tokenLeeway = 30 * time.Second
	maxToken    = 8 << 10
	// rememberedTokens bounds the memory for verified tokens to some 30 MB.
	rememberedTokens = 100_000
	// refreshEvery keeps strangers' tokens from hammering the key server.
	refreshEvery = 10 * time.Second
)

// publicAlgorithms are accepted from a key set; none of them can be verified
// with a secret.
var publicAlgorithms = map[string]bool{
	"RS256": true, "RS384": true, "RS512": true, "PS256": true, "PS384": true, "PS512": true,
	"ES256": true, "ES384": true, "ES512": true, "EdDSA": true,
}

// NewTokens returns a verifier. It does not wait for the key set, so that a
// key server that is down keeps nobody from starting; ctx ends the fetching.
func NewTokens(ctx context.Context, o TokenOptions) (*Tokens, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	t := &Tokens{o: o, known: otter.Must(&otter.Options[[sha256.Size]byte, *caller]{MaximumSize: rememberedTokens})}
	if o.JWKSURL == "" {
		return t, nil
	}
	var err error
	if t.sets, err = fetchKeySets(ctx, o.JWKSURL, o.Log); err != nil {
		return nil, err
	}
	return t, nil
}

// caller returns the user whose token it is, or [staff.ErrUnauthenticated], or
// [errOverloaded] while the key set cannot be fetched.
func (t *Tokens) caller(ctx context.Context, token string) (*caller, error) {
	if len(token) > maxToken {
		return nil, invalid("the token is too long")
	}
	hash := sha256.Sum256([]byte(token))
	if c, ok := t.known.GetIfPresent(hash); ok {
		if t.o.Now().Before(c.until) {
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

func (t *Tokens) verify(ctx context.Context, token string) (*caller, error) {
	payload, err := t.signed(ctx, token)
	if err != nil {
		return nil, err
	}
	claims, err := jwt.ParseInsecure(payload) // the signature was checked above
	if err != nil {
		return nil, invalid("the token's claims cannot be read; sub must be a string, exp a number of seconds")
	}
	options := []jwt.ValidateOption{jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithAcceptableSkew(tokenLeeway),
		jwt.WithClock(jwt.ClockFunc(t.o.Now))}
	if t.o.Issuer != "" {
		options = append(options, jwt.WithIssuer(t.o.Issuer))
	}
	if t.o.Audience != "" {
		options = append(options, jwt.WithAudience(t.o.Audience))
	}
	if err := jwt.Validate(claims, options...); err != nil {
		return nil, invalid(validationText(err))
	}
	sub, _ := claims.Subject()
	id, err := user.ParseID(sub)
	if err != nil {
		return nil, invalid("the token's sub must be the user's id in decimal")
	}
	exp, _ := claims.Expiration()
	return &caller{user: id, until: exp.Add(tokenLeeway)}, nil
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

// signed returns the token's payload if the signature is good.
func (t *Tokens) signed(ctx context.Context, token string) ([]byte, error) {
	alg, ok := algorithmOf(token)
	switch {
	case !ok:
		return nil, invalid("the token's header cannot be read")
	case alg == "HS256" && t.o.Secret != "":
		payload, err := jws.VerifyCompactFast([]byte(t.o.Secret), []byte(token), jwa.HS256())
		if err != nil {
			return nil, invalid("the token's signature is wrong")
		}
		return payload, nil
	case publicAlgorithms[alg] && t.sets != nil:
		return t.signedByKeySet(ctx, token)
	}
	return nil, invalid("tokens with this algorithm are not accepted")
}

// signedByKeySet tries the keys at hand, and if none fits those that the
// server has now: it may have changed keys.
func (t *Tokens) signedByKeySet(ctx context.Context, token string) ([]byte, error) {
	set, err := t.sets.known()
	if err == nil {
		if payload, err := verifyWith(set, token); err == nil {
			return payload, nil
		}
	}
	if !t.mayRefresh() {
		if err != nil {
			return nil, unfetched(err)
		}
		return nil, invalid("the token's signature is wrong")
	}
	if set, err = t.sets.refresh(ctx); err != nil {
		return nil, unfetched(err)
	}
	payload, err := verifyWith(set, token)
	if err != nil {
		return nil, invalid("the token's signature is wrong")
	}
	return payload, nil
}

func unfetched(err error) error { return fmt.Errorf("%w (key set: %w)", errOverloaded, err) }

func (t *Tokens) mayRefresh() bool {
	now, last := t.o.Now().UnixNano(), t.refreshed.Load()
	return now-last > int64(refreshEvery) && t.refreshed.CompareAndSwap(last, now)
}

func verifyWith(set jwk.Set, token string) ([]byte, error) {
	return jws.Verify([]byte(token), jws.WithKeySet(set, jws.WithInferAlgorithmFromKey(true), jws.WithRequireKid(false)))
}

func algorithmOf(token string) (string, bool) {
	first, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		return "", false
	}
	var header struct {
		Alg string `json:"alg"`
	}
	err = json.Unmarshal(raw, &header)
	return header.Alg, err == nil
}
