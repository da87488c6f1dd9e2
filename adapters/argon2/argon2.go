// Package argon2 hashes passwords with Argon2id (RFC 9106).
package argon2

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/alexedwards/argon2id"
)

// Hasher hashes passwords, only a few at a time: each hash takes 64 MiB, and many sign-ins at
// once must not take all memory.
type Hasher struct {
	params *argon2id.Params
	turns  chan struct{}
	nobody string
	tidy   *time.Timer
}

// tidyAfter is how long after the last password its memory is returned to the system. Without
// this the return takes minutes, because an idle program collects no garbage. An immediate
// return would happen too often while many people sign in.
const tidyAfter = 3 * time.Second

// Memory is how much memory one hash takes, in KiB. Memory and the single pass follow the first
// choice of RFC 9106, scaled down to the memory of a small server.
const Memory = 64 * 1024

// New returns a hasher that works on at most concurrent passwords at once.
func New(concurrent int) *Hasher { return newHasher(concurrent, Memory) }

func newHasher(concurrent int, memory uint32) *Hasher {
	p := &argon2id.Params{Memory: memory, Iterations: 2, Parallelism: 2, SaltLength: 16, KeyLength: 32}
	zero := func(n uint32) string { return base64.RawStdEncoding.EncodeToString(make([]byte, n)) }
	nobody := fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", p.Memory, p.Iterations, p.Parallelism, zero(p.SaltLength), zero(p.KeyLength))
	h := &Hasher{params: p, turns: make(chan struct{}, max(1, concurrent)), nobody: nobody}
	h.tidy = time.AfterFunc(tidyAfter, debug.FreeOSMemory)
	h.tidy.Stop()
	return h
}

// Hash returns the hash of password for storing.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if err := h.wait(ctx); err != nil {
		return "", err
	}
	defer h.done()
	return argon2id.CreateHash(password, h.params)
}

// Matches reports whether hash was made from password. For an empty hash it does the same work
// and returns false, so that its duration does not reveal whether an account exists.
func (h *Hasher) Matches(ctx context.Context, password, hash string) (bool, error) {
	if err := h.wait(ctx); err != nil {
		return false, err
	}
	defer h.done()
	if hash == "" {
		_, err := argon2id.ComparePasswordAndHash(password, h.nobody)
		return false, err
	}
	return argon2id.ComparePasswordAndHash(password, hash)
}

func (h *Hasher) wait(ctx context.Context) error {
	select {
	case h.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hasher) done() {
	<-h.turns
	h.tidy.Reset(tidyAfter)
}
