package delivery

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// textsFor is how long the facts and texts of messages are used that are the same for all readers. A
// changed name of a drop is on the pages within four times this time: twice for the facts, and
// twice for the texts that contain them.
const textsFor = time.Second

// inboxTexts remembers for a moment what the pages of many readers share: the facts about
// templates, the content of campaigns, and the renderers with the texts of each language.
type inboxTexts struct {
	mu        sync.Mutex
	heads     moment[int64, delivery.Subject]
	campaigns moment[campaignKey, message]
	renderers moment[rendererKey, shownText]
}

func newInboxTexts(lasting time.Duration) *inboxTexts {
	t := &inboxTexts{}
	t.heads.lasting, t.campaigns.lasting, t.renderers.lasting = lasting, lasting, lasting
	return t
}

// A moment is a map of values that are used for the time lasting. Then one caller must read the value
// again; until that caller is done, other callers use the value for a further moment.
type moment[K comparable, V any] struct {
	lasting  time.Duration
	begun    time.Time
	now, old map[K]V
}

// get returns the value; false = the caller must read it and put it.
func (m *moment[K, V]) get(k K) (V, bool) {
	if t := time.Now(); t.Sub(m.begun) > m.lasting {
		if m.old = m.now; t.Sub(m.begun) > 2*m.lasting {
			m.old = nil
		}
		m.begun, m.now = t, map[K]V{}
	}
	if v, is := m.now[k]; is {
		return v, true
	}
	if v, is := m.old[k]; is {
		m.now[k] = v // for the other callers
	}
	var none V
	return none, false
}

// put remembers a value that was just read.
func (m *moment[K, V]) put(k K, v V) {
	if m.now == nil {
		m.begun, m.now = time.Now(), map[K]V{}
	}
	m.now[k] = v
}

// campaignKey is a campaign and the version of its texts.
type campaignKey struct{ campaign, upTo int64 }

// rendererKey is everything in which the subjects of one kind of message can differ.
type rendererKey struct {
	kind                 delivery.Kind
	template, owner      int64
	opensAt, upTo, times int64
}

// shownText is a renderer with the link of its subject.
type shownText struct {
	*delivery.Renderer
	link string
}

// head returns the facts about a template.
func (t *inboxTexts) head(template int64) (delivery.Subject, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heads.get(template)
}

// campaign completes m from another reader's message of the same campaign and texts.
func (t *inboxTexts) campaign(m *message) (known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.campaign.campaign == 0 {
		return false
	}
	of, known := t.campaigns.get(m.campaign)
	if known {
		own := m.Message
		*m = of
		m.ID, m.DueAt, m.At, m.Read = own.ID, own.DueAt, own.At, own.Read
	}
	return known
}

// keep remembers facts about templates, and complete messages of campaigns.
func (t *inboxTexts) keep(heads map[int64]delivery.Subject, campaigns map[campaignKey]message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, head := range heads {
		t.heads.put(id, head)
	}
	for key, m := range campaigns {
		t.campaigns.put(key, m)
	}
}

// said returns the message with its text for u.
func (m message) said(text shownText, u user.User) inbox.Message {
	content, item := text.For(u), m.Message
	item.Title, item.Text, item.ClaimURL = content.Title, content.Text, text.link
	return item
}

// text returns the renderer of the message. Messages of tests and notices share none.
func (s Inbox) text(ctx context.Context, m message) (shownText, error) {
	of := &m.subject
	key := rendererKey{of.Kind, of.TemplateID, m.campaign.campaign, of.OpensAt.Unix(), of.TextsUpTo, int64(of.Slot)}
	shared := of.Kind == delivery.KindReminder && !of.Late || of.Kind == delivery.KindCorrection || of.Kind == delivery.KindCancelled || of.Kind == delivery.KindWaitlist || of.Kind == delivery.KindOffer || of.Kind == delivery.KindWon || of.Kind == delivery.KindLost || key.owner != 0
	if shared {
		s.texts.mu.Lock()
		known, is := s.texts.renderers.get(key)
		s.texts.mu.Unlock()
		if is {
			return known, nil
		}
	}
	of.ResultPage(s.DrawPage)
	r, err := s.renderer(ctx, m.subject)
	text := shownText{r, m.subject.Link()}
	if shared && err == nil {
		s.texts.mu.Lock()
		s.texts.renderers.put(key, text)
		s.texts.mu.Unlock()
	}
	return text, err
}

// readHeads reads the facts about the templates of the headless messages.
func (s Inbox) readHeads(shown []message) rendered {
	var ids []int64
	asked := map[int64]bool{}
	for i := range shown {
		if m := &shown[i]; m.headless {
			if head, known := s.texts.head(m.TemplateID); known {
				m.about(head)
			} else if !asked[m.TemplateID] {
				asked[m.TemplateID] = true
				ids = append(ids, m.TemplateID)
			}
		}
	}
	if len(ids) == 0 {
		return rendered{add: func() {}}
	}
	heads := make(map[int64]delivery.Subject, len(ids))
	return rendered{[]pg.Read{readHeads(heads, ids)}, func() {
		for i := range shown {
			if m := &shown[i]; m.headless {
				m.about(heads[m.TemplateID])
			}
		}
		s.texts.keep(heads, nil)
	}}
}

// readHeads reads the facts about the templates that messages show.
func readHeads(heads map[int64]delivery.Subject, ids []int64) pg.Read {
	return pg.Read{SQL: `select t.id, ` + headColumns + ` from templates t join shops h on h.number = t.shop_number where t.id = any($1)`, Args: []any{ids},
		Rows: func(rows pgx.Rows) error {
			var about delivery.Subject
			_, err := pgx.ForEachRow(rows, append([]any{&about.TemplateID}, headFields(&about)...), func() error {
				heads[about.TemplateID] = about
				return nil
			})
			return err
		}}
}

// about adds the facts about the template to a headless message. The text states the time that was
// left when the message was recorded.
func (m *message) about(head delivery.Subject) {
	m.ShopNumber, _ = strconv.ParseInt(head.ShopNumber, 10, 64)
	m.Name = head.TemplateName
	of := m.subject
	head.Kind, head.TemplateID, head.Slot, head.OpensAt, head.TextsUpTo = of.Kind, of.TemplateID, of.Slot, of.OpensAt, of.TextsUpTo
	m.subject, m.headless = head.At(m.At), false
}
