package delivery

import (
	"context"
	"slices"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// ExplainCheckpoint returns the statement that finds and writes one batch's checkpoint, with
// its arguments.
func ExplainCheckpoint(batch int64, token string) (sql string, args []any) {
	return `explain ` + checkpointStatements[checkpointParts{}], []any{checkpointArgs([]checkpoint{{batch: batch, token: token, lasting: time.Minute}})}
}

// ExplainTakeBack returns the statement that takes back batches, with its arguments.
func ExplainTakeBack() (sql string, args []any) {
	return `explain ` + takeBackSQL, []any{benefitOfDoubt}
}

// Planned returns the statements with generic plans, with numbered parameters in the order of
// the text, and the settings that produce these plans.
func Planned() (settings, leaseStatement, checkpointStatement string, err error) {
	checkpointStatement, _, err = checkpointArgs(nil).RewriteQuery(context.Background(), nil, checkpointStatements[checkpointParts{}], nil)
	return pg.IndexesOnly, leaseSQL, checkpointStatement, err
}

// OptOuts are the opt-outs of one worker.
type OptOuts struct{ *optOuts }

// NewOptOuts returns opt-outs that read users after few looked-up ids, and forget the users
// after more than most changes. The table histories gives the name of the server's history,
// because other tests on the server make checkpoints.
func NewOptOuts(db *pg.DB, few, most int64) OptOuts {
	o := newOptOuts(db)
	o.few, o.most, o.slow, o.patience, o.history = few, most, time.Minute, time.Minute, `(select name from histories)`
	return OptOuts{o}
}

// Among returns the users among ids who have opted out of the channel.
func (o OptOuts) Among(ctx context.Context, c delivery.Channel, ids ...user.ID) (map[user.ID]bool, error) {
	return o.among(ctx, c, slices.Clone(ids))
}

// Settled waits until no users are being read.
func (o OptOuts) Settled() { o.reading.Wait() }

// Close ends the reading of users.
func (o OptOuts) Close() { o.close() }

// Known returns nil while no users of the channel are remembered, and a different pointer
// after each reading.
func (o OptOuts) Known(c delivery.Channel) any {
	if known := o.channels[c].known.Load(); known != nil {
		return known
	}
	return nil
}

// Age makes the remembered users older.
func (o OptOuts) Age(c delivery.Channel, by time.Duration) {
	known := *o.channels[c].known.Load()
	known.since.at = known.since.at.Add(-by)
	o.channels[c].known.Store(&known)
}

// Slow makes each reading of changes count as slow.
func (o OptOuts) Slow() { o.slow = 0 }

// HistorySQL names the server's history.
const HistorySQL = historySQL

// OptOutsPlanned are the statements by which changes and all users are read.
func OptOutsPlanned() (changed, all string) { return newOptOuts(nil).changedSQL(), allOptOutsSQL }
