// Package links serves the pages behind links in messages. With an unsubscribe link a user turns
// off a channel without signing in; a tracked link leads to a campaign's claim page. The link
// itself is the proof of the user's identity; see [user.Links].
package links

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/user"
	"dropbell/views/i18n"
	audiencepages "dropbell/views/pages/audience"
	"dropbell/views/static"
	"dropbell/views/ui"
	"dropbell/web/middleware"
)

// Prefix is where the pages live.
const Prefix = "/u"

const (
	maxBody = 16 << 10
	// perUser bounds the requests per minute with one link, perAddress the guesses per address.
	// Mail providers press the unsubscribe button from a few addresses for all their users, so a
	// valid link counts against its user only.
	perUser    = 60
	perAddress = 120
)

// Users stores the users' preferences; see [user.Service].
type Users interface {
	Preferences(ctx context.Context, id user.ID) (user.User, error)
	OptOut(ctx context.Context, id user.ID, mask, off uint8) (uint8, error)
}

// Standing has the standing reservations of users; see [series.Reservations].
type Standing interface {
	Of(ctx context.Context, by user.ID) ([]series.Standing, error)
	End(ctx context.Context, by user.ID, seriesID int64) error
}

// Deps are the dependencies of the pages. All are required except Standing, which is nil if there are no series.
type Deps struct {
	Users    Users
	Standing Standing
	Links    user.Links
	// Channels are the channels with a configured sender.
	Channels delivery.Available
	Now      func() time.Time
	Log      *slog.Logger
}

// Pages serves everything under [Prefix].
type Pages struct {
	Deps
	languages *i18n.Languages
	assets    *static.Assets
	users     *middleware.Limiter
	failed    *middleware.Limiter
	mux       *chi.Mux
}

// New returns the pages. It panics if the catalogues or assets embedded in the program cannot be
// read.
func New(d Deps) *Pages {
	languages, err := i18n.Load()
	if err != nil {
		panic(err)
	}
	assets, err := static.Load()
	if err != nil {
		panic(err)
	}
	p := &Pages{Deps: d, languages: languages, assets: assets, mux: chi.NewMux(),
		users: middleware.NewLimiter(perUser), failed: middleware.NewLimiter(perAddress)}
	p.mux.Get("/{token}", p.serve((*visit).show))
	p.mux.Head("/{token}", p.serve((*visit).show))
	p.mux.Post("/{token}", p.serve((*visit).change))
	missing := p.serve(func(*visit) error { return user.ErrLink })
	p.mux.NotFound(missing)
	p.mux.MethodNotAllowed(missing)
	return p
}

// ServeHTTP answers a request below the mount point.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// A visit is one request together with the content of its link.
type visit struct {
	*Pages
	w       http.ResponseWriter
	r       *http.Request
	frame   *ui.Frame
	id      user.ID
	channel delivery.Channel
	// failure is the page for a link that is invalid.
	failure func(status int) page
}

// A page can be drawn.
type page interface{ Page() templ.Component }

// serve checks the link before anything is done.
func (p *Pages) serve(do func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := p.visit(w, r, Prefix)
		err := v.admit()
		if err == nil {
			err = do(v)
		}
		if err != nil {
			v.fail(err)
		}
	}
}

// visit returns a request below prefix, in the visitor's language.
func (p *Pages) visit(w http.ResponseWriter, r *http.Request, prefix string) *visit {
	f := &ui.Frame{Languages: p.languages.All(), Assets: p.assets, Nonce: rand.Text(), Path: prefix, Now: p.Now(), Zone: time.UTC}
	f.Locale = p.languages.Match(r.Header.Get("Accept-Language"))
	h := w.Header()
	h.Set("Content-Security-Policy", ui.ContentSecurityPolicy(f.Nonce))
	h.Set("Referrer-Policy", "no-referrer") // the address is the key
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex")
	return &visit{Pages: p, w: w, r: r.WithContext(ui.With(r.Context(), f)), frame: f,
		failure: func(status int) page { return audiencepages.OptOutFailure{Status: status} }}
}

var errBusy = fault.New(fault.Throttled, "rate_limited", "too many requests")

func (v *visit) admit() error {
	id, channel, err := v.Links.Parse(chi.URLParam(v.r, "token"))
	limiter, key := v.users, middleware.LimitKey{Kind: 'u', Low: uint64(id)}
	if err != nil || !delivery.Channel(channel).Valid() {
		err = user.ErrLink
		q, r := middleware.Ensure(v.r)
		limiter, key = v.failed, middleware.AddressKey('l', q.ClientIP(r))
	}
	if limited := v.limit(limiter, key); limited != nil {
		return limited
	}
	v.id, v.channel = id, delivery.Channel(channel)
	return err
}

func (v *visit) limit(limiter *middleware.Limiter, key middleware.LimitKey) error {
	if d := limiter.Allow(key, v.Now()); !d.Allowed {
		return &fault.RetryAfter{Err: errBusy, After: d.RetryAfter}
	}
	return nil
}

// show changes nothing: mail programs load links before users do.
func (v *visit) show() error {
	u, err := v.Users.Preferences(v.r.Context(), v.id)
	if err != nil {
		return err
	}
	v.speak(u)
	page := audiencepages.OptOut{Action: v.r.URL.Path, Channel: v.channel, Offered: v.offered(), Off: u.OptOuts, Saved: v.r.URL.Query().Has("saved")}
	if v.Standing != nil {
		if page.Standing, err = v.Standing.Of(v.r.Context(), v.id); err != nil {
			return err
		}
	}
	return v.draw(http.StatusOK, page.Page())
}

// speak uses the user's own language, if it is known.
func (v *visit) speak(u user.User) {
	v.frame.Locale = v.languages.Match(u.Locale, v.r.Header.Get("Accept-Language"))
}

// offered returns the channels to choose from: the channels in use, and the link's own.
func (v *visit) offered() []delivery.Channel {
	var list []delivery.Channel
	for _, c := range delivery.AllChannels() {
		if v.Channels.Has(c) || c == v.channel {
			list = append(list, c)
		}
	}
	return list
}

// change turns the link's channel off if a mail program's button was pressed (RFC 8058), or sets
// all channels as chosen on the page.
func (v *visit) change() error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxBody)
	// Mail programs send either form; a body of another type counts as empty.
	_ = v.r.ParseMultipartForm(maxBody)
	form := v.r.PostForm
	mask, off := v.channel.Bit(), v.channel.Bit()
	switch {
	case form.Get("List-Unsubscribe") == "One-Click":
	case form.Get("action") == "end" && v.Standing != nil:
		return v.end(form.Get("series"))
	case form.Get("action") == "save":
		mask, off = v.choice(form["channel"])
	default:
		return fault.ErrInvalid
	}
	if _, err := v.Users.OptOut(v.r.Context(), v.id, mask, off); err != nil {
		return err
	}
	if form.Has("action") { // a user presses a button
		http.Redirect(v.w, v.r, v.r.URL.Path+"?saved=1", http.StatusSeeOther)
		return nil
	}
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = v.w.Write([]byte("unsubscribed\n"))
	return nil
}

// end ends the user's standing reservation of a series; a second press changes nothing.
func (v *visit) end(typed string) error {
	id, err := strconv.ParseInt(typed, 10, 64)
	if err != nil {
		return fault.ErrInvalid
	}
	if err := v.Standing.End(v.r.Context(), v.id, id); err != nil && !errors.Is(err, reminder.ErrNotReserved) {
		return err
	}
	http.Redirect(v.w, v.r, v.r.URL.Path+"?saved=1", http.StatusSeeOther)
	return nil
}

// choice returns the offered channels as mask, and the offered channels that are not wanted as off.
func (v *visit) choice(wanted []string) (mask, off uint8) {
	for _, c := range v.offered() {
		mask |= c.Bit()
	}
	off = mask
	for _, name := range wanted {
		if c, err := delivery.ParseChannel(name); err == nil {
			off &^= c.Bit()
		}
	}
	return mask, off
}

func (v *visit) draw(status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(v.r.Context(), &b); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = b.WriteTo(v.w) // an error means that the client has gone
	return nil
}

func (v *visit) fail(err error) {
	if v.r.Context().Err() != nil {
		return // the client has gone
	}
	status := map[fault.Kind]int{fault.NotFound: 404, fault.Invalid: 422, fault.Throttled: 429, fault.Unavailable: 503}[fault.KindOf(err)]
	if status == 0 {
		status = http.StatusServiceUnavailable
		v.Log.ErrorContext(v.r.Context(), "page behind a link failed", "error", err)
	}
	if later, ok := errors.AsType[*fault.RetryAfter](err); ok {
		v.w.Header().Set("Retry-After", strconv.Itoa(int(later.After.Seconds())+1))
	} else if status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", "5")
	}
	if err := v.draw(status, v.failure(status).Page()); err != nil {
		http.Error(v.w, http.StatusText(status), status)
	}
}
