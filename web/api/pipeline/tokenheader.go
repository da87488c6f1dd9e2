package pipeline

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/lestrrat-go/jwx/v3/jwt"
)

// tokenHeader is the part of a token's header that the pipeline uses.
type tokenHeader struct {
	algorithm string
	// kind is typ in lower case, without "application/".
	kind string
	// critical is true if there is a crit, whatever it names.
	critical bool
}

// headerOf returns false if the header is no JSON object, or alg or typ no text.
func headerOf(token string) (h tokenHeader, ok bool) {
	first, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		return h, false
	}
	// A map, because names in structs match in whatever case.
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return h, false
	}
	_, h.critical = fields["crit"]
	for name, to := range map[string]*string{"alg": &h.algorithm, "typ": &h.kind} {
		if value, given := fields[name]; given && json.Unmarshal(value, to) != nil {
			return h, false
		}
	}
	h.kind = strings.TrimPrefix(strings.ToLower(h.kind), "application/")
	return h, true
}

// forAccess refuses tokens that an identity provider made for another purpose than calling an API,
// such as ID tokens, which name the user that signed in to an app. The typ of an access token is
// at+jwt (RFC 9068), JWT, or missing.
func (h tokenHeader) forAccess(claims jwt.Token) error {
	switch h.kind {
	case "at+jwt":
		return nil
	case "", "jwt":
	default:
		return invalid("the token's typ says that it is no access token; send one with at+jwt or JWT")
	}
	if forSignIn(claims) {
		return invalid("this is an ID token; send the access token")
	}
	return nil
}

// forSignIn reports whether the token is an ID token. The provider's own claim decides if there is
// one (typ of Keycloak, token_use of Cognito); otherwise claims that only ID tokens have (OpenID
// Connect Core, sections 2 and 3.3.2.11).
func forSignIn(claims jwt.Token) bool {
	var says string
	if claims.Get("typ", &says) == nil {
		switch says {
		case "ID":
			return true
		case "Bearer":
			return false
		}
	}
	if claims.Get("token_use", &says) == nil {
		return says == "id"
	}
	for _, name := range []string{"nonce", "at_hash", "c_hash", "s_hash"} {
		if claims.Has(name) {
			return true
		}
	}
	return false
}
