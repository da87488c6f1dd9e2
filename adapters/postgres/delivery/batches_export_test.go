package delivery

import (
	"context"
	"time"

	"dropbell/adapters/postgres/internal/pg"
)

// ExplainCheckpoint is how one batch's checkpoint is found and written, and
// its arguments.
func ExplainCheckpoint(batch int64, token string) (sql string, args []any) {
	return `explain ` + checkpointStatements[checkpointParts{}], []any{checkpointArgs([]checkpoint{{batch: batch, token: token, lasting: time.Minute}})}
}

// Planned are the statements that are planned once, as to be prepared, with numbered
// parameters in the order of the text, and the settings that make the plan.
func Planned() (settings, leaseStatement, checkpointStatement string, err error) {
	checkpointStatement, _, err = checkpointArgs(nil).RewriteQuery(context.Background(), nil, checkpointStatements[checkpointParts{}], nil)
	return pg.IndexesOnly, leaseSQL, checkpointStatement, err
}
