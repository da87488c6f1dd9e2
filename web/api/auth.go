package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/middleware"
)

// access is who may call an operation.
type access int

const (
	// forUsers takes a user's token, or a service key that names the user.
	forUsers access = iota
	// forAnybody also takes nobody's request; credentials, if sent, must be valid.
	forAnybody
	// forStaff takes service keys that stand for a role.
	forStaff
	// forPayment takes service keys of the payment service, which may name the
	// owner of the coupon if they may act as users.
	forPayment
	// forOwners takes what forUsers takes, and payment's keys that name no user.
	forOwners
)

// caller is who makes a request.
type caller struct {
	// user is whom the request is about; 0 for staff and anonymous calls.
	user user.ID
	// key is the service key used, nil for a user's own token.
	key *staff.Key
	// until is when the credentials end; zero = never.
	until time.Time
	// withdrawn reports whether the key that signed the token is no longer
	// published, or the service key was revoked; nil = neither can happen.
	withdrawn func() bool
}

func (c *caller) isWithdrawn() bool { return c.withdrawn != nil && c.withdrawn() }

func (c *caller) kind() string {
	switch {
	case c.key != nil:
		return c.key.Actor().Label
	case c.user != 0:
		return "user"
	}
	return "anonymous"
}

// scope separates one caller's idempotency keys from another's.
func (c *caller) scope() string {
	label := "user:" + c.user.String()
	if c.key != nil {
		label = c.key.Actor().Label + "/" + label
	}
	return label
}

// userOf returns whom the request is about.
func userOf(ctx context.Context) user.ID { return callerOf(ctx).user }

// actorOf returns who makes a staff request.
func actorOf(ctx context.Context) staff.Actor {
	if c := callerOf(ctx); c.key != nil {
		return c.key.Actor()
	}
	return staff.Actor{}
}

// callerOf returns the zero caller, who may do nothing, outside the pipeline.
func callerOf(ctx context.Context) *caller {
	if q := middleware.From(ctx); q != nil {
		if c, ok := q.Principal.(*caller); ok {
			return c
		}
	}
	return &caller{}
}

// authenticate finds out who calls and whether an operation is for them. A
// caller who is known is returned with the refusal, too.
func (pl *Pipeline) authenticate(r *http.Request, needed access) (*caller, error) {
	header := r.Header.Get("Authorization")
	if header == "" && needed == forAnybody {
		return &caller{}, nil
	}
	scheme, credential, _ := strings.Cut(header, " ")
	credential = strings.TrimSpace(credential)
	if !strings.EqualFold(scheme, "Bearer") || credential == "" {
		return nil, staff.ErrUnauthenticated.Because("send a token or an API key as Authorization: Bearer …")
	}
	if looksLikeToken(credential) {
		return pl.byToken(r, credential, needed)
	}
	return pl.byKey(r, credential, needed)
}

// looksLikeToken tells a JWT, three parts between dots, from a service key.
func looksLikeToken(s string) bool {
	return strings.Count(s, ".") == 2 && !strings.HasPrefix(s, staff.KeyPrefix)
}

func (pl *Pipeline) byToken(r *http.Request, token string, needed access) (*caller, error) {
	if pl.deps.Tokens == nil {
		return nil, staff.ErrUnauthenticated.Because("this server takes no user tokens")
	}
	c, err := pl.deps.Tokens.caller(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if needed == forStaff || needed == forPayment {
		return c, staff.ErrForbidden.Because("this is for service keys; user tokens are not accepted here")
	}
	if named := r.Header.Get(userHeader); named != "" && named != c.user.String() {
		return c, staff.ErrForbidden.Because("the token belongs to another user than X-User-ID names")
	}
	return c, nil
}

const userHeader = "X-User-Id"

// clientOf returns the client's address, or none outside the pipeline.
func clientOf(r *http.Request) netip.Addr {
	if q := middleware.From(r.Context()); q != nil {
		return q.ClientIP(r)
	}
	return netip.Addr{}
}

func (pl *Pipeline) byKey(r *http.Request, secret string, needed access) (*caller, error) {
	key, err := pl.keys.key(r.Context(), secret, clientOf(r))
	if err != nil {
		return nil, err
	}
	c := &caller{key: key, withdrawn: func() bool { return pl.keys.revoked(secret) }}
	if key.ExpiresAt != nil {
		c.until = *key.ExpiresAt
	}
	switch needed {
	case forAnybody:
		return c, nil
	case forStaff:
		if !key.Has(staff.ScopeAdmin) && !key.Has(staff.ScopeRead) {
			return c, staff.ErrForbidden.Because("this needs a key with the scope admin or, for reading, read")
		}
		return c, nil
	case forPayment:
		if !key.Has(staff.ScopePayment) {
			return c, staff.ErrForbidden.Because("this needs a key with the scope payment")
		}
	}
	named := r.Header.Get(userHeader)
	if named == "" && (needed == forPayment || needed == forOwners && key.Has(staff.ScopePayment)) {
		return c, nil
	}
	if named == "" {
		return nil, staff.ErrUnauthenticated.Because("name the user in X-User-ID; the key must have the scope act-as-user")
	}
	if !key.Has(staff.ScopeActAsUser) {
		return c, staff.ErrForbidden.Because("naming a user in X-User-ID needs a key with the scope act-as-user")
	}
	if c.user, err = user.ParseID(named); err != nil {
		return nil, refused("header.X-User-ID", idElsewhere)
	}
	return c, nil
}

// permits refuses a change by a key that may only read, before anything else
// of the request is looked at. The use cases check the rest, such as shops.
func (t traits) permits(r *http.Request) error {
	if t.access != forStaff || t.reads || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if c := callerOf(r.Context()); c.key == nil || !c.key.Has(staff.ScopeAdmin) {
		return staff.ErrForbidden.Because("this needs a key with the scope admin")
	}
	return nil
}

// countFailure slows down whoever tries credentials out.
func (pl *Pipeline) countFailure(q *middleware.Request, r *http.Request, err error) error {
	if fault.KindOf(err) != fault.Unauthenticated || r.Header.Get("Authorization") == "" {
		return err
	}
	d := pl.failed.Allow(middleware.AddressKey('f', q.ClientIP(r)), pl.deps.Now())
	if d.Allowed {
		return err
	}
	return retryLater(errRateLimited.Because("too many attempts with invalid credentials"), d.RetryAfter)
}

// retryLater returns f with when to come back, in words and for the header
// Retry-After.
func retryLater(f *fault.Fault, after time.Duration) error {
	after = max(after, time.Millisecond)
	unit := "seconds"
	if seconds(after) == 1 {
		unit = "second"
	}
	return &fault.RetryAfter{Err: f.Because("%s; wait %d %s", f.Text, seconds(after), unit), After: after}
}

// invalid refuses credentials; why names what is wrong with them, never what
// would be right.
func invalid(why string) error { return staff.ErrUnauthenticated.Because("%s", why) }

func notFound(err error) bool { return errors.Is(err, staff.ErrKeyNotFound) }
