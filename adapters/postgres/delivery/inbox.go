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
	Track func(campaign int64, id user.ID, variant int, target string) string
	// TrackDrop, if set, returns the tracked address that replaces the link in a
	// reminder or a correction.
	TrackDrop func(s *delivery.Subject, c delivery.Channel, id user.ID) string
	// DrawPage returns the page of a draw; see [delivery.Service].
	DrawPage func(templateID int64) string
	memory   *inboxMemory
	texts    *inboxTexts
	marks    *pg.Committer[user.ID, mark, time.Time]
	pages    *pg.Committer[user.ID, user.ID, pageRows]
}

// NewInbox returns the store on db. It remembers the batches of topics that many
// readers ask for, reads the rows of concurrent pages together, and stores marks of reading in
// groups; see [Inbox.Close].
func NewInbox(db *pg.DB, g pg.Grouping) Inbox {
	s := Inbox{DB: db, memory: newInboxMemory(db), texts: newInboxTexts(textsFor)}
	cfg := g.Config(db)
	cfg.LockWait, cfg.Name = pg.LockWait, "mark of reading"
	s.marks = pg.NewFairCommitter(cfg, mark.of, func(m mark) int64 { return int64(m.user) }, s.storeMarks)
	s.pages = pg.NewCommitter[user.ID](pageGroups(g, db), nil, s.readPages)
	return s
}

// Close ends the goroutines of the store, when all accepted marks are stored.
func (s Inbox) Close() {
	s.marks.Close()
	s.pages.Close()
	s.memory.close()
}

// inboxWindow is the number of a user's newest reservations, including cancelled
// ones, that the inbox reads.
const inboxWindow = 200

// Page derives the user's in-app messages from the batches that reached the user;
// no message is stored separately. One round trip, which concurrent pages share, reads the
// user's rows and the changes of remembered batches. Batches that are not remembered cost a
// second round trip, and content that is not remembered a third.
func (s Inbox) Page(ctx context.Context, by user.ID, before time.Time, limit int) (inbox.Page, error) {
	ctx = pg.Unlimited(ctx) // one call is most of the page, so it may take the time of the request
	p := paging{Page: inbox.Page{UserID: by}, before: before, limit: max(limit, 1), reader: user.User{ID: by}}
	rows, err := s.pages.Do(ctx, by)
	if err != nil {
		return p.Page, err
	}
	p.ReadThrough, p.reader, p.remembers = rows.readThrough, rows.reader, rows.remembers
	if err := s.addBatches(ctx, &p, rows.templates, rows.notices, rows.campaigns); err != nil {
		return p.Page, pg.Translate(err)
	}
	p.Items, err = s.render(ctx, p.reader, p.count())
	return p.Page, err
}

// addBatches adds the messages of the batches that reached the user. One round trip reads the
// batches that are not remembered, but for campaigns above the first.
func (s Inbox) addBatches(ctx context.Context, p *paging, templates []int64, notices bool, campaigns recentCampaigns) error {
	var reads []pg.Read
	var outcomes []reminder.Delivered
	if unknown := s.remembered(p, dropTopic, templates, 0); len(unknown) > 0 {
		reads = append(reads, pg.ReadOutcomes(&outcomes, p.UserID, unknown, []delivery.Channel{delivery.App}, append(delivery.Announced(), delivery.KindReminder)...))
	}
	if notices {
		reads = append(reads, p.notices())
	}
	further, probes := s.campaigns(p, campaigns)
	if err := s.PlannedTogether(ctx, append(reads, probes...)...); err != nil {
		return err
	}
	for _, d := range outcomes {
		if d.Outcome == delivery.Sent || d.Outcome == delivery.Recovered {
			p.all = append(p.all, reminderOf(d))
		}
	}
	return s.addCampaigns(ctx, p, further, campaigns)
}

// remembered adds the user's messages of remembered topics to the page, from batches of owners
// with ids from first on, and returns the ids of the topics that must be read from the database.
func (s Inbox) remembered(p *paging, kind int16, ids []int64, first int64) (unknown []int64) {
	if !p.remembers {
		return ids
	}
	return s.memory.split(kind, ids, first, p.UserID, &p.all)
}

// paging is a page that is being composed. all are the messages found so far; the
// page shows some of them and counts others as unread.
type paging struct {
	inbox.Page
	before    time.Time // zero = now
	limit     int
	all       []message
	reader    user.User
	remembers bool // the memory knows all changes up to this page
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
// is the campaign's batch from which the other fields are still to be read. A
// headless message lacks the facts about its template; see [message.about].
type message struct {
	inbox.Message
	subject  delivery.Subject
	batch    int64
	headless bool
	campaign campaignKey // of a remembered batch of a campaign
}

// rendered is a part of what render adds: the statements that read it, and a function that adds
// it to the messages when the statements were executed.
type rendered struct {
	reads []pg.Read
	add   func()
}

// render adds the facts about templates, the content of campaigns and the texts of
// the shown messages.
func (s Inbox) render(ctx context.Context, reader user.User, shown []message) ([]inbox.Message, error) {
	content, heads := s.readCampaigns(shown), s.readHeads(shown)
	if err := s.PlannedTogether(ctx, slices.Concat(content.reads, heads.reads)...); err != nil {
		return nil, pg.Translate(err)
	}
	content.add()
	heads.add()
	shown = slices.DeleteFunc(shown, func(m message) bool { return m.batch != 0 }) // removed since the probe
	items := make([]inbox.Message, len(shown))
	for i, m := range shown {
		text, err := s.text(ctx, m)
		if err != nil {
			return nil, err
		}
		items[i] = m.said(text, reader)
	}
	return items, nil
}

// renderer returns the renderer of a subject's message in the app. Apps navigate
// by ClaimURL, which stays the claim page itself. A link in a text is the tracked
// link.
func (s Inbox) renderer(ctx context.Context, about delivery.Subject) (*delivery.Renderer, error) {
	switch of := about; {
	case s.Track != nil && about.Kind == delivery.KindCampaign:
		about.Track = func(id user.ID, variant int, target string) string { return s.Track(of.OwnerID, id, variant, target) }
	case s.TrackDrop != nil && (about.Kind == delivery.KindReminder || about.Kind == delivery.KindCorrection):
		about.Track = func(id user.ID, _ int, _ string) string { return s.TrackDrop(&of, delivery.App, id) }
	}
	if s.Texts == nil {
		return delivery.NewRenderer(nil, about, delivery.App), nil
	}
	book, err := s.Texts.Book(ctx, about.Place(), about.TextsUpTo)
	return delivery.NewRenderer(book, about, delivery.App), err
}

// toAll returns the message for each of the users.
func (s Inbox) toAll(ctx context.Context, m message, ids []user.ID) (map[user.ID]inbox.Message, error) {
	readers, err := s.readers(ctx, ids)
	if err != nil {
		return nil, err
	}
	text, err := s.text(ctx, m)
	if err != nil {
		return nil, err
	}
	items := make(map[user.ID]inbox.Message, len(ids))
	for id, u := range readers {
		items[id] = m.said(text, u)
	}
	return items, nil
}

// reminderOf returns a reminder, a correction or a cancellation as shown in the
// app, without the facts about its template.
func reminderOf(d reminder.Delivered) message {
	return message{headless: true, Message: inbox.Message{
		ID:         inbox.MessageID(d.Kind, d.SlotID, d.DueAt),
		TemplateID: d.TemplateID, Kind: d.Kind, Slot: d.Slot, OpensAt: d.OpensAt, DueAt: d.DueAt, At: d.At,
	}, subject: delivery.Subject{Kind: d.Kind, TemplateID: d.TemplateID, Slot: int(d.Slot), OpensAt: d.OpensAt, TextsUpTo: d.TextsUpTo}}
}

// headColumns are the facts about template t and shop h that messages show; see
// [headFields].
const headColumns = `t.shop_number::text, t.name, h.name, ` + pg.ClaimURL + `, ` + pg.SubjectColumns

func headFields(about *delivery.Subject) []any {
	return append([]any{&about.ShopNumber, &about.TemplateName, &about.ShopName, &about.ClaimURL}, pg.SubjectFields(about)...)
}

// mark is how far a user has read.
type mark struct {
	user    user.ID
	through time.Time
}

func (m mark) of() user.ID { return m.user }

// MarkRead records how far the user has read; see [inbox.Store]. Concurrent marks
// are stored in groups. A row that another session has locked delays the marks of its user only.
func (s Inbox) MarkRead(ctx context.Context, by user.ID, through time.Time) (time.Time, error) {
	return s.marks.Do(ctx, mark{by, through})
}

// storeMarks stores the marks of different users. Rows are locked in the order of
// the users.
func (s Inbox) storeMarks(ctx context.Context, marks []mark) ([]time.Time, error) {
	users, through := make([]user.ID, len(marks)), make([]time.Time, len(marks))
	for i, m := range marks {
		users[i], through[i] = m.user, m.through
	}
	stands := make(map[user.ID]time.Time, len(marks))
	err := s.PlannedForGroups(ctx, `insert into inbox_reads (user_id, read_through)
		select u, least(t, now()) from unnest($1::bigint[], $2::timestamptz[]) as m (u, t) order by u
		on conflict (user_id) do update set read_through = greatest(inbox_reads.read_through, excluded.read_through)
		returning user_id, read_through`, []any{users, through}, func(rows pgx.Rows) error {
		var id user.ID
		var at time.Time
		_, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { stands[id] = at; return nil })
		return err
	})
	list := make([]time.Time, len(marks))
	for i, m := range marks {
		list[i] = stands[m.user]
	}
	return list, err
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
	spans, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, recentSQL, since, limit+1), pgx.RowToStructByPos[inbox.Span])
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
		left join announcements a on b.kind in `+pg.Announced+` and a.id = b.owner_id
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
	m := reminderOf(d)
	m.about(about)
	return s.toAll(ctx, m, ids)
}
