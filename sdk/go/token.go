package dropbell

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"
)

// UserTokens signs tokens (JWT, HS256) with which a shop's pages and apps call Dropbell for a
// signed-in user. The server must have AUTH_JWT_SECRET.
type UserTokens struct {
	Secret string // AUTH_JWT_SECRET
	// Issuer and Audience are AUTH_JWT_ISSUER and AUTH_JWT_AUDIENCE of the server; "" = the
	// server requires none.
	Issuer, Audience string
}

// Sign returns a token of the user, a decimal id, that is valid for d from now on.
func (t UserTokens) Sign(user string, now time.Time, d time.Duration) (string, error) {
	claims := map[string]any{"sub": user, "iat": now.Unix(), "exp": now.Add(d).Unix()}
	if t.Issuer != "" {
		claims["iss"] = t.Issuer
	}
	if t.Audience != "" {
		claims["aud"] = t.Audience
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(payload)
	mac := hmac.New(sha256.New, []byte(t.Secret))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil)), nil
}
