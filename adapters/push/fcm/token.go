package fcm

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"
	"golang.org/x/sync/singleflight"
)

// lead is how long before its end an access token is replaced.
const lead = 5 * time.Minute

// tokens hold the access token that all pushes share.
type tokens struct {
	identity *jwt.Config
	client   *http.Client
	now      func() time.Time
	flight   singleflight.Group

	mu      sync.Mutex
	current *oauth2.Token
}

// get returns the token, a new one if it ends soon or equals the refused one. All
// callers wait for the same request, each as long as its own context lasts.
func (t *tokens) get(ctx context.Context, refused string) (string, error) {
	if access := t.standing(refused); access != "" {
		return access, nil
	}
	answer := t.flight.DoChan("", func() (any, error) {
		if access := t.standing(refused); access != "" { // another flight has just ended
			return access, nil
		}
		// The client's timeout bounds the request; the context carries the client alone.
		token, err := t.identity.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, t.client)).Token()
		if err != nil {
			return "", err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.current = token
		return token.AccessToken, nil
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-answer:
		return a.Val.(string), a.Err
	}
}

func (t *tokens) standing(refused string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil || t.current.AccessToken == refused || !t.current.Expiry.IsZero() && t.now().Add(lead).After(t.current.Expiry) {
		return ""
	}
	return t.current.AccessToken
}
