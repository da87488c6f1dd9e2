package delivery

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// noticeWindow is the number of a user's newest notices that an inbox reads.
const noticeWindow = 200

// noticeSQL finds the in-app batches that contain the newest notices of user $1.
// It reads the user's rows, and for each row makes one lookup in the unique index
// of ranges.
const noticeSQL = `
with mine as (
	select template_id, run_id, days, expires_at from notices where user_id = $1 and run_id is not null order by run_id desc limit $2
)
select n.run_id, n.days, n.expires_at, n.template_id, t.opens_at, b.due_at,
	coalesce(b.finished_at, b.started_at, b.created_at), b.sent, b.messages_upto, ` + headColumns + `
from mine n join templates t on t.id = n.template_id join shops h on h.number = t.shop_number cross join lateral (
	select * from batches b where b.kind = 'notice' and b.owner_id = n.run_id and b.channel = 0 and b.from_user <= $1
	order by b.from_user desc limit 1
) b where b.to_user >= $1 and b.sent is not null`

// notice is one in-app notice before a coupon expires.
type notice struct {
	message
	run  int64
	sent []byte
}

// complete sets the fields of the message that follow from its row.
func (n *notice) complete() {
	it := &n.Message
	it.ShopNumber, _ = strconv.ParseInt(n.subject.ShopNumber, 10, 64)
	it.ID, it.Kind, it.Name = inbox.MessageID(delivery.KindNotice, n.run, it.DueAt), delivery.KindNotice, n.subject.TemplateName
	n.subject.Kind, n.subject.TemplateID = delivery.KindNotice, it.TemplateID
}

// notices returns the statement that adds the notices that reached the user's app.
func (p *paging) notices() pg.Read {
	return pg.Read{SQL: noticeSQL, Args: []any{p.UserID, noticeWindow}, Rows: func(rows pgx.Rows) error {
		for rows.Next() {
			var n notice
			it := &n.Message
			if err := rows.Scan(append([]any{&n.run, &n.subject.Slot, &it.ExpiresAt, &it.TemplateID, &it.OpensAt, &it.DueAt, &it.At, &n.sent, &n.subject.TextsUpTo},
				headFields(&n.subject)...)...); err != nil {
				return err
			}
			n.complete()
			if reached, err := pg.SetHolds(n.sent, p.UserID); err != nil {
				return err
			} else if reached {
				p.all = append(p.all, n.message)
			}
		}
		return rows.Err()
	}}
}

// noticeMessages returns the messages of a finished app batch of notices for the
// connected users whom the batch reached; connected is called with the
// candidates.
func (s Inbox) noticeMessages(ctx context.Context, batchID int64, connected inbox.Connected) (map[user.ID]inbox.Message, error) {
	var n notice
	var from, to user.ID
	it := &n.Message
	err := s.Pool.QueryRow(ctx, `
		select b.owner_id, n.days, b.template_id, t.opens_at, b.due_at,
			coalesce(b.finished_at, b.started_at, b.created_at), b.from_user, b.to_user, b.sent, b.messages_upto, `+headColumns+`
		from batches b join notice_runs n on n.id = b.owner_id join templates t on t.id = b.template_id join shops h on h.number = t.shop_number
		where b.id = $1 and b.channel = 0 and b.kind = 'notice'`, batchID).
		Scan(append([]any{&n.run, &n.subject.Slot, &it.TemplateID, &it.OpensAt, &it.DueAt, &it.At, &from, &to, &n.sent, &n.subject.TextsUpTo},
			headFields(&n.subject)...)...)
	if err != nil {
		return nil, pg.Translate(err)
	}
	set, err := pg.DecodeSet(n.sent)
	if err != nil {
		return nil, err
	}
	ids := connected(from, to, idSet{set})
	if len(ids) == 0 {
		return nil, nil
	}
	n.complete()
	expiries, err := s.noticeExpiries(ctx, n.run, ids)
	if err != nil {
		return nil, err
	}
	items, err := s.toAll(ctx, n.message, ids)
	for id, item := range items {
		if item.ExpiresAt = expiries[id]; item.ExpiresAt.IsZero() {
			delete(items, id) // its row is gone, and with it the inbox's item
		} else {
			items[id] = item
		}
	}
	return items, err
}

// noticeExpiries returns the expiry of the coupons about which the run notified
// each user.
func (s Inbox) noticeExpiries(ctx context.Context, run int64, ids []user.ID) (map[user.ID]time.Time, error) {
	rows := pg.Rows(ctx, s.Pool, `select user_id, expires_at from notices where run_id = $1 and user_id = any($2)`, run, ids)
	list := make(map[user.ID]time.Time, len(ids))
	var id user.ID
	var end time.Time
	_, err := pgx.ForEachRow(rows, []any{&id, &end}, func() error { list[id] = end; return nil })
	return list, pg.Translate(err)
}
