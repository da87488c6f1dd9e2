package delivery

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// noticeWindow is how many of a user's newest notices an inbox looks at.
const noticeWindow = 200

// noticeSQL finds the in-app batches that hold the newest notices of user $1:
// the user's own rows first, then one step per row into the unique index of
// ranges.
const noticeSQL = `
with mine as (
	select template_id, run_id, days, expires_at from notices where user_id = $1 and run_id is not null order by run_id desc limit $2
)
select n.run_id, n.days, n.expires_at, n.template_id, t.shop_number, t.name, t.claim_url, coalesce(t.opens_at, '0001-01-01'), b.due_at,
	coalesce(b.finished_at, b.started_at, b.created_at), b.sent
from mine n join templates t on t.id = n.template_id cross join lateral (
	select * from batches b where b.kind = 'notice' and b.owner_id = n.run_id and b.channel = 0 and b.from_user <= $1
	order by b.from_user desc limit 1
) b where b.to_user >= $1 and b.sent is not null`

// notice is one in-app notice before a coupon expires.
type notice struct {
	item inbox.Message
	days int
	sent []byte
}

// say adds to the item what the notice says to u. The address stands beside the
// text, not in it.
func (n notice) say(item *inbox.Message, u user.User) {
	s := delivery.Subject{Kind: delivery.KindNotice, TemplateName: n.item.Name, Slot: n.days}
	content := delivery.Render(s, u.Locale, time.UTC) // the text has no time
	item.Title, item.Text = content.Title, content.Text
	s.ClaimURL = n.item.ClaimURL
	item.ClaimURL = s.Link()
}

func noticeItem(run int64, it inbox.Message) inbox.Message {
	it.ID, it.Kind = inbox.MessageID(delivery.KindNotice, run, it.DueAt), delivery.KindNotice
	return it
}

// addNotices adds the notices that reached the user's app.
func (s Inbox) addNotices(ctx context.Context, p *paging) error {
	rows, err := s.Pool.Query(ctx, noticeSQL, p.UserID, noticeWindow)
	if err != nil {
		return pg.Translate(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n notice, err error) {
		var run int64
		it := &n.item
		err = row.Scan(&run, &n.days, &it.ExpiresAt, &it.TemplateID, &it.ShopNumber, &it.Name, &it.ClaimURL, &it.OpensAt, &it.DueAt, &it.At, &n.sent)
		n.item = noticeItem(run, n.item)
		return n, err
	})
	if err != nil {
		return pg.Translate(err)
	}
	for _, n := range all {
		reached, err := pg.SetHolds(n.sent, p.UserID)
		if err != nil {
			return err
		}
		if reached {
			p.all = append(p.all, message{Message: n.item, words: n.say})
		}
	}
	return nil
}

// noticeMessages returns the messages of a finished app batch of notices for the
// connected users whom it reached; connected is called with the candidates.
func (s Inbox) noticeMessages(ctx context.Context, batchID int64, connected inbox.Connected) (map[user.ID]inbox.Message, error) {
	var n notice
	var run int64
	var from, to user.ID
	it := &n.item
	err := s.Pool.QueryRow(ctx, `
		select b.owner_id, n.days, b.template_id, t.shop_number, t.name, t.claim_url, coalesce(t.opens_at, '0001-01-01'), b.due_at,
			coalesce(b.finished_at, b.started_at, b.created_at), b.from_user, b.to_user, b.sent
		from batches b join notice_runs n on n.id = b.owner_id join templates t on t.id = b.template_id
		where b.id = $1 and b.channel = 0 and b.kind = 'notice'`, batchID).
		Scan(&run, &n.days, &it.TemplateID, &it.ShopNumber, &it.Name, &it.ClaimURL, &it.OpensAt, &it.DueAt, &it.At, &from, &to, &n.sent)
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
	expiries, err := s.noticeExpiries(ctx, run, ids)
	if err != nil {
		return nil, err
	}
	readers, err := s.readers(ctx, ids)
	n.item = noticeItem(run, n.item)
	items := make(map[user.ID]inbox.Message, len(ids))
	for id, u := range readers {
		if end, ok := expiries[id]; ok { // else its row is gone, and with it the inbox's item
			item := n.item
			item.ExpiresAt = end
			n.say(&item, u)
			items[id] = item
		}
	}
	return items, err
}

// noticeExpiries returns until when the coupons are good of which a run told.
func (s Inbox) noticeExpiries(ctx context.Context, run int64, ids []user.ID) (map[user.ID]time.Time, error) {
	rows, err := s.Pool.Query(ctx, `select user_id, expires_at from notices where run_id = $1 and user_id = any($2)`, run, ids)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list := make(map[user.ID]time.Time, len(ids))
	var id user.ID
	var end time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &end}, func() error { list[id] = end; return nil })
	return list, pg.Translate(err)
}
