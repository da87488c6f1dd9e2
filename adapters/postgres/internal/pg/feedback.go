package pg

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
	"dropbell/domain/user"
)

// FeedbackWithinSent are the columns delivered, bounced and complained of a row f of
// batch_feedback, as parts of what its batch b has sent; see feedback.Tally.Within.
const FeedbackWithinSent = `least(f.delivered_count, b.sent_count) as delivered,
    least(f.bounced_count, b.sent_count - least(f.delivered_count, b.sent_count)) as bounced,
    least(f.complained_count, f.delivered_count, b.sent_count) as complained`

// CountReported adds what was reported of a batch's sent messages to sum: the sets of
// those delivered, bounced and complained of.
func CountReported(sum *feedback.Tally, sent *roaring64.Bitmap, sets [3][]byte) error {
	for i, n := range []*int64{&sum.Delivered, &sum.Bounced, &sum.Complained} {
		set, err := DecodeSet(sets[i])
		if err != nil {
			return err
		}
		*n += int64(sent.AndCardinality(set))
	}
	return nil
}

// talliesSQL sums what was reported by owner and channel: of batches that are kept,
// and of those that are past their retention. Of a batch no more counts than it has
// sent: see [feedback.Tally.Within].
const talliesSQL = `
select kind, owner_id, channel, sum(delivered)::bigint, sum(bounced)::bigint, sum(complained)::bigint from (
    select f.kind, f.owner_id, f.channel, ` + FeedbackWithinSent + `
    from batch_feedback f join batches b on b.id = f.batch_id where f.kind = $1 and f.owner_id = any($2)
    union all
    select f.kind, f.owner_id, f.channel, delivered, bounced, complained from feedback_totals f where f.kind = $1 and f.owner_id = any($2)
) parts group by 1, 2, 3 order by 1, 2, 3`

// Tallies returns what was reported of the messages of these owners, by owner and
// channel. Where nothing was, there is no element.
func Tallies(ctx context.Context, db *DB, kind delivery.Kind, owners []int64) ([]delivery.FeedbackSum, error) {
	return TalliesIn(ctx, db.Pool, kind, owners)
}

// TalliesIn is [Tallies] as q sees them.
func TalliesIn(ctx context.Context, q Querier, kind delivery.Kind, owners []int64) ([]delivery.FeedbackSum, error) {
	rows, err := q.Query(ctx, talliesSQL, kind, owners)
	if err != nil {
		return nil, Translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s delivery.FeedbackSum, err error) {
		return s, row.Scan(&s.Kind, &s.OwnerID, &s.Channel, &s.Delivered, &s.Bounced, &s.Complained)
	})
	kept := list[:0]
	for _, s := range list {
		if s.Any() {
			kept = append(kept, s)
		}
	}
	return kept, Translate(err)
}

// ReportedOf returns what was reported of the message to the user: the sets are those
// delivered, bounced, complained of and not yet delivered.
func ReportedOf(id user.ID, sets [4][]byte) (feedback.Status, error) {
	for _, s := range []struct {
		set    []byte
		status feedback.Status
	}{{sets[2], feedback.Complained}, {sets[1], feedback.Bounced}, {sets[0], feedback.Delivered}, {sets[3], feedback.SoftBounced}} {
		if holds, err := SetHolds(s.set, id); err != nil || holds {
			return s.status, err
		}
	}
	return "", nil
}

// Reported are the sets of a row of batch_feedback, read once for many users.
type Reported struct{ delivered, bounced, complained, soft *roaring64.Bitmap }

// DecodeReported reads the sets of those delivered, bounced, complained of and not yet
// delivered; empty ones where there is no row.
func DecodeReported(sets [4][]byte) (r Reported, err error) {
	for i, to := range []**roaring64.Bitmap{&r.delivered, &r.bounced, &r.complained, &r.soft} {
		if *to, err = DecodeSet(sets[i]); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Of returns what was reported of the message to the user.
func (r Reported) Of(id user.ID) feedback.Status {
	switch n := uint64(id); {
	case r.complained.Contains(n):
		return feedback.Complained
	case r.bounced.Contains(n):
		return feedback.Bounced
	case r.delivered.Contains(n):
		return feedback.Delivered
	case r.soft.Contains(n):
		return feedback.SoftBounced
	}
	return ""
}
