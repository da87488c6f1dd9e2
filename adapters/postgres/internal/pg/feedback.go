package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
	"dropbell/domain/user"
)

// FeedbackStray says of a row f of batch_feedback and its batch b that some of what was
// reported may be about messages that are not recorded as sent. Where it is false, the
// row's counts are of sent messages only, since all messages are.
const FeedbackStray = `(b.sent_count < b.due_count and f.delivered_count + f.bounced_count > 0)`

// CountReported adds what was reported of a batch's sent messages to sum: the sets of
// those delivered, bounced, complained of and bounced for a reason that may pass. It is the one rule of all such figures: a
// report about a message that is not recorded as sent counts for none of them.
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

// StrayFeedback returns what was reported of the sent messages of those of the batches that
// are [FeedbackStray], by batch.
func StrayFeedback(ctx context.Context, q Querier, batches []int64) (map[int64]feedback.Tally, error) {
	rows, err := q.Query(ctx, `select b.id, b.sent, f.delivered, f.bounced, f.complained, f.soft from batch_feedback f join batches b on b.id = f.batch_id
		where f.batch_id = any($1) and `+FeedbackStray, batches)
	if err != nil {
		return nil, Translate(err)
	}
	all := map[int64]feedback.Tally{}
	var id int64
	var sets [5][]byte
	_, err = pgx.ForEachRow(rows, []any{&id, &sets[0], &sets[1], &sets[2], &sets[3], &sets[4]}, func() error {
		var t feedback.Tally
		err := countSets(&t, sets)
		all[id] = t
		return err
	})
	return all, Translate(err)
}

// countSets is [CountReported] with the set of those sent in front.
func countSets(sum *feedback.Tally, sets [5][]byte) error {
	sent, err := DecodeSet(sets[0])
	if err != nil {
		return err
	}
	return CountReported(sum, sent, [4][]byte(sets[1:]))
}

// talliesSQL returns what was reported by owner and channel, of batches that are kept, and of
// those that are past their retention: sums, and the sets of each batch whose counts are not
// of sent messages only.
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

// Tallies returns what was reported of the messages of these owners, by owner and
// channel. Where nothing was, there is no element. Where the sets of many batches have to be
// read for it, the answer may be [talliesLife] old: live pages ask every second.
func Tallies(ctx context.Context, db *DB, kind delivery.Kind, owners []int64) ([]delivery.FeedbackSum, error) {
	return TalliesIn(ctx, db, db.Pool, kind, owners)
}

// TalliesIn is [Tallies] as q sees them.
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

// readTallies also returns of how many batches the sets were read.
func readTallies(ctx context.Context, q Querier, kind delivery.Kind, owners []int64) (kept []delivery.FeedbackSum, decoded int, err error) {
	rows, err := q.Query(ctx, talliesSQL, kind, owners)
	if err != nil {
		return nil, 0, Translate(err)
	}
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

// ReportedOf returns what was reported of the message to the user: the sets are those
// delivered, bounced, complained of and bounced for a reason that may pass.
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

// DecodeReported reads the sets of those delivered, bounced, complained of and bounced for
// a reason that may pass; empty ones where there is no row.
func DecodeReported(sets [4][]byte) (r Reported, err error) {
	for i, to := range []**roaring64.Bitmap{&r.Delivered, &r.Bounced, &r.Complained, &r.Soft} {
		if *to, err = DecodeSet(sets[i]); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Of returns what was reported of the message to the user.
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
