package delivery

import (
	"net/url"
	"sync"
	"time"

	"dropbell/domain/message"
	"dropbell/domain/user"
)

// maxRendered bounds how many forms one [Renderer] keeps. All existing zones in two languages are
// about 1,200 forms; real audiences use a few dozen.
const maxRendered = 1024

// slotMinutes is the distance between neighbouring slots, in minutes before the opening.
const slotMinutes = 5

// Render returns the message about s over the channel for one reader, with texts of the book; see
// [message.Book]. Previews, test messages and recipients get the same content.
func Render(book *message.Book, s Subject, c Channel, u user.User) Content {
	return *NewRenderer(book, s, c).For(u)
}

// RenderCopy is [Render] with the given variant of a message that staff wrote, even if the reader
// would get another variant. [HeldOut] is rendered as the first variant.
func RenderCopy(book *message.Book, s Subject, c Channel, variant int, u user.User) Content {
	if s.Copy == nil || len(s.Copy.Variants) == 0 {
		return Content{}
	}
	return *NewRenderer(book, s, c).version(max(variant, 0), u)
}

// Facts returns the facts that the message contains.
func (s Subject) Facts() message.Facts {
	f := message.Facts{Kind: s.Kind, Drop: s.TemplateName, Description: s.Description, Shop: s.ShopName, Worth: s.Worth, OpensAt: s.OpensAt, EndsAt: s.EndsAt, Link: s.Link()}
	switch s.Kind {
	case KindReminder:
		f.Minutes = s.minutes()
	case KindNotice:
		f.Days = s.Slot
	case KindWon:
		f.Hours = s.AcceptHours
	}
	return f
}

// minutes returns the minutes until the opening that a reminder shows; 0 = less than one minute.
func (s Subject) minutes() int {
	if s.Late {
		return max(0, int(s.Left/time.Minute))
	}
	return s.Slot * slotMinutes
}

// slotMinute bounds the delay of a reminder that still names its slot's distance: if the time
// left is shorter than that distance by slotMinute or more, the reminder is Late and names the
// time left.
const slotMinute = time.Minute

// At returns the subject of a message that is sent at now.
func (s Subject) At(now time.Time) Subject {
	if s.Kind != KindReminder || s.OpensAt.IsZero() {
		return s
	}
	s.Left = s.OpensAt.Sub(now)
	s.Late = s.Left <= time.Duration(s.Slot)*slotMinutes*time.Minute-slotMinute
	return s
}

// Link returns the link of Copy or else ClaimURL, or "" if readers may not be sent there: a cancelled drop has nothing to
// claim, and only http and https links are allowed.
func (s Subject) Link() string {
	address := s.ClaimURL
	if s.Copy != nil && s.Copy.Link != "" {
		address = s.Copy.Link
	}
	u, err := url.Parse(address)
	if s.Kind == KindCancelled || err != nil || !message.Followed(address) {
		return ""
	}
	return u.String()
}

// OwnPage makes the message lead to page(s.TemplateID) if the drop has no claim address. A link of
// Copy comes first.
func (s *Subject) OwnPage(page func(templateID int64) string) {
	if s.ClaimURL == "" && s.TemplateID != 0 {
		s.ClaimURL = page(s.TemplateID)
	}
}

// ResultPage makes a message about the result of a draw lead to page(s.TemplateID), where the draw can be checked.
func (s *Subject) ResultPage(page func(templateID int64) string) {
	if page != nil && (s.Kind == KindWon || s.Kind == KindLost) {
		s.ClaimURL = page(s.TemplateID)
	}
}

// LinkOf returns the link in the message of one reader: the tracked address if there is one,
// otherwise [Subject.Link]. It is "" for a message without a link.
func (s Subject) LinkOf(id user.ID, variant int) string {
	if link := s.Link(); link == "" || s.Track == nil {
		return link
	}
	return s.Track(id, variant, "")
}

// A Renderer renders one subject. The parts that readers of one language and zone share are
// rendered once. It is safe for concurrent use.
type Renderer struct {
	subject Subject
	channel Channel
	book    *message.Book
	names   bool // a text names its reader
	varies  bool // readers of one language and zone may get different texts
	tracked bool // every reader gets separate tracked links

	mu    sync.RWMutex
	forms map[reader]*form
}

// reader is the key of a rendered form. The zone is kept by name: looking up a location parses
// its rules, which costs more than rendering.
type reader struct {
	locale, zone string
	variant      int
}

// form is the part of a message that readers of one language, zone and variant share: a text with
// places for each reader's own values, or the whole content.
type form struct {
	*message.Form
	shared *Content // nil if something is the reader's own
}

// NewRenderer returns a renderer for messages about s over the channel, with texts of the book;
// nil = the built-in texts. Only mails get HTML.
func NewRenderer(book *message.Book, s Subject, c Channel) *Renderer {
	r := &Renderer{subject: s, channel: c, book: book, forms: map[reader]*form{}, tracked: s.Track != nil && s.Link() != ""}
	if s.Copy == nil {
		r.names = book.Uses(s.Kind, r.over(), message.VarUser)
		r.varies = r.names || r.tracked && book.Uses(s.Kind, r.over(), message.VarLink)
		return r
	}
	targets := s.Track != nil && len(s.Copy.Targets()) > 0
	r.tracked = r.tracked || targets
	r.names = s.Copy.uses(message.VarUser)
	// A mail's button leads to the link, whether the text names it or not.
	r.varies = r.names || targets || r.tracked && (c == Email || s.Copy.uses(message.VarLink)) || s.Copy.Divided()
	return r
}

func (r *Renderer) over() message.Channel { return message.Channel(r.channel.String()) }

// For returns the message for u; it must not be changed. Readers of the same language and zone
// get the same content, unless it contains values of a single reader.
func (r *Renderer) For(u user.User) *Content {
	variant := 0
	if c := r.subject.Copy; c != nil {
		if len(c.Variants) == 0 {
			return &Content{}
		}
		variant = max(c.Pick(r.subject.OwnerID, u.ID), 0)
	}
	return r.version(variant, u)
}

func (r *Renderer) version(variant int, u user.User) *Content {
	f := r.form(reader{u.Locale, u.Timezone, variant}, u)
	if f.shared != nil {
		return f.shared
	}
	if !r.tracked {
		c := f.Content(u.Name, "")
		return &c
	}
	c := f.Tracked(u.Name, r.subject.LinkOf(u.ID, variant), func(address string) string { return r.subject.Track(u.ID, variant, address) })
	return &c
}

// Values returns the variables of the message as u reads them, in the language of the text that u
// gets.
func (r *Renderer) Values(u user.User) map[string]string {
	variant := 0
	if c := r.subject.Copy; c != nil && len(c.Variants) > 0 {
		variant = max(c.Pick(r.subject.OwnerID, u.ID), 0)
	}
	facts, language := r.subject.Facts(), message.BuiltInLanguage(u.Locale)
	if r.subject.Copy == nil || len(r.subject.Copy.Variants) > 0 {
		language = r.compiled(reader{u.Locale, u.Timezone, variant}).Language
	}
	facts.Description = r.book.Description(language, facts.Description)
	return facts.Values(language, r.book.Name(language, facts.Drop), u.Zone(), u.Name, r.subject.LinkOf(u.ID, variant))
}

// form returns the form for key. It is made at the first call.
func (r *Renderer) form(key reader, u user.User) *form {
	r.mu.RLock()
	f := r.forms[key]
	r.mu.RUnlock()
	if f != nil {
		return f
	}
	f = r.newForm(key, u)
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := r.forms[key]; first != nil {
		return first
	}
	if len(r.forms) < maxRendered {
		r.forms[key] = f
	}
	return f
}

func (r *Renderer) newForm(key reader, u user.User) *form {
	text := r.compiled(key)
	facts := r.subject.Facts()
	facts.Description = r.book.Description(text.Language, facts.Description)
	f := &form{Form: text.Bind(facts, r.book.Name(text.Language, facts.Drop), u.Zone(), r.tracked)}
	if !f.Personal() {
		c := f.Content("", "")
		f.shared = &c
	}
	return f
}

// compiled returns the text for readers with that key: from the book, or the text that staff
// wrote for this message.
func (r *Renderer) compiled(key reader) *message.Compiled {
	if r.subject.Copy == nil {
		return r.book.Compiled(r.subject.Kind, r.over(), key.locale)
	}
	text, tag := r.subject.Copy.Variants[min(key.variant, len(r.subject.Copy.Variants)-1)].For(key.locale)
	language := tag
	if tag == "" { // the default, in a language that is not known
		language = message.BuiltInLanguage(key.locale)
	}
	return r.book.Campaign(r.over(), language, text.Message())
}
