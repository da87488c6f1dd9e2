package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// outcomeSQL finds the batches that hold user $1's fired reminders of
// templates $2 on channels $3, and the announcements and notices of kinds $4: per
// owner and channel one step into the unique index of ranges.
const outcomeSQL = `
with owners as (
    select 'reminder' as kind, id, template_id, slot, opens_at, ` + pg.SlotDueAt + ` as due_at, fired_at from slots s
    where template_id = any($2) and fired_at is not null and 'reminder' = any($4)
    union all
    select kind, id, template_id, 0, opens_at, created_at, created_at from announcements
    where template_id = any($2) and state <> 'waiting' and kind = any($4)
    union all
    select 'notice', r.id, r.template_id, 0, n.expires_at, n.due_at, r.created_at from notices n join notice_runs r on r.id = n.run_id
    where n.user_id = $1 and n.template_id = any($2) and 'notice' = any($4)
)
select o.kind, o.id, o.template_id, o.slot, o.opens_at, o.due_at, o.fired_at, c.channel, b.id, b.due, b.sent,
    coalesce(b.rest_outcome, ''), coalesce(b.rest_reason, ''), coalesce(e.outcome, ''), coalesce(e.reason, ''),
    coalesce(e.detail, ''), coalesce(e.attempts, 0), coalesce(e.last_at, b.finished_at, b.started_at, b.created_at)
from owners o
cross join unnest($3::smallint[]) as c (channel)
cross join lateral (
    select * from batches b where b.kind = o.kind and b.owner_id = o.id and b.channel = c.channel and b.from_user <= $1
    order by b.from_user desc limit 1
) b
left join exceptions e on e.batch_id = b.id and e.user_id = $1
where b.to_user >= $1
order by o.due_at desc, o.kind, o.id desc, c.channel`

// Delivered returns what became of the user's fired reminders.
func (r *Reservations) Delivered(ctx context.Context, by user.ID, templateIDs []int64) ([]reminder.Delivered, error) {
	return r.outcomes(ctx, by, templateIDs, delivery.AllChannels(), delivery.KindReminder)
}

// Announced returns what became of everything else the user was told about the
// templates: corrections, cancellations, notices before a coupon expires.
func (r *Reservations) Announced(ctx context.Context, by user.ID, templateIDs []int64) ([]reminder.Delivered, error) {
	return r.outcomes(ctx, by, templateIDs, delivery.AllChannels(), delivery.KindCorrection, delivery.KindCancelled, delivery.KindNotice)
}

func (r *Reservations) outcomes(ctx context.Context, by user.ID, templateIDs []int64, channels []delivery.Channel, kinds ...delivery.Kind) ([]reminder.Delivered, error) {
	cs := make([]int16, len(channels))
	for i, c := range channels {
		cs[i] = int16(c)
	}
	rows, err := r.Pool.Query(ctx, outcomeSQL, by, templateIDs, cs, kinds)
	if err != nil {
		return nil, pg.Translate(err)
	}
	defer rows.Close()
	var list []reminder.Delivered
	for rows.Next() {
		d, mine, err := scanOutcome(rows, by)
		if err != nil {
			return nil, pg.Translate(err)
		}
		if mine {
			list = append(list, d)
		}
	}
	return list, pg.Translate(rows.Err())
}

// scanOutcome reads one batch and decides what it says about the user; mine
// is false if the user is not in it.
func scanOutcome(rows pgx.Rows, by user.ID) (d reminder.Delivered, mine bool, err error) {
	var due, sent pgtype.DriverBytes // looked at before the next row
	var known pg.Recorded
	if err := rows.Scan(&d.Kind, &d.SlotID, &d.TemplateID, &d.Slot, &d.OpensAt, &d.DueAt, &d.FiredAt, &d.Channel, &d.BatchID, &due, &sent,
		&known.Rest, &known.RestReason, &known.Exception, &known.Reason, &d.Detail, &d.Attempts, &d.At); err != nil {
		return d, false, err
	}
	if mine, err := pg.SetHolds(due, by); err != nil || !mine {
		return d, false, err
	}
	if known.Reached, err = pg.SetHolds(sent, by); err != nil {
		return d, false, err
	}
	if d.Outcome, d.Reason = known.Outcome(); d.Outcome == delivery.InFlight {
		d.At = time.Time{}
	}
	return d, true, nil
}

// inboxWindow is how many of a user's newest reservations, cancelled ones
// included, the inbox looks at.
const inboxWindow = 200

// Inbox derives the user's in-app messages from the batches that reached
// them; nothing is stored per message.
func (r *Reservations) Inbox(ctx context.Context, by user.ID, before time.Time, limit int) (reminder.Inbox, error) {
	inbox := reminder.Inbox{UserID: by, Items: []reminder.InboxItem{}}
	rows, err := r.Pool.Query(ctx, `select template_id from reservations where user_id = $1
		union select template_id from former_reservations f where user_id = $1
			and exists (select from batches b where b.template_id = f.template_id) order by 1 desc limit $2`, by, inboxWindow)
	if err != nil {
		return inbox, pg.Translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return inbox, pg.Translate(err)
	}
	all, err := r.outcomes(ctx, by, ids, []delivery.Channel{delivery.App}, delivery.KindReminder, delivery.KindCorrection, delivery.KindCancelled)
	if err != nil {
		return inbox, err
	}
	err = r.Pool.QueryRow(ctx, `select coalesce((select read_through from inbox_reads where user_id = $1), '0001-01-01')`, by).Scan(&inbox.ReadThrough)
	if err != nil {
		return inbox, pg.Translate(err)
	}
	about, err := r.templateHeads(ctx, ids)
	if err != nil {
		return inbox, err
	}
	items, err := r.letters(ctx, by)
	if err != nil {
		return inbox, err
	}
	notices, err := r.noticesTo(ctx, by)
	if err != nil {
		return inbox, err
	}
	items = append(items, notices...)
	for _, d := range all {
		if d.Outcome == delivery.Sent || d.Outcome == delivery.Recovered {
			items = append(items, message{InboxItem: inboxItem(d, about[d.TemplateID])})
		}
	}
	slices.SortStableFunc(items, func(a, b message) int { return b.At.Compare(a.At) })
	var shown []message
	for _, m := range items {
		if m.Read = !m.At.After(inbox.ReadThrough); !m.Read {
			inbox.Unread++
		}
		// Pages are told apart by their instants, so what came in the same one stays together.
		fits := len(shown) < max(limit, 1) || m.At.Equal(shown[len(shown)-1].At)
		if fits && (before.IsZero() || m.At.Before(before)) {
			shown = append(shown, m)
		}
	}
	inbox.Items, err = r.render(ctx, by, shown)
	return inbox, err
}

// message is one of the inbox; words, if there are any, adds what it says to
// its reader.
type message struct {
	reminder.InboxItem
	words func(*reminder.InboxItem, user.User)
}

// render adds the words of the messages that are shown.
func (r *Reservations) render(ctx context.Context, by user.ID, shown []message) ([]reminder.InboxItem, error) {
	items := make([]reminder.InboxItem, len(shown))
	var readers map[user.ID]user.User
	for i, m := range shown {
		items[i] = m.InboxItem
		if m.words == nil {
			continue
		}
		if readers == nil {
			var err error
			if readers, err = r.readers(ctx, []user.ID{by}); err != nil {
				return nil, err
			}
		}
		m.words(&items[i], readers[by])
	}
	return items, nil
}

func inboxItem(d reminder.Delivered, t template.Template) reminder.InboxItem {
	item := reminder.InboxItem{
		ID:         reminder.MessageID(d.Kind, d.SlotID, d.DueAt),
		TemplateID: d.TemplateID, ShopNumber: t.ShopNumber, Kind: d.Kind, Slot: d.Slot,
		OpensAt: d.OpensAt, DueAt: d.DueAt, At: d.At, Name: t.Name, ClaimURL: t.ClaimURL,
	}
	if d.Kind == delivery.KindCancelled {
		item.ClaimURL = "" // there is nothing to claim
	}
	return item
}

// templateHeads returns what messages show of the templates.
func (r *Reservations) templateHeads(ctx context.Context, ids []int64) (map[int64]template.Template, error) {
	rows, err := r.Pool.Query(ctx, `select id, shop_number, name, claim_url from templates where id = any($1)`, ids)
	if err != nil {
		return nil, pg.Translate(err)
	}
	heads := map[int64]template.Template{}
	var t template.Template
	_, err = pgx.ForEachRow(rows, []any{&t.ID, &t.ShopNumber, &t.Name, &t.ClaimURL}, func() error {
		heads[t.ID] = t
		return nil
	})
	return heads, pg.Translate(err)
}

// MarkRead records how far the user has read; see [reminder.Store].
func (r *Reservations) MarkRead(ctx context.Context, by user.ID, through time.Time) (stands time.Time, err error) {
	err = r.Pool.QueryRow(ctx, `insert into inbox_reads (user_id, read_through) values ($1, least($2, now()))
		on conflict (user_id) do update set read_through = greatest(inbox_reads.read_through, excluded.read_through)
		returning read_through`, by, through).Scan(&stands)
	return stands, pg.Translate(err)
}

// PushBatch returns what a finished app batch tells and who was reached, for
// live push to connected clients.
func (r *Reservations) PushBatch(ctx context.Context, batchID int64) (reminder.Pushed, error) {
	var p reminder.Pushed
	var d reminder.Delivered
	var sent []byte
	var t template.Template
	err := r.Pool.QueryRow(ctx, `
		select b.kind, b.owner_id, b.template_id, coalesce(s.slot, 0), coalesce(s.opens_at, a.opens_at), b.due_at, b.from_user, b.to_user,
			b.sent, coalesce(b.finished_at, now()), t.shop_number, t.name, t.claim_url
		from batches b
		left join slots s on b.kind = 'reminder' and s.id = b.owner_id
		left join announcements a on b.kind in ('correction', 'cancelled') and a.id = b.owner_id
		join templates t on t.id = b.template_id
		where b.id = $1 and b.channel = 0 and coalesce(s.id, a.id) is not null`, batchID).
		Scan(&d.Kind, &d.SlotID, &d.TemplateID, &d.Slot, &d.OpensAt, &d.DueAt, &p.From, &p.To, &sent, &d.At, &t.ShopNumber, &t.Name, &t.ClaimURL)
	if err != nil {
		return p, pg.Translate(err)
	}
	set, err := pg.DecodeSet(sent)
	p.Item = inboxItem(d, t)
	p.Reached = func(id user.ID) bool { return set.Contains(uint64(id)) }
	return p, err
}
