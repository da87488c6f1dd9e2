package delivery

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	texts "dropbell/domain/message"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// Inbox derives in-app messages from batches; see [inbox.Store].
type Inbox struct {
	*pg.DB
	// Texts has the texts of messages; nil = the built-in ones.
	Texts texts.Source
	// Track, if set, returns the tracked address that replaces a campaign's link
	// in one user's text.
	Track func(campaign int64, id user.ID, variant int) string
	// TrackDrop, if set, returns the tracked address that replaces the link in a
	// reminder or a correction.
	TrackDrop func(s *delivery.Subject, c delivery.Channel, id user.ID) string
}

// NewInbox returns the store on db.
func NewInbox(db *pg.DB) Inbox { return Inbox{DB: db} }

// inboxWindow is the number of a user's newest reservations, including cancelled
// ones, that the inbox reads.
const inboxWindow = 200

// Page derives the user's in-app messages from the batches that reached the user;
// no message is stored separately.
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
	about, err := s.heads(ctx, ids)
	for _, d := range all {
		if d.Outcome == delivery.Sent || d.Outcome == delivery.Recovered {
			p.all = append(p.all, reminderOf(d, about[d.TemplateID]))
		}
	}
	return err
}

// paging is a page that is being composed. all are the messages found so far; the
// page shows some of them and counts others as unread.
type paging struct {
	inbox.Page
	before time.Time // zero = now
	limit  int
	all    []message
}

// count counts the unread messages and returns the messages that the page shows,
// newest first. The next page begins before a time, so messages of the same time
// stay on one page.
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

// complete reports whether messages of the instant or earlier cannot change the
// page. The page must be full of newer messages. Also, such messages must be read
// already, or the number of unread messages must have reached its maximum.
func (p *paging) complete(instant time.Time) bool {
	shown := p.count()
	return len(shown) >= p.limit && instant.Before(shown[len(shown)-1].At) &&
		(p.Unread == inbox.MaxUnread || !instant.After(p.ReadThrough))
}

// message is one message of a page, with the subject of its text. batch, if set,
// is the campaign's batch from which the other fields are still to be read.
type message struct {
	inbox.Message
	subject delivery.Subject
	batch   int64
}

// render adds the content of campaigns and the texts of the shown messages.
func (s Inbox) render(ctx context.Context, by user.ID, shown []message) ([]inbox.Message, error) {
	shown, err := s.readCampaigns(ctx, shown)
	if err != nil {
		return nil, err
	}
	items := make([]inbox.Message, len(shown))
	if len(shown) == 0 {
		return items, nil
	}
	readers, err := s.readers(ctx, []user.ID{by})
	if err != nil {
		return nil, err
	}
	for i, m := range shown {
		r, err := s.renderer(ctx, m.subject)
		if err != nil {
			return nil, err
		}
		items[i] = m.said(r, readers[by])
	}
	return items, nil
}

// renderer returns the renderer of a subject's message in the app. Apps navigate
// by ClaimURL, which stays the claim page itself. A link in a text is the tracked
// link.
func (s Inbox) renderer(ctx context.Context, about delivery.Subject) (*delivery.Renderer, error) {
	switch of := about; {
	case s.Track != nil && about.Kind == delivery.KindCampaign:
		about.Track = func(id user.ID, variant int) string { return s.Track(of.OwnerID, id, variant) }
	case s.TrackDrop != nil && (about.Kind == delivery.KindReminder || about.Kind == delivery.KindCorrection):
		about.Track = func(id user.ID, _ int) string { return s.TrackDrop(&of, delivery.App, id) }
	}
	if s.Texts == nil {
		return delivery.NewRenderer(nil, about, delivery.App), nil
	}
	book, err := s.Texts.Book(ctx, about.Place(), about.TextsUpTo)
	return delivery.NewRenderer(book, about, delivery.App), err
}

// said returns the message with its text for u.
func (m message) said(r *delivery.Renderer, u user.User) inbox.Message {
	content, item := r.For(u), m.Message
	item.Title, item.Text, item.ClaimURL = content.Title, content.Text, m.subject.Link()
	return item
}

// toAll returns the message for each of the users.
func (s Inbox) toAll(ctx context.Context, m message, ids []user.ID) (map[user.ID]inbox.Message, error) {
	readers, err := s.readers(ctx, ids)
	if err != nil {
		return nil, err
	}
	r, err := s.renderer(ctx, m.subject)
	if err != nil {
		return nil, err
	}
	items := make(map[user.ID]inbox.Message, len(ids))
	for id, u := range readers {
		items[id] = m.said(r, u)
	}
	return items, nil
}

// reminderOf returns a reminder, a correction or a cancellation as shown in the
// app. The text states the time that was left when the message was recorded.
func reminderOf(d reminder.Delivered, about delivery.Subject) message {
	shop, _ := strconv.ParseInt(about.ShopNumber, 10, 64)
	about.Kind, about.TemplateID, about.Slot, about.OpensAt, about.TextsUpTo = d.Kind, d.TemplateID, int(d.Slot), d.OpensAt, d.TextsUpTo
	return message{Message: inbox.Message{
		ID:         inbox.MessageID(d.Kind, d.SlotID, d.DueAt),
		TemplateID: d.TemplateID, ShopNumber: shop, Kind: d.Kind, Slot: d.Slot,
		OpensAt: d.OpensAt, DueAt: d.DueAt, At: d.At, Name: about.TemplateName,
	}, subject: about.At(d.At)}
}

// headColumns are the facts about template t and shop h that messages show; see
// [headFields].
const headColumns = `t.shop_number::text, t.name, h.name, ` + pg.ClaimURL + `, ` + pg.SubjectColumns

func headFields(about *delivery.Subject) []any {
	return append([]any{&about.ShopNumber, &about.TemplateName, &about.ShopName, &about.ClaimURL}, pg.SubjectFields(about)...)
}

// heads returns the facts about the templates that messages show.
func (s Inbox) heads(ctx context.Context, ids []int64) (map[int64]delivery.Subject, error) {
	rows, err := s.Pool.Query(ctx, `select t.id, `+headColumns+` from templates t join shops h on h.number = t.shop_number where t.id = any($1)`, ids)
	if err != nil {
		return nil, pg.Translate(err)
	}
	heads := map[int64]delivery.Subject{}
	var about delivery.Subject
	_, err = pgx.ForEachRow(rows, append([]any{&about.TemplateID}, headFields(&about)...), func() error {
		heads[about.TemplateID] = about
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

// Arrival returns the messages of a finished in-app batch for the connected
// users; see [inbox.Store].
func (s Inbox) Arrival(ctx context.Context, k delivery.Kind, batchID int64, connected inbox.Connected) (inbox.Arrival, bool, error) {
	switch k {
	case delivery.KindCampaign, delivery.KindTest:
		return s.arrivalOf(ctx, batchID, connected, s.campaignMessages)
	case delivery.KindNotice:
		return s.arrivalOf(ctx, batchID, connected, s.noticeMessages)
	}
	return s.arrivalOf(ctx, batchID, connected, s.reminderMessages)
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

// recentSQL returns the user ranges and ends of up to $2 app batches that have
// ended since $1. If dead letters were replayed lately, it also returns the range
// of all users, because a replay does not change a batch's end.
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

// arrivalOf returns the messages of a batch for each connected user, in the
// user's language; false if the batch reached none of them.
func (s Inbox) arrivalOf(ctx context.Context, batchID int64, connected inbox.Connected,
	read func(context.Context, int64, inbox.Connected) (map[user.ID]inbox.Message, error)) (inbox.Arrival, bool, error) {
	messages, err := read(ctx, batchID, connected)
	return inbox.ArrivalOf(messages), err == nil && len(messages) > 0, err
}

// reminderMessages returns the messages of a finished app batch of reminders,
// corrections or cancellations for the connected users whom the batch reached.
func (s Inbox) reminderMessages(ctx context.Context, batchID int64, connected inbox.Connected) (map[user.ID]inbox.Message, error) {
	var from, to user.ID
	var d reminder.Delivered
	var sent []byte
	var about delivery.Subject
	err := s.Pool.QueryRow(ctx, `
		select b.kind, b.owner_id, b.template_id, coalesce(s.slot, 0), coalesce(s.opens_at, a.opens_at), b.due_at, b.from_user, b.to_user,
			b.sent, coalesce(b.finished_at, now()), b.messages_upto, `+headColumns+`
		from batches b
		left join slots s on b.kind = 'reminder' and s.id = b.owner_id
		left join announcements a on b.kind in ('correction', 'cancelled') and a.id = b.owner_id
		join templates t on t.id = b.template_id join shops h on h.number = t.shop_number
		where b.id = $1 and b.channel = 0 and coalesce(s.id, a.id) is not null`, batchID).
		Scan(append([]any{&d.Kind, &d.SlotID, &d.TemplateID, &d.Slot, &d.OpensAt, &d.DueAt, &from, &to, &sent, &d.At, &d.TextsUpTo}, headFields(&about)...)...)
	if err != nil {
		return nil, pg.Translate(err)
	}
	set, err := pg.DecodeSet(sent)
	if err != nil {
		return nil, err
	}
	ids := connected(from, to, idSet{set})
	if len(ids) == 0 {
		return nil, nil
	}
	return s.toAll(ctx, reminderOf(d, about), ids)
}
