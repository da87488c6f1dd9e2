package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
)

// FeedbackStray is a condition on a row f of batch_feedback and its batch b: some of the
// reports may be about messages that are not recorded as sent. Where FeedbackStray is false,
// all messages of the batch are recorded as sent, so the row's counts are exact.
const FeedbackStray = `(b.sent_count < b.due_count and f.delivered_count + f.bounced_count > 0)`

// CountReported adds the reports about a batch's sent messages to sum. sets are the recipients
// with a report: delivered, bounced, complained, and soft-bounced. Reports about messages that
// are not recorded as sent are not counted. Every figure about feedback follows this rule.
func CountReported(sum *feedback.Tally, sent *roaring64.Bitmap, sets [4][]byte) error {
	for i, n := range []*int64{&sum.Delivered, &sum.Bounced, &sum.Complained, &sum.Bounced} {
		set, err := DecodeSet(sets[i])
		if err != nil {
			return err
		}
		*n += int64(sent.AndCardinality(set))
	}
	return nil
}

// StrayFeedback returns, by batch, the counts of reports about sent messages. It covers only
// the batches that are [FeedbackStray].
func StrayFeedback(ctx context.Context, q Querier, batches []int64) (map[int64]feedback.Tally, error) {
	rows := Rows(ctx, q, `select b.id, b.sent, f.delivered, f.bounced, f.complained, f.soft from batch_feedback f join batches b on b.id = f.batch_id
		where f.batch_id = any($1) and `+FeedbackStray, batches)
	all := map[int64]feedback.Tally{}
	var id int64
	var sets [5][]byte
	_, err := pgx.ForEachRow(rows, []any{&id, &sets[0], &sets[1], &sets[2], &sets[3], &sets[4]}, func() error {
		var t feedback.Tally
		err := countSets(&t, sets)
		all[id] = t
		return err
	})
	return all, Translate(err)
}

// countSets is [CountReported]; the set of sent messages comes first in sets.
func countSets(sum *feedback.Tally, sets [5][]byte) error {
	sent, err := DecodeSet(sets[0])
	if err != nil {
		return err
	}
	return CountReported(sum, sent, [4][]byte(sets[1:]))
}

// talliesSQL returns the counts of reports by owner and channel. Batches past their retention
// count by their stored totals. A batch that is [FeedbackStray] has a row of its own with its
// sets, because its counts may include messages that were not sent.
const talliesSQL = `
select kind, owner_id, channel, sum(delivered)::bigint, sum(bounced)::bigint, sum(complained)::bigint, null::bytea, null::bytea, null::bytea, null::bytea, null::bytea from (
    select f.kind, f.owner_id, f.channel, f.delivered_count as delivered, f.bounced_count as bounced, f.complained_count as complained
    from batch_feedback f join batches b on b.id = f.batch_id where f.kind = $1 and f.owner_id = any($2) and not ` + FeedbackStray + `
    union all
    select f.kind, f.owner_id, f.channel, delivered, bounced, complained from feedback_totals f where f.kind = $1 and f.owner_id = any($2)
) parts group by 1, 2, 3
union all
select f.kind, f.owner_id, f.channel, 0, 0, 0, b.sent, f.delivered, f.bounced, f.complained, f.soft
from batch_feedback f join batches b on b.id = f.batch_id where f.kind = $1 and f.owner_id = any($2) and ` + FeedbackStray + `
order by 1, 2, 3`

// Tallies returns the counts of reports about messages of these owners, by owner and channel.
// An owner and channel without reports has no element. If the sets of many batches have to be
// read, the answer may be up to [talliesLife] old, since live pages ask every second.
func Tallies(ctx context.Context, db *DB, kind delivery.Kind, owners []int64) ([]delivery.FeedbackSum, error) {
	return TalliesIn(ctx, db, db.Pool, kind, owners)
}

// TalliesIn is [Tallies] read through q.
func TalliesIn(ctx context.Context, db *DB, q Querier, kind delivery.Kind, owners []int64) ([]delivery.FeedbackSum, error) {
	key := fmt.Sprint(kind, owners)
	if list, ok := db.tallies.get(key, time.Now()); ok {
		return list, nil
	}
	list, decoded, err := readTallies(ctx, q, kind, owners)
	if err == nil && decoded > talliesDecoded {
		db.tallies.keep(key, list, time.Now())
	}
	return list, err
}

// readTallies also returns the number of batches whose sets were decoded.
func readTallies(ctx context.Context, q Querier, kind delivery.Kind, owners []int64) (kept []delivery.FeedbackSum, decoded int, err error) {
	rows := Rows(ctx, q, talliesSQL, kind, owners)
	var list []delivery.FeedbackSum
	var s delivery.FeedbackSum
	var sets [5][]byte
	_, err = pgx.ForEachRow(rows, []any{&s.Kind, &s.OwnerID, &s.Channel, &s.Delivered, &s.Bounced, &s.Complained, &sets[0], &sets[1], &sets[2], &sets[3], &sets[4]}, func() error {
		if sets[1] != nil || sets[2] != nil || sets[3] != nil || sets[4] != nil {
			decoded++
		}
		if err := countSets(&s.Tally, sets); err != nil {
			return err
		}
		if last := len(list) - 1; last >= 0 && list[last].Kind == s.Kind && list[last].OwnerID == s.OwnerID && list[last].Channel == s.Channel {
			list[last].Tally = list[last].Plus(s.Tally)
		} else {
			list = append(list, s)
		}
		return nil
	})
	for _, s := range list {
		if s.Any() {
			kept = append(kept, s)
		}
	}
	return kept, decoded, Translate(err)
}

// ReportedOf returns the reported status of the message to the user. sets are the recipients
// with a report: delivered, bounced, complained, and soft-bounced.
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
type Reported struct{ Delivered, Bounced, Complained, Soft *roaring64.Bitmap }

// DecodeReported decodes the sets of recipients with a report: delivered, bounced, complained,
// and soft-bounced. Sets are empty if the batch has no row.
func DecodeReported(sets [4][]byte) (r Reported, err error) {
	for i, to := range []**roaring64.Bitmap{&r.Delivered, &r.Bounced, &r.Complained, &r.Soft} {
		if *to, err = DecodeSet(sets[i]); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Of returns the reported status of the message to the user.
func (r Reported) Of(id user.ID) feedback.Status {
	switch n := uint64(id); {
	case r.Complained.Contains(n):
		return feedback.Complained
	case r.Bounced.Contains(n):
		return feedback.Bounced
	case r.Delivered.Contains(n):
		return feedback.Delivered
	case r.Soft.Contains(n):
		return feedback.SoftBounced
	}
	return ""
}
