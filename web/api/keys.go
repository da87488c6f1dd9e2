package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/maypok86/otter/v2"

	"dropbell/domain/staff"
)

// keyring remembers service keys for a moment, so that a busy service does
// not cost a query per request. Revoking a key takes effect within keyLife.
type keyring struct {
	store Keys
	now   func() time.Time
	log   *slog.Logger
	known *otter.Cache[string, *staff.Key]
}

const (
	keyLife = 5 * time.Second
	// touchEvery is how exact "last used" is.
	touchEvery = time.Minute
)

func newKeyring(store Keys, now func() time.Time, log *slog.Logger) *keyring {
	return &keyring{store, now, log, otter.Must(&otter.Options[string, *staff.Key]{
		MaximumSize:      1000,
		ExpiryCalculator: otter.ExpiryWriting[string, *staff.Key](keyLife),
	})}
}

// key returns the usable key with this secret or [staff.ErrUnauthenticated].
func (k *keyring) key(ctx context.Context, secret string) (*staff.Key, error) {
	if len(secret) > 256 {
		return nil, invalid("this is not an API key")
	}
	hash := string(staff.HashSecret(secret))
	key, ok := k.known.GetIfPresent(hash)
	if !ok {
		found, err := k.store.Key(ctx, []byte(hash))
		if notFound(err) {
			// Not remembered: whoever guesses could push the real ones out.
			return nil, invalid("there is no such API key")
		}
		if err != nil {
			return nil, err
		}
		key = &found
		k.known.Set(hash, key)
	}
	if !key.Usable(k.now()) {
		return nil, invalid("the API key has expired or was revoked")
	}
	if !ok {
		k.touch(ctx, key)
	}
	return key, nil
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
