package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/views/pages"
	"dropbell/views/ui"
	"dropbell/web/middleware"
)

// maxForm bounds what a form may send.
const maxForm = 1 << 20

var (
	errNoPage    = fault.New(fault.NotFound, "", "")
	errMalformed = fault.New(fault.Invalid, "malformed", "")
	errForeign   = fault.New(fault.Denied, "cross_origin", "")
)

func frame(r *http.Request) *ui.Frame { return ui.From(r.Context()) }

func actor(r *http.Request) staff.Actor { return frame(r).Member.Actor() }

// say returns the message key in the viewer's language.
func say(r *http.Request, key string, args ...any) string { return frame(r).Locale.T(key, args...) }

// protect sets the headers that keep browsers from doing what no page of ours
// asks for, and makes the frame in which pages are drawn.
func (c *Console) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := &ui.Frame{Languages: c.languages.All(), Assets: c.assets, Nonce: rand.Text(), Path: r.URL.RequestURI(), Now: c.Now(), Zone: c.DefaultZone}
		f.Locale = c.languages.Match(cookie(r, localeCookie), r.Header.Get("Accept-Language"))
		f.Theme = theme(cookie(r, themeCookie))
		h := w.Header()
		h.Set(ui.OwnHeader, "1")
		h.Set("Content-Security-Policy", ui.ContentSecurityPolicy(f.Nonce))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		// Pages hold personal data, and parts of pages share their address.
		h.Set("Cache-Control", "no-store")
		h.Add("Vary", "HX-Request")
		next.ServeHTTP(w, r.WithContext(ui.With(r.Context(), f)))
	})
}

// crossOrigin refuses changes that another site's page asks for.
func (c *Console) crossOrigin() func(http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	if u, err := url.Parse(c.PublicURL); err == nil && u.Host != "" {
		_ = guard.AddTrustedOrigin(u.Scheme + "://" + u.Host) // well formed by construction
	}
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.fail(w, r, errForeign) }))
	return guard.Handler
}

// readable refuses what no database and no page could hold, so that nothing
// behind it has to ask again.
func (c *Console) readable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, MonitorPath) || isUpload(r) {
			if frame(r).Member.ID != 0 {
				middleware.Patient(w, r)
			}
			next.ServeHTTP(w, r) // it reads its own bodies
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil || !clean(r.Form) || !utf8.ValidString(r.URL.Path) || strings.ContainsRune(r.URL.Path, 0) {
			c.fail(w, r, errMalformed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func clean(form url.Values) bool {
	for name, values := range form {
		for _, v := range append(values, name) {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return false
			}
		}
	}
	return true
}

// partial reports whether only a part of the page is asked for.
func partial(r *http.Request) bool {
	return r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-Request-Type") != "full" &&
		r.Header.Get("HX-History-Restore-Request") != "true"
}

// show draws a page. It is drawn to the end before anything is sent, so that
// a failure can still be answered properly.
func (c *Console) show(w http.ResponseWriter, r *http.Request, status int, page templ.Component) error {
	if !partial(r) && r.Method != http.MethodHead { // which nobody sees
		frame(r).Flashes = append(frame(r).Flashes, c.popFlashes(r)...)
	}
	var b bytes.Buffer
	if err := page.Render(r.Context(), &b); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // whoever hangs up misses it
	return nil
}

// either draws the part if only that is asked for, else the whole page.
func (c *Console) either(w http.ResponseWriter, r *http.Request, part, whole templ.Component) error {
	if partial(r) {
		return c.show(w, r, http.StatusOK, part)
	}
	return c.show(w, r, http.StatusOK, whole)
}

// listed is either for lists with filters: the address that the browser then
// shows has only the filters that are set.
func (c *Console) listed(w http.ResponseWriter, r *http.Request, part, whole templ.Component) error {
	if partial(r) {
		w.Header().Set("HX-Push-Url", withQuery(r, "", ""))
	}
	return c.either(w, r, part, whole)
}

// done goes on to another page after a change, where text is shown.
func (c *Console) done(w http.ResponseWriter, r *http.Request, to string, tone ui.Tone, text string) error {
	if text != "" {
		c.pushFlash(r, ui.Flash{Kind: tone, Text: text})
	}
	redirect(w, r, to)
	return nil
}

func redirect(w http.ResponseWriter, r *http.Request, to string) {
	if partial(r) {
		// A redirect would be followed unseen and its page swapped into a part.
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusOK)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

const flashKey = "flashes"

func (c *Console) pushFlash(r *http.Request, f ui.Flash) {
	list := append(c.popFlashes(r), f)
	raw, _ := json.Marshal(list) // strings only
	c.sessions.Put(r.Context(), flashKey, string(raw))
}

func (c *Console) popFlashes(r *http.Request) []ui.Flash {
	if !hasSession(r) {
		return nil
	}
	var list []ui.Flash
	if raw := c.sessions.PopString(r.Context(), flashKey); raw != "" {
		_ = json.Unmarshal([]byte(raw), &list) // written by pushFlash
	}
	return list
}

// reloadAfter is after how many seconds a page that could not be shown, since
// something does not answer, is loaded again by the browser. The header does
// that without scripts and without a session.
const reloadAfter = 5

type sessionKey struct{}

// withSession notes that the request has a session. There is none while the
// database, which keeps sessions, does not answer.
func withSession(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, true))
}

func hasSession(r *http.Request) bool { return r.Context().Value(sessionKey{}) != nil }

// fail answers what a handler could not.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // whoever asked has gone
	}
	c.denied(r, err)
	f := c.failure(r, err)
	if f.Status == http.StatusUnauthorized {
		c.askToSignIn(w, r)
		return
	}
	if errors.Is(err, staff.ErrMustEnrol) {
		c.askToEnrol(w, r)
		return
	}
	if f.Status == http.StatusInternalServerError {
		c.Log.ErrorContext(r.Context(), "console request failed", "error", err, "request", f.RequestID, "method", r.Method)
	}
	if after, ok := errors.AsType[*fault.RetryAfter](err); ok {
		w.Header().Set("Retry-After", seconds(after.After))
	} else if f.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	if f.Status == http.StatusServiceUnavailable && f.Retry != "" && !partial(r) {
		f.Reload = reloadAfter
		w.Header().Set("Refresh", strconv.Itoa(reloadAfter))
	}
	page := f.Page()
	if partial(r) {
		page = f.Fragment()
	}
	if err := c.show(w, r, f.Status, page); err != nil {
		c.Log.ErrorContext(r.Context(), "failure page failed", "error", err, slog.Int("status", f.Status))
		http.Error(w, http.StatusText(f.Status), f.Status)
	}
}

func (c *Console) failure(r *http.Request, err error) pages.Failure {
	f := pages.Failure{Status: http.StatusInternalServerError}
	if kind := fault.KindOf(err); kind != 0 {
		f.Status = map[fault.Kind]int{fault.Invalid: 422, fault.NotFound: 404, fault.Conflict: 409, fault.Denied: 403,
			fault.Unauthenticated: 401, fault.Throttled: 429, fault.Unavailable: 503}[kind]
	}
	switch {
	case errors.Is(err, errMalformed):
		f.Status = http.StatusBadRequest
	case f.Status == http.StatusInternalServerError:
		f.RequestID = requestID(r)
	case fieldsOf(err) != nil:
		f.Fields = fieldsOf(err)
	case fault.CodeOf(err) != "":
		f.Text, f.Complete = c.refusal(r, err)
	}
	if reads(r) && f.Status >= 500 {
		f.Retry = r.URL.RequestURI()
	}
	return f
}

// refusal says in the viewer's language why err refused something, "" if there
// are no words for it, and whether that is all there is to say.
func (c *Console) refusal(r *http.Request, err error) (text string, complete bool) {
	l := frame(r).Locale
	if complete = l.Has(fault.KeyOf(err)); complete || l.Has("fault."+fault.CodeOf(err)) {
		return ui.FaultText(r.Context(), err), complete
	}
	return "", false
}

// refuse is what a broken session store looks like to the viewer.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, err error) { c.fail(w, r, err) }

func requestID(r *http.Request) string {
	if q := middleware.From(r.Context()); q != nil {
		return q.ID
	}
	return ""
}
