package delivery

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Inbox derives in-app messages from batches; see [inbox.Store].
type Inbox struct {
	*pg.DB
	// Track, if set, returns the tracked address that replaces a campaign's link
	// in one user's text.
	Track func(campaign int64, id user.ID, variant int) string
}

// NewInbox returns the store on db.
func NewInbox(db *pg.DB) Inbox { return Inbox{DB: db} }

// inboxWindow is how many of a user's newest reservations, cancelled ones
// included, the inbox looks at.
const inboxWindow = 200

// Page derives the user's in-app messages from the batches that reached
// them; nothing is stored per message.
func (s Inbox) Page(ctx context.Context, by user.ID, before time.Time, limit int) (inbox.Page, error) {
	p := paging{Page: inbox.Page{UserID: by}, before: before, limit: max(limit, 1)}
	err := s.Pool.QueryRow(ctx, `select coalesce((select read_through from inbox_reads where user_id = $1), '0001-01-01')`, by).Scan(&p.ReadThrough)
	if err != nil {
		return p.Page, pg.Translate(err)
	}
	for _, add := range []func(context.Context, *paging) error{s.addReminders, s.addNotices, s.addCampaigns} {
		if err := add(ctx, &p); err != nil {
			return p.Page, err
		}
	}
	shown := p.count()
	p.Items, err = s.render(ctx, by, shown)
	return p.Page, err
}

// addReminders adds the reminders, corrections and cancellations that reached the user.
func (s Inbox) addReminders(ctx context.Context, p *paging) error {
	rows, err := s.Pool.Query(ctx, `select template_id from reservations where user_id = $1
		union select template_id from former_reservations f where user_id = $1
			and exists (select from batches b where b.template_id = f.template_id) order by 1 desc limit $2`, p.UserID, inboxWindow)
	if err != nil {
		return pg.Translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return pg.Translate(err)
	}
	all, err := pg.UserOutcomes(ctx, s.DB, p.UserID, ids, []delivery.Channel{delivery.App}, delivery.KindReminder, delivery.KindCorrection, delivery.KindCancelled)
	if err != nil {
		return err
	}
	about, err := s.templateHeads(ctx, ids)
	for _, d := range all {
		if d.Outcome == delivery.Sent || d.Outcome == delivery.Recovered {
			p.all = append(p.all, message{Message: messageOf(d, about[d.TemplateID])})
		}
	}
	return err
}

// paging is a page that is being made: all messages that were found so far, of which
// it shows some and counts others as unread.
type paging struct {
	inbox.Page
	before time.Time // zero = now
	limit  int
	all    []message
}

// count counts the unread messages and returns those that the page shows, newest
// first. The next page begins after an instant, so messages of the same one stay
// together.
func (p *paging) count() (shown []message) {
	slices.SortStableFunc(p.all, func(a, b message) int { return b.At.Compare(a.At) })
	p.Unread = 0
	for i := range p.all {
		m := &p.all[i]
		if m.Read = !m.At.After(p.ReadThrough); !m.Read {
			p.Unread = min(p.Unread+1, inbox.MaxUnread)
		}
		fits := len(shown) < p.limit || m.At.Equal(shown[len(shown)-1].At)
		if fits && (p.before.IsZero() || m.At.Before(p.before)) {
			shown = append(shown, *m)
		}
	}
	return shown
}

// complete reports whether messages of the instant and earlier ones would change
// nothing: the page is full of newer messages, and they are read or as many are
// unread as are counted.
func (p *paging) complete(instant time.Time) bool {
	shown := p.count()
	return len(shown) >= p.limit && instant.Before(shown[len(shown)-1].At) &&
		(p.Unread == inbox.MaxUnread || !instant.After(p.ReadThrough))
}

// message is one message of a page. words, if set, adds the text that its
// reader is shown; batch, if set, is the campaign's batch that has all else.
type message struct {
	inbox.Message
	words func(*inbox.Message, user.User)
	batch int64
}

// render adds what campaigns say and the words of the messages that are shown.
func (s Inbox) render(ctx context.Context, by user.ID, shown []message) ([]inbox.Message, error) {
	shown, err := s.readCampaigns(ctx, shown)
	if err != nil {
		return nil, err
	}
	items := make([]inbox.Message, len(shown))
	var readers map[user.ID]user.User
	for i, m := range shown {
		items[i] = m.Message
		if m.words == nil {
			continue
		}
		if readers == nil {
			var err error
			if readers, err = s.readers(ctx, []user.ID{by}); err != nil {
				return nil, err
			}
		}
		m.words(&items[i], readers[by])
	}
	return items, nil
}

func messageOf(d reminder.Delivered, t template.Template) inbox.Message {
	item := inbox.Message{
		ID:         inbox.MessageID(d.Kind, d.SlotID, d.DueAt),
		TemplateID: d.TemplateID, ShopNumber: t.ShopNumber, Kind: d.Kind, Slot: d.Slot,
		OpensAt: d.OpensAt, DueAt: d.DueAt, At: d.At, Name: t.Name, ClaimURL: t.ClaimURL,
	}
	if d.Kind == delivery.KindCancelled {
		item.ClaimURL = "" // there is nothing to claim
	}
	return item
}

// templateHeads returns what messages show of the templates.
func (s Inbox) templateHeads(ctx context.Context, ids []int64) (map[int64]template.Template, error) {
	rows, err := s.Pool.Query(ctx, `select id, shop_number, name, claim_url from templates where id = any($1)`, ids)
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

// MarkRead records how far the user has read; see [inbox.Store].
func (s Inbox) MarkRead(ctx context.Context, by user.ID, through time.Time) (stands time.Time, err error) {
	err = s.Pool.QueryRow(ctx, `insert into inbox_reads (user_id, read_through) values ($1, least($2, now()))
		on conflict (user_id) do update set read_through = greatest(inbox_reads.read_through, excluded.read_through)
		returning read_through`, by, through).Scan(&stands)
	return stands, pg.Translate(err)
}

// Arrival returns what a finished in-app batch shows the connected users; see
// [inbox.Store].
func (s Inbox) Arrival(ctx context.Context, k delivery.Kind, batchID int64, connected inbox.Connected) (inbox.Arrival, bool, error) {
	switch k {
	case delivery.KindCampaign, delivery.KindTest:
		return s.arrivalOf(ctx, batchID, connected, s.campaignMessages)
	case delivery.KindNotice:
		return s.arrivalOf(ctx, batchID, connected, s.noticeMessages)
	}
	return s.reminderArrival(ctx, batchID, connected)
}

// idSet is a stored set as [inbox.Users].
type idSet struct{ *roaring64.Bitmap }

// Len is part of [inbox.Users].
func (s idSet) Len() int { return int(s.GetCardinality()) }

// Contains is part of [inbox.Users].
func (s idSet) Contains(id user.ID) bool { return s.Bitmap.Contains(uint64(id)) }

// All is part of [inbox.Users].
func (s idSet) All() iter.Seq[user.ID] {
	return func(yield func(user.ID) bool) {
		for it := s.Iterator(); it.HasNext(); {
			if !yield(user.ID(it.Next())) {
				return
			}
		}
	}
}

// recentSQL are the users and ends of up to $2 app batches that have ended since
// $1, and all users if dead letters were replayed lately: a replay leaves a
// batch's end as it was.
const recentSQL = `
(select from_user, to_user, finished_at from batches where channel = 0 and finished_at >= $1 limit $2)
union all
select 0, 9223372036854775807, now() where exists (select from dead_letter_jobs where state = 'running' or finished_at >= $1 - interval '1 hour')`

// Recent is part of [inbox.Store].
func (s Inbox) Recent(ctx context.Context, since time.Time, limit int) ([]inbox.Span, bool, error) {
	rows, err := s.Pool.Query(ctx, recentSQL, since, limit+1)
	if err != nil {
		return nil, false, pg.Translate(err)
	}
	spans, err := pgx.CollectRows(rows, pgx.RowToStructByPos[inbox.Span])
	return spans, len(spans) <= limit, pg.Translate(err)
}

// arrivalOf returns what a batch shows each of the connected users in their
// language; false if it reached none of them.
func (s Inbox) arrivalOf(ctx context.Context, batchID int64, connected inbox.Connected,
	read func(context.Context, int64, inbox.Connected) (map[user.ID]inbox.Message, error)) (inbox.Arrival, bool, error) {
	messages, err := read(ctx, batchID, connected)
	return inbox.ArrivalOf(messages), err == nil && len(messages) > 0, err
}

// reminderArrival returns what a finished in-app batch of reminders,
// corrections or cancellations shows, which is the same for all its recipients.
func (s Inbox) reminderArrival(ctx context.Context, batchID int64, connected inbox.Connected) (inbox.Arrival, bool, error) {
	var from, to user.ID
	var a inbox.Arrival
	var d reminder.Delivered
	var sent []byte
	var t template.Template
	err := s.Pool.QueryRow(ctx, `
		select b.kind, b.owner_id, b.template_id, coalesce(s.slot, 0), coalesce(s.opens_at, a.opens_at), b.due_at, b.from_user, b.to_user,
			b.sent, coalesce(b.finished_at, now()), t.shop_number, t.name, t.claim_url
		from batches b
		left join slots s on b.kind = 'reminder' and s.id = b.owner_id
		left join announcements a on b.kind in ('correction', 'cancelled') and a.id = b.owner_id
		join templates t on t.id = b.template_id
		where b.id = $1 and b.channel = 0 and coalesce(s.id, a.id) is not null`, batchID).
		Scan(&d.Kind, &d.SlotID, &d.TemplateID, &d.Slot, &d.OpensAt, &d.DueAt, &from, &to, &sent, &d.At, &t.ShopNumber, &t.Name, &t.ClaimURL)
	if err != nil {
		return a, false, pg.Translate(err)
	}
	set, err := pg.DecodeSet(sent)
	shown := messageOf(d, t)
	a.Message = func(user.ID) inbox.Message { return shown }
	if err == nil {
		a.Users = connected(from, to, idSet{set})
	}
	return a, len(a.Users) > 0, err
}
