package postgres

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// outcomeSQL finds the batches that hold user $1's fired reminders of
// templates $2 on channels $3: per fired slot and channel one step into the
// unique index of ranges.
const outcomeSQL = `
select s.id, s.template_id, s.slot, s.opens_at, s.due_at, s.fired_at, c.channel, b.id, b.due, b.sent,
    coalesce(b.rest_outcome, ''), coalesce(b.rest_reason, ''), coalesce(e.outcome, ''), coalesce(e.reason, ''),
    coalesce(e.detail, ''), coalesce(e.attempts, 0), coalesce(b.finished_at, e.last_at, b.started_at, b.created_at)
from slots s
cross join unnest($3::smallint[]) as c (channel)
cross join lateral (
    select * from batches b where b.kind = 'reminder' and b.owner_id = s.id and b.channel = c.channel and b.from_user <= $1
    order by b.from_user desc limit 1
) b
left join exceptions e on e.batch_id = b.id and e.user_id = $1
where s.template_id = any($2) and s.fired_at is not null and b.to_user >= $1
order by s.due_at desc, c.channel`

// Delivered returns what became of the user's fired reminders.
func (r *Reservations) Delivered(ctx context.Context, by user.ID, templateIDs []int64) ([]reminder.Delivered, error) {
	return r.outcomes(ctx, by, templateIDs, delivery.AllChannels())
}

func (db *DB) outcomes(ctx context.Context, by user.ID, templateIDs []int64, channels []delivery.Channel) ([]reminder.Delivered, error) {
	cs := make([]int16, len(channels))
	for i, c := range channels {
		cs[i] = int16(c)
	}
	rows, err := db.pool.Query(ctx, outcomeSQL, by, templateIDs, cs)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var list []reminder.Delivered
	for rows.Next() {
		d, mine, err := scanOutcome(rows, by)
		if err != nil {
			return nil, translate(err)
		}
		if mine {
			list = append(list, d)
		}
	}
	return list, translate(rows.Err())
}

// scanOutcome reads one batch and decides what it says about the user; mine
// is false if the user is not in it.
func scanOutcome(rows pgx.Rows, by user.ID) (d reminder.Delivered, mine bool, err error) {
	var due, sent []byte
	var rest, restReason, exception, reason string
	if err := rows.Scan(&d.SlotID, &d.TemplateID, &d.Slot, &d.OpensAt, &d.DueAt, &d.FiredAt, &d.Channel, &d.BatchID, &due, &sent,
		&rest, &restReason, &exception, &reason, &d.Detail, &d.Attempts, &d.At); err != nil {
		return d, false, err
	}
	dueSet, err := decodeSet(due)
	if err != nil || !dueSet.Contains(uint64(by)) {
		return d, false, err
	}
	sentSet, err := decodeSet(sent)
	if err != nil {
		return d, false, err
	}
	switch {
	case sentSet.Contains(uint64(by)):
		d.Outcome, d.Reason = delivery.Sent, reason
		if exception != "" {
			d.Outcome = delivery.Recovered
		}
	case exception != "":
		d.Outcome, d.Reason = delivery.Outcome(exception), reason
	case rest != "":
		d.Outcome, d.Reason = delivery.Outcome(rest), restReason
	default:
		d.Outcome, d.At = delivery.InFlight, time.Time{}
	}
	return d, true, nil
}

// inboxWindow is how many of a user's newest reservations the inbox looks at.
const inboxWindow = 200

// Inbox derives the user's in-app messages from the batches that reached
// them; nothing is stored per message.
func (r *Reservations) Inbox(ctx context.Context, by user.ID, before time.Time, limit int) (reminder.Inbox, error) {
	inbox := reminder.Inbox{UserID: by, Items: []reminder.InboxItem{}}
	rows, err := r.pool.Query(ctx, `select template_id from reservations where user_id = $1 order by template_id desc limit $2`, by, inboxWindow)
	if err != nil {
		return inbox, translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return inbox, translate(err)
	}
	all, err := r.outcomes(ctx, by, ids, []delivery.Channel{delivery.App})
	if err != nil {
		return inbox, err
	}
	err = r.pool.QueryRow(ctx, `select coalesce((select read_through from inbox_reads where user_id = $1), '0001-01-01')`, by).Scan(&inbox.ReadThrough)
	if err != nil {
		return inbox, translate(err)
	}
	about, err := r.templateHeads(ctx, ids)
	if err != nil {
		return inbox, err
	}
	slices.SortStableFunc(all, func(a, b reminder.Delivered) int { return b.At.Compare(a.At) })
	for _, d := range all {
		if d.Outcome != delivery.Sent && d.Outcome != delivery.Recovered {
			continue
		}
		item := inboxItem(d, about[d.TemplateID], inbox.ReadThrough)
		if !item.Read {
			inbox.Unread++
		}
		if len(inbox.Items) < limit && (before.IsZero() || item.At.Before(before)) {
			inbox.Items = append(inbox.Items, item)
		}
	}
	return inbox, nil
}

func inboxItem(d reminder.Delivered, t template.Template, readThrough time.Time) reminder.InboxItem {
	return reminder.InboxItem{
		ID:         strconv.FormatInt(d.SlotID, 10),
		TemplateID: d.TemplateID, ShopNumber: t.ShopNumber, Kind: delivery.KindReminder, Slot: d.Slot,
		OpensAt: d.OpensAt, DueAt: d.DueAt, At: d.At, Name: t.Name, ClaimURL: t.ClaimURL,
		Read: !d.At.After(readThrough),
	}
}

// templateHeads returns what messages show of the templates.
func (db *DB) templateHeads(ctx context.Context, ids []int64) (map[int64]template.Template, error) {
	rows, err := db.pool.Query(ctx, `select id, shop_number, name, claim_url from templates where id = any($1)`, ids)
	if err != nil {
		return nil, translate(err)
	}
	heads := map[int64]template.Template{}
	var t template.Template
	_, err = pgx.ForEachRow(rows, []any{&t.ID, &t.ShopNumber, &t.Name, &t.ClaimURL}, func() error {
		heads[t.ID] = t
		return nil
	})
	return heads, translate(err)
}

// MarkRead records that the user has read everything up to through; it never
// goes back.
func (r *Reservations) MarkRead(ctx context.Context, by user.ID, through time.Time) error {
	_, err := r.pool.Exec(ctx, `insert into inbox_reads (user_id, read_through) values ($1, least($2, now()))
		on conflict (user_id) do update set read_through = greatest(inbox_reads.read_through, excluded.read_through)`, by, through)
	return translate(err)
}

// PushBatch returns a finished app batch's slot and who was reached, for live
// push to connected clients.
func (r *Reservations) PushBatch(ctx context.Context, batchID int64) (reminder.Pushed, error) {
	var p reminder.Pushed
	var d reminder.Delivered
	var sent []byte
	var t template.Template
	err := r.pool.QueryRow(ctx, `
		select s.id, s.template_id, s.slot, s.opens_at, s.due_at, b.from_user, b.to_user, b.sent,
			coalesce(b.finished_at, now()), t.shop_number, t.name, t.claim_url
		from batches b join slots s on s.id = b.owner_id join templates t on t.id = s.template_id
		where b.id = $1 and b.kind = 'reminder' and b.channel = 0`, batchID).
		Scan(&d.SlotID, &d.TemplateID, &d.Slot, &d.OpensAt, &d.DueAt, &p.From, &p.To, &sent, &d.At, &t.ShopNumber, &t.Name, &t.ClaimURL)
	if err != nil {
		return p, translate(err)
	}
	set, err := decodeSet(sent)
	p.Item = inboxItem(d, t, time.Time{})
	p.Reached = func(id user.ID) bool { return set.Contains(uint64(id)) }
	return p, err
}
