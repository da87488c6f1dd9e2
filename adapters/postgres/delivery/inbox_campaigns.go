package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// campaignWindow is the number of newest in-app campaigns that an inbox reads.
const campaignWindow = 200

// campaignBatchColumns are the data that the message of campaign c in batch b shows, with
// template t and shop h of the campaign.
const campaignBatchColumns = `b.id, b.kind, c.id, ` + pg.BatchContent + `, c.ends_at, b.template_id, coalesce(c.shop_number, t.shop_number, 0), coalesce(h.name, ''),
	coalesce(t.name, ''), ` + pg.ClaimURL + `, coalesce(t.opens_at, '0001-01-01'), b.due_at,
	coalesce(b.finished_at, b.started_at, b.created_at), b.from_user, b.to_user, b.sent, b.messages_upto, ` + pg.SubjectColumns

const campaignBatchJoins = ` left join templates t on t.id = b.template_id left join shops h on h.number = coalesce(c.shop_number, t.shop_number)`

// recentCampaignsSQL returns the newest in-app campaigns, the latest ended first. The second
// column is a time that is not before any message of the campaign.
const recentCampaignsSQL = `
select id, coalesce(settled_at, 'infinity') from (
	select id, settled_at, archived from campaigns where channel = 0 order by id desc limit $1
) c where not archived order by 2 desc, 1 desc`

// campaignProbeSQL returns the batches of campaigns $2 whose range contains user $1, with one
// lookup for each campaign in the unique index of ranges.
const campaignProbeSQL = `
select b.id, b.kind, b.owner_id, b.due_at, coalesce(b.finished_at, b.started_at, b.created_at), b.sent
from unnest($2::bigint[]) as c (id) cross join lateral (
	select * from batches b where b.kind = 'campaign' and b.owner_id = c.id and b.channel = 0 and b.from_user <= $1
	order by b.from_user desc limit 1
) b where b.to_user >= $1 and b.sent is not null`

// testProbeSQL returns the batches of tests of campaigns $2 to $3 whose range contains user
// $1. Test batches are few and small, and lie next to each other in the unique index of
// ranges.
const testProbeSQL = `
select b.id, b.kind, b.owner_id, b.due_at, coalesce(b.finished_at, b.started_at, b.created_at), b.sent
from batches b where b.kind = 'test' and b.owner_id between $2 and $3 and b.channel = 0 and b.from_user <= $1 and b.to_user >= $1
	and b.sent is not null`

// firstProbes is the number of campaigns in the first probe; each further probe has twice as
// many. A user who opens the inbox often needs only the first probe.
const firstProbes = 25

// campaignBatch is one in-app campaign batch.
type campaignBatch struct {
	message
	copy     delivery.Copy
	from, to user.ID
	sent     []byte
}

func scanCampaignBatch(row pgx.Row) (l campaignBatch, err error) {
	it, about := &l.Message, &l.subject
	err = row.Scan(append([]any{&l.batch, &about.Kind, &about.OwnerID, &l.copy, &about.EndsAt, &it.TemplateID, &it.ShopNumber, &about.ShopName,
		&about.TemplateName, &about.ClaimURL, &about.OpensAt, &it.DueAt, &it.At, &l.from, &l.to, &l.sent, &about.TextsUpTo}, pg.SubjectFields(about)...)...)
	it.Kind, it.Name, it.OpensAt = about.Kind, about.TemplateName, about.OpensAt
	it.ID = inbox.MessageID(about.Kind, about.OwnerID, it.DueAt)
	about.TemplateID, about.ShopNumber, about.Copy = it.TemplateID, pg.Itoa(it.ShopNumber), &l.copy
	return l, err
}

// addCampaigns adds the campaign messages that reached the user: of remembered campaigns first,
// then of the other campaigns in the order of their ends, until the page needs no more of them.
func (s Inbox) addCampaigns(ctx context.Context, p *paging) error {
	list, err := s.recentCampaigns(ctx, p.remembers)
	if err != nil || len(list.ids) == 0 {
		return err
	}
	first, last := slices.Min(list.ids), slices.Max(list.ids)
	if len(s.remembered(p, testTopic, []int64{0}, first)) > 0 {
		if err := s.probe(ctx, p, testProbeSQL, p.UserID, first, last); err != nil {
			return err
		}
	}
	unknown := s.remembered(p, campaignTopic, list.ids, 0)
	for n := firstProbes; len(unknown) > 0; n *= 2 {
		if end, known := list.ends[unknown[0]]; known && p.complete(end) {
			return nil
		}
		n = min(n, len(unknown))
		if err := s.probe(ctx, p, campaignProbeSQL, p.UserID, unknown[:n]); err != nil {
			return err
		}
		unknown = unknown[n:]
	}
	return nil
}

// recentCampaigns are the newest in-app campaigns, the latest ended first.
type recentCampaigns struct {
	ids []int64
	// ends are instants that are not before any message of the campaign; absent = not known.
	ends map[int64]time.Time
	at   time.Time // of the reading
	// dropped counts how often the memory has dropped the list.
	dropped int
}

// recentCampaigns returns the newest in-app campaigns. A remembered list is used for a moment: the
// memory drops it when a message of a campaign is sent.
func (s Inbox) recentCampaigns(ctx context.Context, remembered bool) (list recentCampaigns, err error) {
	if list = s.memory.campaigns(); remembered && time.Since(list.at) < campaignsFor {
		return list, nil
	}
	list = recentCampaigns{ends: map[int64]time.Time{}, at: time.Now(), dropped: list.dropped}
	err = s.PlannedOnce(ctx, recentCampaignsSQL, []any{campaignWindow}, func(rows pgx.Rows) error {
		var id int64
		var end pgtype.Timestamptz
		_, err := pgx.ForEachRow(rows, []any{&id, &end}, func() error {
			if list.ids = append(list.ids, id); end.InfinityModifier == pgtype.Finite {
				list.ends[id] = end.Time
			}
			return nil
		})
		return err
	})
	if err == nil {
		s.memory.keepCampaigns(list)
	}
	return list, pg.Translate(err)
}

// probe adds the messages of the batches in the statement's result that reached the user.
// Texts are read later, only for the messages that the page shows.
func (s Inbox) probe(ctx context.Context, p *paging, sql string, args ...any) error {
	rows, err := s.Pool.Query(ctx, sql, args...)
	if err != nil {
		return pg.Translate(err)
	}
	var m message
	var owner int64
	var sent pgtype.DriverBytes // looked at before the next row
	_, err = pgx.ForEachRow(rows, []any{&m.batch, &m.Kind, &owner, &m.DueAt, &m.At, &sent}, func() error {
		reached, err := pg.SetHolds(sent, p.UserID)
		if reached {
			m.ID = inbox.MessageID(m.Kind, owner, m.DueAt)
			p.all = append(p.all, m)
		}
		return err
	})
	return pg.Translate(err)
}

// readCampaigns reads the content of the campaign messages among shown. It leaves out messages
// whose batches were removed since the probe.
func (s Inbox) readCampaigns(ctx context.Context, shown []message) ([]message, error) {
	var ids []int64
	for i := range shown {
		if m := &shown[i]; m.batch != 0 && !s.texts.campaign(m) {
			ids = append(ids, m.batch)
		}
	}
	if len(ids) == 0 {
		return shown, nil
	}
	rows, err := s.Pool.Query(ctx, `select `+campaignBatchColumns+` from batches b join campaigns c on c.id = b.owner_id`+campaignBatchJoins+`
		where b.id = any($1)`, ids)
	if err != nil {
		return nil, pg.Translate(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (campaignBatch, error) { return scanCampaignBatch(row) })
	kept := map[campaignKey]message{}
	for _, l := range all {
		m := &shown[slices.IndexFunc(shown, func(m message) bool { return m.batch == l.batch })]
		l.At, l.Read, l.campaign = m.At, m.Read, m.campaign // as it was when the page was composed
		l.batch = 0
		if *m = l.message; m.campaign.campaign != 0 {
			kept[m.campaign] = *m
		}
	}
	s.texts.keep(nil, kept)
	return slices.DeleteFunc(shown, func(m message) bool { return m.batch != 0 }), pg.Translate(err)
}

// readers returns the data needed to render messages for the users. Users without a row read
// the default language.
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

// campaignMessages returns the messages of a finished app batch of a campaign for the
// connected users whom the batch reached; connected is called with the candidates.
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
