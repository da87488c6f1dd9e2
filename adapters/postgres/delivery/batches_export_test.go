package delivery

import (
	"time"

	"dropbell/adapters/postgres/internal/pg"
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
