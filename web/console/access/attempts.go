package access

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// throttled counts a sign-in attempt: for the client's network, for the account in that network,
// and for the account in all networks. The limit for all networks is far wider, so that using it up
// takes many networks. Even then the account stays open for addresses from which its owner has
// recently signed in. A text too long for an e-mail address counts for the network only.
func (h *handlers) throttled(r *http.Request, email string) (held tokens, wait time.Duration, err error) {
	ctx, here := r.Context(), shell.Network(r)
	wait, err = held.take(ctx, h.Throttle, "signin:ip:"+here)
	if err != nil || wait > 0 || len(email) > staff.MaxEmail {
		return held, wait, err
	}
	account := staff.NormalEmail(email)
	if wait, err = held.take(ctx, h.Guesses, "signin:here:"+here+":"+account); err != nil || wait > 0 {
		return held, wait, err
	}
	if wait, err = held.take(ctx, h.AllGuesses, "signin:email:"+account); err != nil || wait == 0 {
		return held, 0, err
	}
	known, err := h.Staff.CameFrom(ctx, email)
	if err != nil || slices.ContainsFunc(known, func(ip string) bool { return shell.NetworkOf(ip) == here }) {
		return held, 0, err
	}
	// A refused attempt must not use up the account's other limits.
	return nil, wait, held[1:].giveBack(ctx)
}

// tokens are the tokens that an attempt has taken. They are given back after a success: the limits
// are for guesses, and colleagues behind one address do not guess.
type tokens []token

type token struct {
	from staff.Throttle
	key  string
}

func (c *tokens) take(ctx context.Context, from staff.Throttle, key string) (time.Duration, error) {
	wait, err := from.Allow(ctx, key)
	if err == nil && wait == 0 {
		*c = append(*c, token{from, key})
	}
	return wait, err
}

func (c tokens) giveBack(ctx context.Context) error {
	for _, t := range c {
		if err := t.from.Return(ctx, t.key); err != nil {
			return err
		}
	}
	return nil
}

// The recording of throttled attempts: once per account and hour, and by at most so many goroutines
// at a time.
const (
	throttledEvery   = time.Hour
	throttledAtATime = 4
)

// throttledNotes are the records about attempts that are being made.
type throttledNotes struct {
	sync.WaitGroup
	once  *shell.Throttle
	turns chan struct{}
}

// noteSlowed records that attempts for the account are throttled. It does so after the answer, so
// that the answer's time does not reveal whether the account exists.
func (h *handlers) noteSlowed(r *http.Request, email string) {
	if len(email) > staff.MaxEmail {
		return
	}
	select {
	case h.slowed.turns <- struct{}{}:
	default: // during such an attack one record more contains nothing new
		return
	}
	ctx := context.WithoutCancel(r.Context())
	h.slowed.Go(func() {
		defer func() { <-h.slowed.turns }()
		if wait, err := h.slowed.once.Allow(ctx, staff.NormalEmail(email)); err != nil || wait > 0 {
			return
		}
		if err := h.Staff.NoteSlowed(ctx, email); err != nil {
			h.Log.WarnContext(ctx, "slowed sign-ins are not recorded", "err", err)
		}
	})
}
