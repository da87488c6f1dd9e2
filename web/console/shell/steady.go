package shell

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/alexedwards/scs/v2"
)

// SessionStore stores sessions.
type SessionStore interface {
	scs.CtxStore
	// ExtendCtx changes the expiry of a session without changing its data. It does not restore a
	// session that is gone.
	ExtendCtx(ctx context.Context, token string, expiry time.Time) error
}

// steadyStore stores the data of a session only if the request has changed them. With an idle limit
// the manager stores each session at the end of every request with the data from the request's
// beginning. So a live part that is loaded repeatedly would overwrite data that another request of
// the same browser has stored meanwhile, such as the message about a change.
type steadyStore struct {
	SessionStore
	codec scs.Codec
}

// loaded is the session that a request has loaded.
type loaded struct {
	token string
	data  []byte
}

type loadedKey struct{}

// steady makes a request remember the session that it loads. It must run before the session
// manager.
func steady(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), loadedKey{}, &loaded{})))
	})
}

// FindCtx is part of [scs.CtxStore].
func (s steadyStore) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	data, found, err = s.SessionStore.FindCtx(ctx, token)
	if l, ok := ctx.Value(loadedKey{}).(*loaded); ok && found {
		l.token, l.data = token, data
	}
	return data, found, err
}

// CommitCtx is part of [scs.CtxStore].
func (s steadyStore) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	if l, ok := ctx.Value(loadedKey{}).(*loaded); ok && l.token == token && s.same(l.data, data) {
		return s.ExtendCtx(ctx, token, expiry)
	}
	return s.SessionStore.CommitCtx(ctx, token, data, expiry)
}

// same reports whether both hold the same values. Equal values may be encoded differently.
func (s steadyStore) same(before, now []byte) bool {
	_, was, err := s.codec.Decode(before)
	if err != nil {
		return false
	}
	_, is, err := s.codec.Decode(now)
	return err == nil && reflect.DeepEqual(was, is)
}
