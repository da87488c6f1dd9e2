package console

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/lab/bench/stack"
)

// perBatch is the number of recipients of a batch. Their ids are spread out, as in a drop that
// every fifth user has reserved.
const (
	perBatch = 1000
	apart    = 5
)

// shares are the numbers of recipients of a batch with an exception: each in all, and how many
// of these by outcome. Of twenty exceptions, eight are skipped, eight expired, one dead and
// three recovered.
type shares struct{ each, skipped, expired, dead int }

func sharesOf(n size) shares {
	each := n.exceptions / max(n.batches, 1)
	return shares{each, each * 8 / 20, each * 8 / 20, each / 20}
}

// unsent is the number of recipients that the message did not reach.
func (s shares) unsent() int { return s.skipped + s.expired + s.dead }

// batches writes the batches of the drops' slots and of the newest campaigns, and each batch's
// share of exceptions.
func batches(ctx context.Context, s *stack.Stack, n size) error {
	share, now := sharesOf(n), time.Now().UTC()
	columns := []string{"kind", "owner_id", "template_id", "channel", "from_user", "to_user", "state", "due_at", "worthless_after", "due", "sent",
		"due_count", "sent_count", "skipped_count", "expired_count", "dead_count", "runs", "started_at", "finished_at"}
	owners, written := drops*12, min(letters, n.campaigns)*10
	_, err := s.SQL.CopyFrom(ctx, pgx.Identifier{"batches"}, columns, pgx.CopyFromSlice(n.batches+written, func(i int) ([]any, error) {
		kind, owner, template, channel, part := "reminder", i%owners+1, i%owners/12+1, i/owners%2, i/owners/2
		if i >= n.batches {
			k := i - n.batches
			owner = n.campaigns - k/10
			kind, template, channel, part = "campaign", 0, owner%2, k%10
		}
		from := int64(part)*perBatch*apart + 1
		due, sent, err := bitmaps(uint64(from), share)
		at := now.Add(-time.Duration(i) * time.Minute)
		return []any{kind, owner, template, channel, from, from + (perBatch-1)*apart, "done", at, at.Add(time.Hour), due, sent,
			perBatch, perBatch - share.unsent(), share.skipped, share.expired, share.dead, 1, at, at}, err
	}))
	if err != nil {
		return err
	}
	return run(ctx, s, step{`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts)
		select b.id, b.from_user + k * $2, b.channel, o.outcome, case o.outcome when 'skipped' then 'opted_out' when 'expired' then 'deadline' else 'provider_error' end,
			'HTTP 503 at attempt ' || k, 'HTTP 503 of kind ' || b.id % 40, 3
		from batches b, generate_series(0, $1::int - 1) k, lateral (select case when k < $3 then 'skipped' when k < $4 then 'expired' when k < $5 then 'dead' else 'recovered' end as outcome) o`,
		[]any{share.each, apart, share.skipped, share.skipped + share.expired, share.unsent()}})
}

// bitmaps returns the users due in a batch that begins at from, and the users that were sent to.
func bitmaps(from uint64, share shares) (due, sent []byte, err error) {
	all, reached := roaring64.New(), roaring64.New()
	for k := range perBatch {
		id := from + uint64(k*apart)
		if all.Add(id); k >= share.unsent() {
			reached.Add(id)
		}
	}
	if due, err = all.ToBytes(); err == nil {
		sent, err = reached.ToBytes()
	}
	return due, sent, err
}
