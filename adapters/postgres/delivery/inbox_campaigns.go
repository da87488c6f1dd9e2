package delivery

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// campaignWindow is how many of the newest in-app campaigns an inbox looks at.
const campaignWindow = 200

// campaignBatchColumns are what a campaign c's message in batch b shows, with the
// template t and the shop h it is about.
const campaignBatchColumns = `b.kind, c.id, ` + pg.BatchContent + `, c.ends_at, b.template_id, coalesce(c.shop_number, t.shop_number, 0), coalesce(h.name, ''),
	coalesce(t.name, ''), ` + pg.ClaimURL + `, coalesce(t.opens_at, '0001-01-01'), b.due_at,
	coalesce(b.finished_at, b.started_at, b.created_at), b.from_user, b.to_user, b.sent, coalesce(b.messages_upto, 0), ` + pg.WorthColumns

const campaignBatchJoins = ` left join templates t on t.id = b.template_id left join shops h on h.number = coalesce(c.shop_number, t.shop_number)`

// campaignBatchesSQL finds the newest campaigns' batches that hold user $1: two steps
// per campaign into the unique index of ranges.
const campaignBatchesSQL = `
with recent as (select * from campaigns where channel = 0 order by id desc limit $2)
select ` + campaignBatchColumns + `
from recent c cross join (values ('campaign'), ('test')) as k (kind) cross join lateral (
	select * from batches b where b.kind = k.kind and b.owner_id = c.id and b.channel = 0 and b.from_user <= $1
	order by b.from_user desc limit 1
) b` + campaignBatchJoins + ` where b.to_user >= $1 and b.sent is not null`

// campaignBatch is one in-app campaign batch.
type campaignBatch struct {
	message
	copy     delivery.Copy
	from, to user.ID
	sent     []byte
}

func scanCampaignBatch(row pgx.Row) (l campaignBatch, err error) {
	it, about := &l.Message, &l.subject
	err = row.Scan(append([]any{&about.Kind, &about.OwnerID, &l.copy, &about.EndsAt, &it.TemplateID, &it.ShopNumber, &about.ShopName,
		&about.TemplateName, &about.ClaimURL, &about.OpensAt, &it.DueAt, &it.At, &l.from, &l.to, &l.sent, &about.TextsUpTo}, pg.WorthFields(&about.Worth)...)...)
	it.Kind, it.Name, it.OpensAt = about.Kind, about.TemplateName, about.OpensAt
	it.ID = inbox.MessageID(about.Kind, about.OwnerID, it.DueAt)
	about.TemplateID, about.ShopNumber, about.Copy = it.TemplateID, pg.Itoa(it.ShopNumber), &l.copy
	return l, err
}

// campaignsTo returns the user's in-app campaign messages.
func (s Inbox) campaignsTo(ctx context.Context, by user.ID) (mine []message, err error) {
	rows, err := s.Pool.Query(ctx, campaignBatchesSQL, by, campaignWindow)
	if err != nil {
		return nil, pg.Translate(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (campaignBatch, error) { return scanCampaignBatch(row) })
	if err != nil {
		return nil, pg.Translate(err)
	}
	for _, l := range all {
		reached, err := pg.SetHolds(l.sent, by)
		if err != nil {
			return nil, err
		}
		if reached {
			mine = append(mine, l.message)
		}
	}
	return mine, nil
}

// readers returns what rendering for the users takes; those without a row
// read the default language.
func (s Inbox) readers(ctx context.Context, ids []user.ID) (map[user.ID]user.User, error) {
	list := make(map[user.ID]user.User, len(ids))
	for _, id := range ids {
		list[id] = user.User{ID: id}
	}
	rows, err := s.Pool.Query(ctx, `select id, name, locale, timezone from users where id = any($1)`, ids)
	if err != nil {
		return list, pg.Translate(err)
	}
	var u user.User
	_, err = pgx.ForEachRow(rows, []any{&u.ID, &u.Name, &u.Locale, &u.Timezone}, func() error {
		list[u.ID] = u
		return nil
	})
	return list, pg.Translate(err)
}

// campaignMessages returns the messages of a finished app batch of a campaign
// for the connected users whom it reached; connected is called with the
// candidates.
func (s Inbox) campaignMessages(ctx context.Context, batchID int64, connected inbox.Connected) (map[user.ID]inbox.Message, error) {
	l, err := scanCampaignBatch(s.Pool.QueryRow(ctx, `select `+campaignBatchColumns+` from batches b join campaigns c on c.id = b.owner_id`+campaignBatchJoins+`
		where b.id = $1 and b.channel = 0 and b.kind in ('campaign', 'test')`, batchID))
	if err != nil {
		return nil, pg.Translate(err)
	}
	set, err := pg.DecodeSet(l.sent)
	if err != nil {
		return nil, err
	}
	ids := connected(l.from, l.to, idSet{set})
	if len(ids) == 0 {
		return nil, nil
	}
	return s.toAll(ctx, l.message, ids)
}
