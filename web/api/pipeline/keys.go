package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"dropbell/adapters/postgres"
	"dropbell/domain/staff"
	"dropbell/web/middleware"
)

// keyring caches service keys for keyLife, so that a busy service does not cost a query per
// request. Revoking a key takes effect within keyLife.
//
// Invalid secrets cost few queries: each client address has a budget of look-ups that find nothing,
// and an invalid secret is cached too. A key found recently is looked up again even if its address
// has used up the budget, so that guesses from the same address do not lock out the key.
type keyring struct {
	store Keys
	now   func() time.Time
	log   *slog.Logger
	known *otter.Cache[string, knownKey]
	// unknown caches hashes that belong to no key. It is separate from known, so that guesses do
	// not evict keys.
	unknown *otter.Cache[string, struct{}]
	tries   *middleware.Limiter
	reading singleflight.Group
}

// knownKey is a key as it was read at an instant.
type knownKey struct {
	*staff.Key
	at time.Time
}

const (
	keyLife = 5 * time.Second
	// keyMemory is how long after its last reading a key needs no budget.
	keyMemory = time.Hour
	// touchEvery is how exact "last used" is.
	touchEvery = time.Minute
	// triesPerMinute bounds look-ups that find nothing, per client address.
	triesPerMinute = 20
	maxKnownKeys   = 1000
	maxUnknownKeys = 10_000
	// keyPatience ends a look-up that several requests may wait for.
	keyPatience = 5 * time.Second
)

func newKeyring(store Keys, now func() time.Time, log *slog.Logger) *keyring {
	return &keyring{store: store, now: now, log: log, tries: middleware.NewLimiter(triesPerMinute),
		known: otter.Must(&otter.Options[string, knownKey]{MaximumSize: maxKnownKeys,
			ExpiryCalculator: otter.ExpiryWriting[string, knownKey](keyMemory)}),
		unknown: otter.Must(&otter.Options[string, struct{}]{MaximumSize: maxUnknownKeys,
			ExpiryCalculator: otter.ExpiryWriting[string, struct{}](keyLife)})}
}

// key returns the usable key with this secret, [staff.ErrUnauthenticated], or
// ErrRateLimited if the client must wait before another secret is looked up.
func (k *keyring) key(ctx context.Context, secret string, from netip.Addr) (*staff.Key, error) {
	if len(secret) > 256 || !strings.HasPrefix(secret, staff.KeyPrefix) {
		return nil, invalid("this is not an API key; send one as it was shown when it was created")
	}
	hash := string(staff.HashSecret(secret))
	known, seen := k.known.GetIfPresent(hash)
	if !seen || time.Since(known.at) >= keyLife {
		read, err := k.read(postgres.LimitCalls(ctx, defaultRequestTimeout), hash, seen, from)
		if err != nil {
			return nil, err
		}
		known = read
	}
	if !known.Usable(k.now()) {
		return nil, invalid("the API key has expired or was revoked; use another one")
	}
	return known.Key, nil
}

// revoked reports whether the key with this secret, which was usable before, is no longer usable.
// If the store does not answer, revoked reports false.
func (k *keyring) revoked(secret string) bool {
	_, err := k.key(context.Background(), secret, netip.Addr{})
	return errors.Is(err, staff.ErrUnauthenticated)
}

// read looks a key up, once for all requests that wait for it.
func (k *keyring) read(ctx context.Context, hash string, seen bool, from netip.Addr) (knownKey, error) {
	if _, ok := k.unknown.GetIfPresent(hash); ok && !seen {
		return knownKey{}, errNoKey
	}
	found, err, _ := k.reading.Do(hash, func() (any, error) {
		if known, ok := k.known.GetIfPresent(hash); ok && time.Since(known.at) < keyLife {
			return known, nil // another request has just read it
		}
		address := middleware.AddressKey('k', from)
		if !seen {
			if d := k.tries.Allow(address, k.now()); !d.Allowed {
				return nil, RetryLater(ErrRateLimited.Because("too many attempts with invalid credentials"), d.RetryAfter)
			}
		}
		known, err := k.lookUp(ctx, hash)
		if !seen && !errors.Is(err, errNoKey) {
			k.tries.Return(address, k.now())
		}
		return known, err
	})
	if err != nil {
		return knownKey{}, err
	}
	return found.(knownKey), nil
}

// errNoKey is the answer to a secret that belongs to no key.
var errNoKey = invalid("there is no such API key")

// lookUp queries the store, and caches the answer.
func (k *keyring) lookUp(ctx context.Context, hash string) (knownKey, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyPatience)
	defer cancel()
	found, err := k.store.Key(ctx, []byte(hash))
	if notFound(err) {
		k.known.Invalidate(hash)
		k.unknown.Set(hash, struct{}{})
		return knownKey{}, errNoKey
	}
	if err != nil {
		return knownKey{}, err
	}
	known := knownKey{&found, time.Now()}
	k.known.Set(hash, known)
	if found.Usable(k.now()) {
		k.touch(ctx, &found)
	}
	return known, nil
}

// touch is not worth failing a request for.
func (k *keyring) touch(ctx context.Context, key *staff.Key) {
	if key.LastUsedAt != nil && k.now().Sub(*key.LastUsedAt) < touchEvery {
		return
	}
	if err := k.store.TouchKey(ctx, key.ID); err != nil {
		k.log.WarnContext(ctx, "cannot record the use of a key", "key", key.ID, "err", err)
	}
}
