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

// NewOptOuts keeps users once so many ids were looked up.
func NewOptOuts(db *pg.DB, few int64) OptOuts {
	o := newOptOuts(db)
	o.few = few
	return OptOuts{o}
}

// Among returns those of ids who have opted out of the channel.
func (o OptOuts) Among(ctx context.Context, c delivery.Channel, ids ...user.ID) (map[user.ID]bool, error) {
	return o.among(ctx, c, slices.Clone(ids))
}

// Kept is nil while no users of the channel are kept, and others each time they are read.
func (o OptOuts) Kept(c delivery.Channel) any {
	if kept := o.channels[c].kept.Load(); kept != nil {
		return kept
	}
	return nil
}

// Age makes those kept older.
func (o OptOuts) Age(c delivery.Channel, by time.Duration) {
	kept := *o.channels[c].kept.Load()
	kept.since.at = kept.since.at.Add(-by)
	o.channels[c].kept.Store(&kept)
}
