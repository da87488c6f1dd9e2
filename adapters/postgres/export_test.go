package postgres

import (
	"context"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
)

// ExplainCheckpoint is how one batch's checkpoint is found and written, and
// its arguments.
func ExplainCheckpoint(batch int64, token string) (sql string, args []any) {
	args, _ = checkpointArguments([]checkpoint{{batch: batch, token: token, lasting: time.Minute}})
	return `explain ` + checkpointSQL + checkpointAnswers, args
}

// Planned are the statements that are planned once, as to be prepared, and what
// makes the plan.
func Planned() (settings, leaseStatement, checkpointStatement string) {
	return pg.IndexesOnly, leaseSQL, checkpointSQL + checkpointAnswers
}

// Firsts decides the group by what the gate remembers, if it does.
func Firsts(ctx context.Context, s *Claims, group []claim.Request) ([]claim.Verdict, error) {
	return s.decideFirsts(ctx, group)
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
