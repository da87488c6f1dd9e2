package campaigns

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// recipientLook is how many batches are read for one page of recipients.
const recipientLook = 200

// countedUnder has, by outcome, a condition on batch b that is true if b may contain a user with
// the outcome.
var countedUnder = map[delivery.Outcome]string{
	delivery.Sent:    ` and b.sent_count > 0`,
	delivery.Skipped: ` and b.skipped_count > 0`,
	delivery.Expired: ` and b.expired_count > 0`,
	delivery.Dead:    ` and b.dead_count > 0`,
	delivery.Failed:  ` and b.failed_count > 0`,
	delivery.InFlight: ` and b.due_count > b.sent_count + b.skipped_count + b.expired_count + b.dead_count
		and b.state <> 'done'`,
}

// recipientsSQL reads the batches of campaign $1 on channel $2 that contain users above $3, each
// batch with its exceptions. A lookup in the unique index of ranges finds the first batch.
const recipientsSQL = `
select b.id, b.to_user, b.due, b.sent, coalesce(b.rest_outcome, ''), coalesce(b.rest_reason, ''), ` + pg.SpanColumns + `,
	e.users, e.outcomes, e.reasons, e.details, e.attempts, e.at, e.next, f.delivered, f.bounced, f.complained, f.soft
from (
	select * from batches b where b.kind = 'campaign' and b.owner_id = $1 and b.channel = $2 and b.to_user > $3
		and b.from_user >= coalesce((select max(x.from_user) from batches x where x.kind = 'campaign' and x.owner_id = $1 and x.channel = $2
			and x.from_user <= $3), 0)%s
	order by b.from_user limit $4
) b left join batch_feedback f on f.batch_id = b.id left join lateral (
	select array_agg(user_id order by user_id) as users, array_agg(outcome order by user_id) as outcomes, array_agg(reason order by user_id) as reasons,
		array_agg(detail order by user_id) as details, array_agg(attempts order by user_id) as attempts,
		array_agg(last_at order by user_id) as at, array_agg(next_retry_at order by user_id) as next
	from exceptions x where x.batch_id = b.id and x.user_id > $3
		-- Who is there for another reason than the one looked for is not shown.
		and ($5 = '' or x.reason = $5 or b.rest_reason = $5)
) e on true
order by b.from_user`

// Recipients lists recipients by ascending id; see [campaign.ResultStore]. Batches of ranges
// that were cut a moment ago may not exist yet. The users of these ranges are in flight, and are
// listed once the batches exist.
func (s Campaigns) Recipients(ctx context.Context, c campaign.Campaign, q campaign.RecipientQuery) (page campaign.RecipientPage, err error) {
	s.DB = s.Reports(ctx)
	r := &recipientReader{campaign: c, query: q, limit: max(1, q.Limit)}
	r.page.Next = q.After
	step := r.limit/delivery.BatchSize + 2
	if q.Only != 0 {
		// The first batch that reaches to the user holds it, if any does.
		r.page.Next, step = max(q.After, q.Only-1), 1
	}
	// Most pages are in the first batches; a rare outcome takes more of them.
	for looked := 0; looked < recipientLook && !r.full; step *= 4 {
		step = min(step, recipientLook-looked)
		n, err := s.readRecipients(ctx, r, step)
		if err != nil {
			return page, err
		}
		looked += n
		if n < step || q.Only != 0 {
			r.end = true
			break
		}
	}
	r.page.More = !r.end || r.full
	if err := s.openings(ctx, c.ID, r.page.List); err != nil {
		return r.page, err
	}
	return r.page, s.causes(ctx, r.page.List)
}

// recipientReader collects a page of recipients from batches in order.
type recipientReader struct {
	campaign campaign.Campaign
	query    campaign.RecipientQuery
	limit    int
	page     campaign.RecipientPage
	full     bool // there are users beyond the page
	end      bool // there are no more batches
}

// readRecipients reads at most so many batches and says how many there were.
func (s Campaigns) readRecipients(ctx context.Context, r *recipientReader, batches int) (n int, err error) {
	rows, err := s.Pool.Query(ctx, fmt.Sprintf(recipientsSQL, countedUnder[r.query.Outcome]), r.campaign.ID, r.campaign.Channel, r.page.Next, batches, r.query.Reason)
	if err != nil {
		return 0, pg.Translate(err)
	}
	var b recipientBatch
	fields := slices.Concat([]any{&b.id, &b.to, &b.due, &b.sent, &b.rest, &b.restReason}, b.span.Fields(),
		[]any{&b.users, &b.outcomes, &b.reasons, &b.details, &b.attempts, &b.recorded, &b.next,
			&b.reported[0], &b.reported[1], &b.reported[2], &b.reported[3]})
	_, err = pgx.ForEachRow(rows, fields, func() error {
		n++
		if r.full {
			return nil
		}
		return r.add(&b)
	})
	return n, pg.Translate(err)
}

// recipientBatch is one batch with the exceptions of its recipients, ascending.
type recipientBatch struct {
	id               int64
	to               user.ID
	due, sent        []byte
	rest, restReason string
	span             pg.SendSpan
	users            []int64
	outcomes         []string
	reasons          []string
	details          []string
	attempts         []int32
	recorded         []time.Time
	next             []*time.Time
	reported         [4][]byte // delivered, bounced, complained, soft
}

func (r *recipientReader) add(b *recipientBatch) error {
	if reason := r.query.Reason; reason != "" && len(b.users) == 0 && b.restReason != reason {
		r.page.Next = b.to
		return nil
	}
	due, err := pg.DecodeSet(b.due)
	if err != nil {
		return err
	}
	sent, err := pg.DecodeSet(b.sent)
	if err != nil {
		return err
	}
	reported, err := pg.DecodeReported(b.reported)
	if err != nil {
		return err
	}
	it := due.Iterator()
	it.AdvanceIfNeeded(uint64(r.page.Next) + 1)
	for at := 0; it.HasNext(); {
		id := user.ID(it.Next())
		for at < len(b.users) && b.users[at] < int64(id) { // both ascend
			at++
		}
		o := b.outcome(id, at, sent.Contains(uint64(id)))
		o.Channel, o.Variant = r.campaign.Channel, r.campaign.Content.Pick(r.campaign.ID, id)
		if sent.Contains(uint64(id)) {
			o.Reported = reported.Of(id)
		}
		if !r.fits(o) {
			continue
		}
		if len(r.page.List) == r.limit {
			r.full = true
			return nil
		}
		r.page.List, r.page.Next = append(r.page.List, o), id
	}
	r.page.Next = b.to
	return nil
}

// outcome returns the outcome of one recipient. at is the index of the recipient's exception, if
// any, in the batch's exceptions.
func (b *recipientBatch) outcome(id user.ID, at int, reached bool) campaign.Outcome {
	o := campaign.Outcome{UserID: id, BatchID: b.id}
	known := pg.Recorded{Reached: reached, Rest: b.rest, RestReason: b.restReason}
	if at < len(b.users) && b.users[at] == int64(id) {
		known.Exception, known.Reason = b.outcomes[at], b.reasons[at]
		o.Detail, o.Attempts, o.At, o.NextRetryAt = b.details[at], int(b.attempts[at]), b.recorded[at], b.next[at]
	}
	if o.Outcome, o.Reason = known.Outcome(); o.Outcome == delivery.InFlight {
		o.At = time.Time{}
	} else if o.At.IsZero() {
		b.span.Tell(&o)
	}
	return o
}

func (r *recipientReader) fits(o campaign.Outcome) bool {
	q := r.query
	return (q.Only == 0 || o.UserID == q.Only) && (q.Outcome == "" || pg.SameOutcome(o.Outcome, q.Outcome)) &&
		(q.Reason == "" || o.Reason == q.Reason) &&
		(!q.Awake || !o.Waiting()) && (q.Variant == nil || o.Variant == *q.Variant)
}

// Waiting counts, batch by batch, the recipients whose message sleeps; see
// [campaign.ResultStore].
func (s Campaigns) Waiting(ctx context.Context, id int64) (w campaign.Waiting, err error) {
	var next *time.Time
	err = s.Pool.QueryRow(ctx, `select coalesce(sum(e.quiet), 0)::bigint, min(e.next), coalesce(sum(e.undecided), 0)::bigint from batches b, lateral (
			select count(*) filter (where x.reason = $2) as quiet, min(x.next_retry_at) filter (where x.reason = $2) as next, count(*) filter (where x.reason = $3) as undecided
			from exceptions x where x.batch_id = b.id and x.outcome = 'failed' and x.reason in ($2, $3) and x.next_retry_at > clock_timestamp()
		) e where b.kind = 'campaign' and b.owner_id = $1 and b.failed_count > 0 and b.state <> 'done'`, id, delivery.ReasonQuietHours, delivery.ReasonTest).Scan(&w.Users, &next, &w.Undecided)
	if next != nil {
		w.Next = *next
	}
	return w, pg.Translate(err)
}

// openings adds when the recipients, ascending, opened the message's link.
func (s Campaigns) openings(ctx context.Context, campaignID int64, list []campaign.Outcome) error {
	if len(list) == 0 {
		return nil
	}
	ids := make([]int64, len(list))
	for i, o := range list {
		ids[i] = int64(o.UserID)
	}
	rows, err := s.Pool.Query(ctx, `select user_id, opened_at from campaign_openings where campaign_id = $1 and user_id = any($2) order by user_id`, campaignID, ids)
	if err != nil {
		return pg.Translate(err)
	}
	at, id, opened := 0, user.ID(0), time.Time{}
	_, err = pgx.ForEachRow(rows, []any{&id, &opened}, func() error {
		for list[at].UserID < id {
			at++
		}
		when := opened
		list[at].OpenedAt = &when
		return nil
	})
	return pg.Translate(err)
}
