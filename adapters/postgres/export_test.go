package postgres

import "time"

// ExplainCheckpoint is how one batch's checkpoint is found and written, and
// its arguments.
func ExplainCheckpoint(batch int64, token string) (sql string, args []any) {
	args, _ = checkpointArguments([]checkpoint{{batch: batch, token: token, lasting: time.Minute}})
	return `explain ` + checkpointSQL + checkpointAnswers, args
}

// ExplainRelay is how a relay finds and deletes its events; it takes a limit.
func ExplainRelay() string { return `explain ` + relaySQL }
