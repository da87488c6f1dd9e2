package delivery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// Ledger reads batches and the outcomes of their recipients.
type Ledger struct{ *pg.DB }

// NewLedger returns the ledger of db.
func NewLedger(db *pg.DB) Ledger { return Ledger{db} }

const ledgerColumns = `b.id, b.kind, b.owner_id, b.template_id, coalesce(t.name, ''), coalesce(c.name, ''),
	coalesce(c.shop_number, t.shop_number, 0), coalesce(sh.timezone, ''),
	coalesce(s.slot, 0), b.channel, b.state, coalesce(b.stop_reason, ''), b.from_user, b.to_user, b.runs,
	b.due_count, b.sent_count, b.skipped_count, b.expired_count, b.dead_count,
	b.due_count - b.sent_count - b.skipped_count - b.expired_count - b.dead_count, b.failed_count,
	b.due_at, b.started_at, b.finished_at, coalesce(f.delivered_count, 0), coalesce(f.bounced_count, 0), coalesce(f.complained_count, 0),
	(select json_agg(json_build_object('Name', p.name, 'Sent', x.sent_count) order by p.id) from batch_providers x join providers p on p.id = x.provider_id where x.batch_id = b.id)`

const ledgerFrom = ` from batches b
	left join slots s on b.kind = 'reminder' and s.id = b.owner_id
	left join templates t on t.id = b.template_id
	left join campaigns c on b.kind = 'campaign' and c.id = b.owner_id
	left join shops sh on sh.number = coalesce(c.shop_number, t.shop_number)
	left join batch_feedback f on f.batch_id = b.id `

func ledgerFields(r *delivery.BatchRow) []any {
	return []any{&r.ID, &r.Kind, &r.OwnerID, &r.TemplateID, &r.TemplateName, &r.CampaignName, &r.ShopNumber, &r.ShopTimezone, &r.Slot, &r.Channel, &r.State,
		&r.StopReason, &r.From, &r.To, &r.Runs, &r.Counts.Reserved, &r.Counts.Sent, &r.Counts.Skipped, &r.Counts.Expired, &r.Counts.Dead,
		&r.Counts.InFlight, &r.Waiting, &r.DueAt, &r.StartedAt, &r.FinishedAt,
		&r.Reported.Delivered, &r.Reported.Bounced, &r.Reported.Complained, &r.Providers}
}

// withOutcome are the conditions for batches that have recipients with the
// outcome, written as in the partial indexes.
var withOutcome = map[delivery.Outcome]string{
	delivery.Sent: "b.sent_count > 0", delivery.Skipped: "b.skipped_count > 0", delivery.Expired: "b.expired_count > 0",
	delivery.Dead: "b.dead_count > 0", delivery.Failed: "b.failed_count > 0",
	// Recipients in flight are in a batch that is not done.
	delivery.InFlight: "b.state <> 'done' and b.due_count > b.sent_count + b.skipped_count + b.expired_count + b.dead_count",
}

// ledgerConditions returns the query as SQL, with one of the conditions of
// [ofShops].
func ledgerConditions(q delivery.BatchQuery, shops string) (where string, args []any) {
	c := &pg.Conditions{}
	add := c.Add
	if q.Kind != "" {
		add("b.kind = ?", q.Kind)
	}
	if q.TemplateID != 0 {
		add("b.template_id = ?", q.TemplateID)
	}
	if q.Slot != 0 {
		add("s.slot = ?", q.Slot)
	}
	if q.Channel != nil {
		add("b.channel = ?", int16(*q.Channel))
	}
	switch q.State {
	case "":
	case delivery.BatchDone:
		add("b.state = 'done'")
	default: // said twice for the sake of the partial index
		add("b.state = ? and b.state <> 'done'", q.State)
	}
	if sql, ok := withOutcome[q.Outcome]; ok && q.UserID == 0 {
		add(sql)
	}
	if q.UserID != 0 {
		add("int8range(b.from_user, nullif(b.to_user, 9223372036854775807), '[]') @> ?::bigint", q.UserID)
	}
	if q.From != nil {
		add("b.due_at >= ?", *q.From)
	}
	if q.To != nil {
		add("b.due_at < ?", *q.To)
	}
	if shops != "" {
		add(shops, q.Shops)
	}
	if q.After.ID != 0 {
		add("(b.due_at, b.id) < (?, ?)", q.After.DueAt, q.After.ID)
	}
	return c.Where(), c.Params()
}

// lookAt is the maximum number of batches that one search for a user decodes.
const lookAt = 300

// Batches lists batches, latest due first; see [delivery.LedgerStore].
func (l Ledger) Batches(ctx context.Context, q delivery.BatchQuery) (page delivery.BatchPage, err error) {
	l.DB = l.Reports(ctx)
	limit, more := max(1, q.Limit), ""
	if q.UserID != 0 {
		limit, more = lookAt, `, b.due, b.sent, coalesce(b.rest_outcome, ''), coalesce((select array[e.outcome, e.reason] from exceptions e
			where e.batch_id = b.id and e.user_id = `+fmt.Sprint(int64(q.UserID))+`), array['', ''])`
	}
	var args []any
	conditions := ofShops(q.Shops)
	if len(conditions) > 1 && q.Kind != "" { // one of the two finds nothing
		conditions = conditions[:1]
		if q.Kind == delivery.KindCampaign {
			conditions = []string{campaignsOfShops}
		}
	}
	sql := together(conditions, func(shops string) (sql string) {
		var where string
		where, args = ledgerConditions(q, shops)
		return `select ` + ledgerColumns + more + ledgerFrom + where + fmt.Sprintf(" order by b.due_at desc, b.id desc limit %d", limit+1)
	})
	if len(conditions) > 1 {
		sql += fmt.Sprintf(" order by due_at desc, id desc limit %d", limit+1)
	}
	// A checkpoint between two queries would show more reports than sent messages.
	err = l.Instant(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		if page, err = batchPage(rows, q, limit); err != nil {
			return err
		}
		return errors.Join(countReported(ctx, tx, page.List), countHeldOut(ctx, tx, page.List))
	})
	return page, err
}

// batchPage reads at most limit rows.
func batchPage(rows pgx.Rows, q delivery.BatchQuery, limit int) (page delivery.BatchPage, err error) {
	defer rows.Close()
	for seen := 0; rows.Next(); seen++ {
		if seen == limit || len(page.List) == max(1, q.Limit) {
			page.More = true
			break
		}
		row, fits, err := scanBatchRow(rows, q)
		if err != nil {
			return page, err
		}
		page.Next = delivery.BatchCursor{DueAt: row.DueAt, ID: row.ID}
		if fits {
			page.List = append(page.List, row)
		}
	}
	rows.Close()
	return page, rows.Err()
}

// countReported corrects the reported counts of batches whose counts include
// messages that were not sent.
func countReported(ctx context.Context, tx pgx.Tx, list []delivery.BatchRow) error {
	var ids []int64
	for _, r := range list {
		if r.Reported.Any() && r.Counts.Sent < r.Counts.Reserved {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	stray, err := pg.StrayFeedback(ctx, tx, ids)
	for i := range list {
		if t, ok := stray[list[i].ID]; ok {
			list[i].Reported = t
		}
	}
	return err
}

// heldOutSQL returns how many recipients of each batch are the control group. The last checkpoint of a batch gives the control group one
// outcome without rows; other users who were skipped have rows then.
const heldOutSQL = `
select b.id, case b.rest_reason when @reason then b.skipped_count - count(*) filter (where e.reason <> @reason) else count(*) filter (where e.reason = @reason) end
from batches b left join exceptions e on e.batch_id = b.id and e.outcome = 'skipped' where b.id = any(@ids) group by b.id`

// countHeldOut counts the control group among the skipped recipients.
func countHeldOut(ctx context.Context, tx pgx.Tx, list []delivery.BatchRow) error {
	var ids []int64
	for _, r := range list {
		if r.Counts.Skipped > 0 {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, heldOutSQL, pgx.StrictNamedArgs{"ids": ids, "reason": delivery.ReasonHoldOut})
	if err != nil {
		return err
	}
	held := map[int64]int64{}
	var id, n int64
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error { held[id] = n; return nil })
	for i := range list {
		list[i].Counts.HeldOut = held[list[i].ID]
	}
	return err
}

// scanBatchRow reads one row. fits is false if the user of the query is not in
// the batch, or has another outcome.
func scanBatchRow(rows pgx.Rows, q delivery.BatchQuery) (r delivery.BatchRow, fits bool, err error) {
	if q.UserID == 0 {
		return r, true, rows.Scan(ledgerFields(&r)...)
	}
	var due, sent []byte
	var known pg.Recorded
	var exception []string // outcome and reason
	if err := rows.Scan(append(ledgerFields(&r), &due, &sent, &known.Rest, &exception)...); err != nil {
		return r, false, err
	}
	known.Exception, known.Reason = exception[0], exception[1]
	if meant, err := pg.SetHolds(due, q.UserID); err != nil || !meant {
		return r, false, err
	}
	if known.Reached, err = pg.SetHolds(sent, q.UserID); err != nil {
		return r, false, err
	}
	r.Outcome, r.Reason = known.Outcome()
	return r, q.Outcome == "" || pg.SameOutcome(r.Outcome, q.Outcome), nil
}

// Batch returns one batch; see [delivery.LedgerStore].
func (l Ledger) Batch(ctx context.Context, id int64) (r delivery.BatchRow, err error) {
	l.DB = l.Reports(ctx)
	one := make([]delivery.BatchRow, 1)
	err = l.Instant(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select `+ledgerColumns+ledgerFrom+` where b.id = $1`, id).Scan(ledgerFields(&one[0])...)
		if errors.Is(err, pgx.ErrNoRows) {
			return delivery.ErrBatchNotFound
		}
		if err != nil {
			return err
		}
		return errors.Join(countReported(ctx, tx, one), countHeldOut(ctx, tx, one))
	})
	return one[0], err
}

// Recipients lists recipients of a batch by ascending id. A batch has about a
// thousand recipients, so its bitmaps and exceptions are read completely.
func (l Ledger) Recipients(ctx context.Context, q delivery.RecipientQuery) (list []delivery.Recipient, err error) {
	l.DB = l.Reports(ctx)
	// A checkpoint between two queries would show recipients twice or not at all.
	err = l.Instant(ctx, func(tx pgx.Tx) error {
		list, err = recipients(ctx, tx, q)
		return err
	})
	return list, err
}

func recipients(ctx context.Context, tx pgx.Tx, q delivery.RecipientQuery) ([]delivery.Recipient, error) {
	var dueRaw, sentRaw []byte
	var b delivery.Recipient // of all recipients without an exception
	var rest, restReason string
	err := tx.QueryRow(ctx, `select due, sent, coalesce(rest_outcome, ''), coalesce(rest_reason, ''), coalesce(finished_at, started_at, created_at)
		from batches where id = $1`, q.BatchID).Scan(&dueRaw, &sentRaw, &rest, &restReason, &b.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, delivery.ErrBatchNotFound
	}
	if err != nil {
		return nil, err
	}
	due, err := pg.DecodeSet(dueRaw)
	if err != nil {
		return nil, err
	}
	sent, err := pg.DecodeSet(sentRaw)
	if err != nil {
		return nil, err
	}
	exceptions, err := exceptionsOf(ctx, tx, q)
	if err != nil {
		return nil, err
	}
	reported, causes, err := reportsOf(ctx, tx, q)
	if err != nil {
		return nil, err
	}
	provider, err := providerOf(ctx, tx, q.BatchID, sent)
	if err != nil {
		return nil, err
	}
	var list []delivery.Recipient
	if q.After == math.MaxInt64 {
		return nil, nil
	}
	it := due.Iterator()
	it.AdvanceIfNeeded(uint64(max(q.After+1, q.Only)))
	for it.HasNext() && (q.Limit == 0 || len(list) < q.Limit) {
		id := user.ID(it.Next())
		if q.Only != 0 && id != q.Only {
			break
		}
		e, known := exceptions[id]
		said := pg.Recorded{Reached: sent.Contains(uint64(id)), Rest: rest, RestReason: restReason}
		r := b
		if known {
			r, said.Exception, said.Reason = e, string(e.Outcome), e.Reason
		}
		r.UserID = id
		if r.Outcome, r.Reason = said.Outcome(); r.Outcome == delivery.InFlight {
			r.At = time.Time{}
		}
		if said.Reached {
			r.Provider = provider(id)
		}
		r.Reported, r.Cause = reported.Of(id), causes[id]
		if q.Outcome == "" || pg.SameOutcome(r.Outcome, q.Outcome) {
			list = append(list, r)
		}
	}
	return list, nil
}

func exceptionsOf(ctx context.Context, tx pgx.Tx, q delivery.RecipientQuery) (map[user.ID]delivery.Recipient, error) {
	rows := pg.Rows(ctx, tx, `select user_id, outcome, reason, detail, attempts, last_at, next_retry_at,
			coalesce((select name from providers p where p.id = provider_id and provider_id <> 0), '') from exceptions
		where batch_id = $1 and user_id > $2 and ($3::bigint = 0 or user_id = $3)`, q.BatchID, q.After, q.Only)
	found := map[user.ID]delivery.Recipient{}
	var r delivery.Recipient
	_, err := pgx.ForEachRow(rows, []any{&r.UserID, &r.Outcome, &r.Reason, &r.Detail, &r.Attempts, &r.At, &r.NextRetryAt, &r.Provider}, func() error {
		found[r.UserID] = r
		return nil
	})
	return found, err
}
