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

// campaigns adds the messages of remembered campaigns that reached the user. It returns the
// statements that find messages of tests and of the first campaigns that are not remembered, and
// the campaigns that remain.
func (s Inbox) campaigns(p *paging, list recentCampaigns) (further []int64, probes []pg.Read) {
	if len(list.ids) == 0 {
		return nil, nil
	}
	first, last := slices.Min(list.ids), slices.Max(list.ids)
	if len(s.remembered(p, testTopic, []int64{0}, first)) > 0 {
		probes = append(probes, p.probe(testProbeSQL, p.UserID, first, last))
	}
	unknown := s.remembered(p, campaignTopic, list.ids, 0)
	if n := min(firstProbes, len(unknown)); n > 0 && !list.complete(p, unknown) {
		probes, unknown = append(probes, p.probe(campaignProbeSQL, p.UserID, unknown[:n])), unknown[n:]
	}
	return unknown, probes
}

// addCampaigns adds the messages of further campaigns that reached the user, in the order of
// their ends, until the page needs no more of them.
func (s Inbox) addCampaigns(ctx context.Context, p *paging, further []int64, list recentCampaigns) error {
	for n := 2 * firstProbes; len(further) > 0 && !list.complete(p, further); n *= 2 {
		n = min(n, len(further))
		if err := s.PlannedTogether(ctx, p.probe(campaignProbeSQL, p.UserID, further[:n])); err != nil {
			return err
		}
		further = further[n:]
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

// complete reports whether the page needs no messages of the campaigns ids, in the order of the
// list.
func (l recentCampaigns) complete(p *paging, ids []int64) bool {
	end, known := l.ends[ids[0]]
	return known && p.complete(end)
}

// read makes l an empty list and returns the statement that fills it. A remembered list is used for
// a moment: the memory drops it when a message of a campaign is sent.
func (l *recentCampaigns) read() pg.Read {
	*l = recentCampaigns{ends: map[int64]time.Time{}, at: time.Now(), dropped: l.dropped}
	return pg.Read{SQL: recentCampaignsSQL, Args: []any{campaignWindow}, Rows: func(rows pgx.Rows) error {
		var id int64
		var end pgtype.Timestamptz
		_, err := pgx.ForEachRow(rows, []any{&id, &end}, func() error {
			if l.ids = append(l.ids, id); end.InfinityModifier == pgtype.Finite {
				l.ends[id] = end.Time
			}
			return nil
		})
		return err
	}}
}

// probe returns a statement that adds the messages of its batches that reached the user. Texts are
// read later, only for the messages that the page shows.
func (p *paging) probe(sql string, args ...any) pg.Read {
	return pg.Read{SQL: sql, Args: args, Rows: func(rows pgx.Rows) error {
		var m message
		var owner int64
		var sent pgtype.DriverBytes // looked at before the next row
		_, err := pgx.ForEachRow(rows, []any{&m.batch, &m.Kind, &owner, &m.DueAt, &m.At, &sent}, func() error {
			reached, err := pg.SetHolds(sent, p.UserID)
			if reached {
				m.ID = inbox.MessageID(m.Kind, owner, m.DueAt)
				p.all = append(p.all, m)
			}
			return err
		})
		return err
	}}
}

// readCampaigns reads the content of the campaign messages among shown. A message whose batch was
// removed since the probe keeps its batch and gets no content.
func (s Inbox) readCampaigns(shown []message) rendered {
	var ids []int64
	for i := range shown {
		if m := &shown[i]; m.batch != 0 && !s.texts.campaign(m) {
			ids = append(ids, m.batch)
		}
	}
	if len(ids) == 0 {
		return rendered{add: func() {}}
	}
	var all []campaignBatch
	read := pg.Read{SQL: `select ` + campaignBatchColumns + ` from batches b join campaigns c on c.id = b.owner_id` + campaignBatchJoins + `
		where b.id = any($1)`, Args: []any{ids}, Rows: func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (campaignBatch, error) { return scanCampaignBatch(row) })
		return err
	}}
	return rendered{[]pg.Read{read}, func() {
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
	}}
}

// readers returns the data needed to render messages for the users. Users without a row read
// the default language.
func (s Inbox) readers(ctx context.Context, ids []user.ID) (map[user.ID]user.User, error) {
	list := make(map[user.ID]user.User, len(ids))
	for _, id := range ids {
		list[id] = user.User{ID: id}
	}
	rows := pg.Rows(ctx, s.Pool, `select id, name, locale, timezone from users where id = any($1)`, ids)
	var u user.User
	_, err := pgx.ForEachRow(rows, []any{&u.ID, &u.Name, &u.Locale, &u.Timezone}, func() error {
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
