// Package google asks Google for the access tokens of a service account (RFC 7523).
package google

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"dropbell/adapters/sender"
)

// lead is how long before its end an access token is replaced.
const lead = 5 * time.Minute

// Tokens returns the tokens of the identity. The client's timeout bounds a request.
func Tokens(identity *jwt.Config, client *http.Client, now func() time.Time) *sender.Tokens {
	return &sender.Tokens{Lead: lead, Now: now, Issue: func(string) (sender.Token, error) {
		t, err := identity.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, client)).Token()
		if err != nil {
			return sender.Token{}, err
		}
		return sender.Token{Access: t.AccessToken, Ends: t.Expiry}, nil
	}}
}

// Refused returns the code with which Google refused to issue a token; ok is false if Google
// gave no such answer.
func Refused(err error) (code string, ok bool) {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || refused.Response == nil || refused.Response.StatusCode >= 500 {
		return "", false
	}
	return refused.ErrorCode, true
}
