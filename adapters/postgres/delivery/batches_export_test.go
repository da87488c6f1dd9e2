package delivery

import (
	"context"
	"slices"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
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

// OptOuts are those of one worker.
type OptOuts struct{ *optOuts }

// NewOptOuts reads users once so many ids were looked up, and forgets them above most
// changes. The server's history is named by the table histories, as other tests on the
// server make checkpoints.
func NewOptOuts(db *pg.DB, few, most int64) OptOuts {
	o := newOptOuts(db)
	o.few, o.most, o.slow, o.patience, o.history = few, most, time.Minute, time.Minute, `(select name from histories)`
	return OptOuts{o}
}

// Among returns those of ids who have opted out of the channel, at once.
func (o OptOuts) Among(ctx context.Context, c delivery.Channel, ids ...user.ID) (map[user.ID]bool, error) {
	return o.among(ctx, c, slices.Clone(ids))
}

// Settled waits until no users are being read.
func (o OptOuts) Settled() { o.reading.Wait() }

// Close ends what reads users.
func (o OptOuts) Close() { o.close() }

// Known is nil while no users of the channel are remembered, and another pointer after each reading.
func (o OptOuts) Known(c delivery.Channel) any {
	if known := o.channels[c].known.Load(); known != nil {
		return known
	}
	return nil
}

// Age sets back when the remembered users were read.
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
