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

// Firsts decides the group by what the gate remembers, if it does.
func Firsts(ctx context.Context, s *Claims, group []claim.Request) ([]claim.Verdict, error) {
	return s.decideFast(ctx, group)
}

// Remembers reports whether the gate would decide claims by what it remembers.
func Remembers(s *Claims, templateID int64) bool { return s.last.knows(templateID) }

// Age makes what the gate remembers older.
func Age(s *Claims, by time.Duration) {
	s.last.mu.Lock()
	defer s.last.mu.Unlock()
	s.last.read = s.last.read.Add(-by)
	for id, t := range s.last.terms {
		t.read = t.read.Add(-by)
		s.last.terms[id] = t
	}
}
