package delivery

import (
	"html/template"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"dropbell/domain/user"
)

// maxName bounds a template's name inside a message, in runes.
const maxName = 200

// maxRendered bounds how many contents one [Renderer] keeps. Every zone that
// exists in two languages is about 1,200; real audiences use a few dozen.
const maxRendered = 1024

// slotMinutes is the distance of neighbouring slots from the opening.
const slotMinutes = 5

// Render returns the message about s for a reader of locale in zone. The text is
// Chinese for every zh locale, else English. Text is the whole message in one
// paragraph, so that it can stand alone in an SMS; HTML is a complete mail.
//
// Names are printed on one line, without control and direction marks, and cut
// after 200 runes. A claim address that is not http or https is left out.
func Render(s Subject, locale string, zone *time.Location) Content {
	return render(s, locale, zone, true)
}

// render leaves HTML empty unless withPage is set: rendering the mail takes most
// of the time.
func render(s Subject, locale string, zone *time.Location, withPage bool) Content {
	language := wordingFor(locale)
	f := facts{
		kind: s.Kind,
		name: printable(s.TemplateName, language.unnamed),
		url:  s.Link(),
	}
	if s.Kind == KindReminder {
		f.minutes = s.minutes()
	}
	if s.Kind == KindNotice {
		f.days = s.Slot
	}
	if !s.OpensAt.IsZero() {
		f.when = language.when(s.OpensAt.In(zone))
	}

	w := language.words(f)
	text := w.lead
	if f.url != "" {
		text += w.link + f.url
	}
	content := Content{Title: w.title, Text: text}
	if withPage {
		content.HTML = page(w, f)
	}
	return content
}

// minutes are what a reminder says that are left until the opening; 0 = less
// than one.
func (s Subject) minutes() int {
	if s.Late {
		return max(0, int(s.Left/time.Minute))
	}
	return s.Slot * slotMinutes
}

// slotMinute is how much less than its slot's distance may be left for a
// reminder to name that distance.
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

// printable keeps a name from breaking lines, hiding text or turning the
// sentence around it. Joiners stay: scripts and emoji are written with them.
func printable(name, unnamed string) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case r == '\u200c' || r == '\u200d':
			return r
		case unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, name)
	visible = strings.Join(strings.Fields(visible), " ")
	if visible == "" {
		return unnamed
	}
	if runes := []rune(visible); len(runes) > maxName {
		return string(runes[:maxName-1]) + "…"
	}
	return visible
}

// Link returns ClaimURL if a reader may be sent there, else "": there is
// nothing to claim in a cancelled drop, and only http and https are followed.
func (s Subject) Link() string {
	u, err := url.Parse(s.ClaimURL)
	if s.Kind == KindCancelled || err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return ""
	}
	return u.String()
}

// LinkOf returns the link in the message of one reader: the tracked address if
// there is one, and the message has a link.
func (s Subject) LinkOf(id user.ID, variant int) string {
	if link := s.Link(); link == "" || s.Track == nil {
		return link
	}
	return s.Track(id, variant)
}

// tracked reports whether every reader has a link of their own.
func (s Subject) tracked() bool { return s.Track != nil && s.Link() != "" }

// page draws a mail; without paragraphs its text is w's lead.
func page(w words, f facts, paragraphs ...string) string {
	if paragraphs == nil {
		paragraphs = []string{w.lead}
	}
	var b strings.Builder
	// Executing a parsed template on strings into memory cannot fail.
	_ = mail.Execute(&b, map[string]any{
		"Lang": w.lang, "Title": w.title, "Eyebrow": w.eyebrow, "Name": f.name,
		"Leads": paragraphs, "URL": f.url, "Button": w.button, "Footer": w.footer,
	})
	return b.String()
}

// mail uses tables and inline styles because mail programs know little else;
// those that know style sheets get a dark page at night.
var mail = template.Must(template.New("mail").Parse(`<!DOCTYPE html>
<html lang="{{.Lang}}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark">
<title>{{.Title}}</title>
<style>
@media (prefers-color-scheme: dark) {
  .page { background: #11151c !important; } .card { background: #1b212b !important; border-color: #2c3440 !important; }
  .name { color: #f4f6fa !important; } .lead { color: #c6cdd8 !important; } .foot { color: #8b95a5 !important; }
  .eyebrow { color: #ff9d7a !important; }
}
</style></head>
<body class="page" style="margin:0;padding:0;background:#f3f4f7;">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" style="background:#f3f4f7;"><tr><td align="center" style="padding:32px 12px;">
<table role="presentation" class="card" width="100%" cellpadding="0" cellspacing="0" style="max-width:520px;background:#ffffff;border:1px solid #e3e6ec;border-radius:14px;font-family:-apple-system,'Segoe UI',Roboto,'PingFang SC','Microsoft YaHei',sans-serif;">
<tr><td style="padding:32px;">
{{with .Eyebrow}}<p class="eyebrow" style="margin:0 0 8px;font-size:14px;font-weight:600;color:#c2410c;">{{.}}</p>
{{end}}<h1 class="name" style="margin:0 0 16px;font-size:24px;line-height:1.3;color:#161a22;overflow-wrap:anywhere;"><bdi>{{.Name}}</bdi></h1>
{{range $i, $lead := .Leads}}<p class="lead" style="margin:{{if $i}}12px 0 0{{else}}0{{end}};font-size:16px;line-height:1.6;color:#3d4554;overflow-wrap:anywhere;">{{$lead}}</p>
{{end}}{{if .URL}}<table role="presentation" cellpadding="0" cellspacing="0" style="margin-top:24px;"><tr><td style="background:#c2410c;border-radius:8px;"><a href="{{.URL}}" style="display:inline-block;padding:13px 28px;font-size:16px;font-weight:600;color:#ffffff;text-decoration:none;">{{.Button}}</a></td></tr></table>
{{end}}</td></tr></table>
{{with .Footer}}<p class="foot" style="max-width:520px;margin:20px 0 0;font-family:-apple-system,'Segoe UI',Roboto,'PingFang SC','Microsoft YaHei',sans-serif;font-size:12px;line-height:1.5;color:#5f6878;">{{.}}</p>
{{end}}</td></tr></table>
</body></html>
`))

// A Renderer renders one subject once per language and zone, as far as readers
// share it. It is safe for concurrent use.
type Renderer struct {
	subject  Subject
	withPage bool // the HTML is wanted
	names    bool // staff's text names its reader
	personal bool // every reader gets a text of their own
	varies   bool // readers of one language and zone may get different texts

	mu       sync.RWMutex
	contents map[reader]*Content
	forms    map[reader]*form
}

// reader is what one rendering depends on. The zone is kept by name: looking
// up a location parses its rules, which costs more than rendering.
type reader struct {
	lang, zone string
	variant    int
}

// NewRenderer returns a renderer for messages about s over the channel. They
// are drawn as a page for mails only.
func NewRenderer(s Subject, c Channel) *Renderer {
	r := &Renderer{subject: s, withPage: c == Email, names: s.Copy.uses(VarName),
		contents: make(map[reader]*Content), forms: make(map[reader]*form)}
	// A mail's button leads to the link, whether the text names it or not.
	r.personal = r.names || s.Copy != nil && s.tracked() && (r.withPage || s.Copy.uses(VarLink))
	r.varies = r.personal || s.Copy != nil && (len(s.Copy.Variants) > 1 || s.Copy.HoldOut > 0)
	return r
}

// For returns the message in u's language and zone. Readers who share both
// share the content, which must not be changed.
func (r *Renderer) For(u user.User) *Content {
	if r.subject.Copy != nil {
		return r.letter(u)
	}
	key := reader{lang: wordingFor(u.Locale).lang, zone: u.Timezone}
	return r.shared(key, func() Content { return render(r.subject, key.lang, u.Zone(), r.withPage) })
}

// shared returns the content for key, rendered when it is first asked for.
func (r *Renderer) shared(key reader, render func() Content) *Content {
	r.mu.RLock()
	content := r.contents[key]
	r.mu.RUnlock()
	if content != nil {
		return content
	}

	rendered := render()
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := r.contents[key]; first != nil {
		return first
	}
	if len(r.contents) < maxRendered {
		r.contents[key] = &rendered
	}
	return &rendered
}
