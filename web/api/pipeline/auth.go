package pipeline

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

// Access says which callers may use an operation.
type Access int

const (
	// ForUsers takes a user's token, or a service key that names the user.
	ForUsers Access = iota
	// ForAnybody accepts requests without credentials; credentials, if sent, must
	// be valid.
	ForAnybody
	// ForStaff takes service keys that have a role.
	ForStaff
	// ForPayment accepts the payment service's keys. A key that may act as users may name the owner
	// of the coupon.
	ForPayment
	// ForOwners accepts the callers of ForUsers, and payment's keys without X-User-ID.
	ForOwners
)

// Caller is the user, staff member or service that makes a request.
type Caller struct {
	// User is the user the request is about; 0 for staff and anonymous calls.
	User user.ID
	// Key is the service key used, nil for a user's own token.
	Key *staff.Key
	// Attested says that the token carries an attestation of the shop about the device.
	Attested bool
	// Until is when the credentials end; zero = never.
	Until time.Time
	// withdrawn reports whether the credential has ended early: the key that signed the token is no
	// longer published, or the service key was revoked. nil = the credential cannot end early.
	withdrawn func() bool
}

func (c *Caller) IsWithdrawn() bool { return c.withdrawn != nil && c.withdrawn() }

func (c *Caller) kind() string {
	switch {
	case c.Key != nil:
		return c.Key.Actor().Label
	case c.User != 0:
		return "user"
	}
	return "anonymous"
}

// scope separates one caller's idempotency keys from another's.
func (c *Caller) scope() string {
	label := "user:" + c.User.String()
	if c.Key != nil {
		label = c.Key.Actor().Label + "/" + label
	}
	return label
}

// UserOf returns the user the request is about.
func UserOf(ctx context.Context) user.ID { return CallerOf(ctx).User }

// ActorOf returns the member or service that makes a staff request.
func ActorOf(ctx context.Context) staff.Actor {
	if c := CallerOf(ctx); c.Key != nil {
		return c.Key.Actor()
	}
	return staff.Actor{}
}

// CallerOf returns the caller of the request. Outside the pipeline it is the zero caller, which may
// do nothing.
func CallerOf(ctx context.Context) *Caller {
	if q := middleware.From(ctx); q != nil {
		if c, ok := q.Principal.(*Caller); ok {
			return c
		}
	}
	return &Caller{}
}

// authenticate identifies the caller and checks that the caller may use an operation of this
// access. A refusal is returned together with the caller if the caller was identified.
func (pl *Pipeline) authenticate(r *http.Request, needed Access) (*Caller, error) {
	header := r.Header.Get("Authorization")
	if header == "" && needed == ForAnybody {
		return &Caller{}, nil
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

// looksLikeToken distinguishes a JWT, three parts between dots, from a service
// key.
func looksLikeToken(s string) bool {
	return strings.Count(s, ".") == 2 && !strings.HasPrefix(s, staff.KeyPrefix)
}

func (pl *Pipeline) byToken(r *http.Request, token string, needed Access) (*Caller, error) {
	if pl.deps.Tokens == nil {
		return nil, staff.ErrUnauthenticated.Because("this server takes no user tokens; use a service key, or set AUTH_JWT_SECRET or AUTH_JWKS_URL")
	}
	c, err := pl.deps.Tokens.caller(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if needed == ForStaff || needed == ForPayment {
		return c, staff.ErrForbidden.Because("this is for service keys; user tokens are not accepted here")
	}
	if named := r.Header.Get(userHeader); named != "" && named != c.User.String() {
		return c, staff.ErrForbidden.Because("the token belongs to another user than X-User-ID names; leave X-User-ID out")
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

func (pl *Pipeline) byKey(r *http.Request, secret string, needed Access) (*Caller, error) {
	if staff.IsTestSecret(secret) != pl.deps.Rehearsed {
		return nil, invalid("this key reaches only rehearsals; use another one")
	}
	key, err := pl.keys.key(r.Context(), secret, clientOf(r))
	if err != nil {
		return nil, err
	}
	c := &Caller{Key: key, withdrawn: func() bool { return pl.keys.revoked(secret) }}
	if key.ExpiresAt != nil {
		c.Until = *key.ExpiresAt
	}
	switch needed {
	case ForAnybody:
		return c, nil
	case ForStaff:
		if !key.Has(staff.ScopeAdmin) && !key.Has(staff.ScopeRead) {
			return c, staff.ErrForbidden.Because("this needs a key with the scope admin or, for reading, read")
		}
		return c, nil
	case ForPayment:
		if !key.Has(staff.ScopePayment) {
			return c, staff.ErrForbidden.Because("this needs a key with the scope payment")
		}
	}
	named := r.Header.Get(userHeader)
	if named == "" && (needed == ForPayment || needed == ForOwners && key.Has(staff.ScopePayment)) {
		return c, nil
	}
	if named == "" {
		return nil, staff.ErrUnauthenticated.Because("name the user in X-User-ID; the key must have the scope act-as-user")
	}
	if !key.Has(staff.ScopeActAsUser) {
		return c, staff.ErrForbidden.Because("naming a user in X-User-ID needs a key with the scope act-as-user")
	}
	if c.User, err = user.ParseID(named); err != nil {
		return nil, Refused("header.X-User-ID", idElsewhere)
	}
	return c, nil
}

// permits refuses a change by a read-only key, before any other check of the request. The use cases
// check further rights, such as the key's shops.
func (t Traits) permits(r *http.Request) error {
	if t.Access != ForStaff || t.Reads || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if c := CallerOf(r.Context()); c.Key == nil || !c.Key.Has(staff.ScopeAdmin) {
		return staff.ErrForbidden.Because("this needs a key with the scope admin")
	}
	return nil
}

// countFailure throttles clients that try credentials.
func (pl *Pipeline) countFailure(q *middleware.Request, r *http.Request, err error) error {
	if fault.KindOf(err) != fault.Unauthenticated || r.Header.Get("Authorization") == "" {
		return err
	}
	d := pl.failed.Allow(middleware.AddressKey('f', q.ClientIP(r)), pl.deps.Now())
	if d.Allowed {
		return err
	}
	return RetryLater(ErrRateLimited.Because("too many attempts with invalid credentials"), d.RetryAfter)
}

// RetryLater returns f with the delay until a retry, in its text and in the header Retry-After.
func RetryLater(f *fault.Fault, after time.Duration) error {
	after = max(after, time.Millisecond)
	unit := "seconds"
	if seconds(after) == 1 {
		unit = "second"
	}
	return &fault.RetryAfter{Err: f.Because("%s; wait %d %s", f.Text, seconds(after), unit), After: after}
}

// invalid refuses credentials. why names the defect of the credentials, never the correct value.
func invalid(why string) error { return staff.ErrUnauthenticated.Because("%s", why) }

func notFound(err error) bool { return errors.Is(err, staff.ErrKeyNotFound) }
