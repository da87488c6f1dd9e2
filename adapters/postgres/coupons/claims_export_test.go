package coupons

import (
	"context"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
)

// LockWait is how long groups wait for locks.
const LockWait = pg.LockWait

// Patiently returns a context whose groups wait longer for locks.
func Patiently(ctx context.Context) context.Context { return pg.WaitingFor(ctx, time.Minute) }

// Firsts decides the group by lastTerms, if the gate knows the terms.
func Firsts(ctx context.Context, s *Claims, group []claim.Request) ([]claim.Verdict, error) {
	return s.decideFast(ctx, group)
}

// Remembers reports whether the gate would decide claims of the template by
// lastTerms.
func Remembers(s *Claims, templateID int64) bool { return s.last.knows(templateID) }

// Age makes the gate's lastTerms older.
func Age(s *Claims, by time.Duration) {
	s.last.mu.Lock()
	defer s.last.mu.Unlock()
	s.last.read = s.last.read.Add(-by)
	for id, t := range s.last.terms {
		t.read = t.read.Add(-by)
		s.last.terms[id] = t
	}
}
