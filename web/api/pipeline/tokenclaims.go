package pipeline

import (
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwt"
)

// tokenClaims are the claims of a token that the pipeline uses.
type tokenClaims struct {
	subject string
	expires time.Time
	// issued is set if dated is.
	issued time.Time
	dated  bool
	// attested names the service by which the shop has attested the user's device; empty = none.
	attested string
}

// attestedClaim is the claim by which a shop says that it has checked the device or the browser of
// the user, for instance by App Attest or Play Integrity. Its value names the service.
const attestedClaim = "dropbell_attested"

// claims reads and checks the claims of a token whose signature is good. Plain claims, which most
// tokens have, are read by plainClaims: the general parser takes most of the time that a new token
// costs. All other claims, and claims that may have to be refused, go to the general parser, so
// that there is one set of rules.
func (t *Tokens) claims(head tokenHeader, payload []byte) (tokenClaims, error) {
	if c, ok := t.plainClaims(head, payload); ok {
		return c, nil
	}
	claims, err := jwt.ParseInsecure(payload) // the signature was checked
	if err != nil {
		return tokenClaims{}, invalid("the token's claims cannot be read; sub must be a string, exp a number of seconds")
	}
	if err := t.validate(head, claims); err != nil {
		return tokenClaims{}, err
	}
	var c tokenClaims
	c.subject, _ = claims.Subject()
	c.expires, _ = claims.Expiration()
	c.issued, c.dated = claims.IssuedAt()
	_ = claims.Get(attestedClaim, &c.attested) // absent, or no text
	return c, nil
}

// plainClaims reads claims in their plain form: texts without escapes, and whole seconds where the
// general parser expects an instant. Each claim that the pipeline uses may occur once at most, and
// must be valid without any leeway. If the issuer or the audience is checked, further claims are
// not accepted: they may say that the token is no access token. ok is false for all other claims,
// good or bad.
func (t *Tokens) plainClaims(head tokenHeader, payload []byte) (c tokenClaims, ok bool) {
	if head.kind != "" && head.kind != "jwt" && head.kind != "at+jwt" {
		return c, false
	}
	var issuer, audience, id string
	var expires, issued, begins int64
	s := NewScanner(payload)
	text := func(to *string) (ok bool) {
		if *to == "" {
			*to, ok = s.Text()
		}
		return ok && *to != "" // else a second one would go unseen
	}
	seconds := func(to *int64) (ok bool) {
		if *to == 0 {
			*to, ok = s.Seconds()
		}
		return ok
	}
	ok = s.Object(func(name string) bool {
		switch name {
		case "sub":
			return text(&c.subject)
		case "iss":
			return text(&issuer)
		case "aud":
			return text(&audience)
		case attestedClaim:
			return text(&c.attested)
		case "jti":
			return text(&id)
		case "exp":
			return seconds(&expires)
		case "iat":
			return seconds(&issued)
		case "nbf":
			return seconds(&begins)
		}
		_, ok := s.Text()
		return ok && t.o.Issuer == "" && t.o.Audience == "" && !tellsFormat(name)
	}) && s.End()
	now := t.o.Now().Unix()
	ok = ok && c.subject != "" && expires > now && issued <= now && begins <= now &&
		(t.o.Issuer == "" || issuer == t.o.Issuer) && (t.o.Audience == "" || audience == t.o.Audience)
	c.expires, c.issued, c.dated = time.Unix(expires, 0).UTC(), time.Unix(issued, 0).UTC(), issued != 0
	return c, ok
}

// tellsFormat reports whether the general parser may take a payload with this name for a key or for
// a nested token. The general parser ignores the case of names.
func tellsFormat(name string) bool {
	return slices.ContainsFunc([]string{"kty", "keys", "ciphertext", "payload", "signatures"},
		func(f string) bool { return strings.EqualFold(f, name) })
}
