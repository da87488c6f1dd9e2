package shell

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/middleware"
)

// MaxForm bounds the size of a form in bytes.
const MaxForm = 1 << 20

var (
	// ErrNoPage says that there is no page at the address: 404.
	ErrNoPage = fault.New(fault.NotFound, "", "")
	// ErrMalformed says that the request cannot be read: 400.
	ErrMalformed = fault.New(fault.Invalid, "malformed", "")
	errForeign   = fault.New(fault.Denied, "cross_origin", "")
)

// Frame returns the frame in which the request's page is drawn.
func Frame(r *http.Request) *ui.Frame { return ui.From(r.Context()) }

// Actor returns the signed-in member as the actor of use cases.
func Actor(r *http.Request) staff.Actor { return Frame(r).Member.Actor() }

// Say returns the message key in the viewer's language.
func Say(r *http.Request, key string, args ...any) string { return Frame(r).Locale.T(key, args...) }

// protect sets the security headers for browsers, and makes the frame in which pages are rendered.
func (sh *Shell) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := &ui.Frame{Languages: sh.Languages.All(), Assets: sh.Assets, Nonce: rand.Text(), Path: r.URL.RequestURI(), Now: sh.Now(), Zone: sh.browserZone(r), Cells: sh.cells, Cell: sh.cell}
		f.Locale = sh.Languages.Match(cookie(r, LocaleCookie), r.Header.Get("Accept-Language"))
		f.Theme = Theme(cookie(r, ThemeCookie))
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

// crossOrigin refuses changes that come from another site's page.
func (sh *Shell) crossOrigin() func(http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	if u, err := url.Parse(sh.PublicURL); err == nil && u.Host != "" {
		_ = guard.AddTrustedOrigin(u.Scheme + "://" + u.Host) // well formed by construction
	}
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sh.Fail(w, r, errForeign) }))
	return guard.Handler
}

// readable refuses text that no database and no page could hold, so that no handler behind it has
// to check.
func (sh *Shell) readable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sh.readsItself(r) {
			if Frame(r).Member.ID != 0 {
				middleware.Patient(w, r)
			}
			next.ServeHTTP(w, r) // it reads its own bodies
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
		if err := r.ParseForm(); err != nil || !clean(r.Form) || !utf8.ValidString(r.URL.Path) || strings.ContainsRune(r.URL.Path, 0) {
			sh.Fail(w, r, ErrMalformed)
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

// Partial reports whether only a part of the page is asked for.
func Partial(r *http.Request) bool {
	return r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-Request-Type") != "full" &&
		r.Header.Get("HX-History-Restore-Request") != "true"
}

// Show renders a page completely before anything is sent, so that a failure can still be answered
// properly.
func (sh *Shell) Show(w http.ResponseWriter, r *http.Request, status int, page templ.Component) error {
	if !Partial(r) && r.Method != http.MethodHead { // not visible
		Frame(r).Flashes = append(Frame(r).Flashes, sh.popFlashes(r)...)
	}
	Frame(r).Behind = behind(r)
	if !Partial(r) {
		Frame(r).Alerts = sh.unread(r)
	}
	var b bytes.Buffer
	if err := page.Render(r.Context(), &b); err != nil {
		return err
	}
	whole := b.Bytes()
	if !Partial(r) {
		whole = withFocus(whole)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(whole) // an error means that the client has gone
	return nil
}

// unread returns the number of unread notifications of the member in all databases. The page is shown
// without the number of a database that cannot be read.
func (sh *Shell) unread(r *http.Request) int {
	if sh.alerts == nil || Frame(r).Member.ID == 0 || Frame(r).MustEnrol {
		return 0
	}
	ctx, cancel := context.WithTimeout(r.Context(), unreadFor)
	defer cancel()
	counts := []func(context.Context, staff.Member) (int, error){sh.alerts}
	for _, o := range sh.others {
		if o.Unread != nil && o.Answers() {
			counts = append(counts, o.Unread)
		}
	}
	var sum atomic.Int64
	var all sync.WaitGroup
	for _, count := range counts {
		all.Go(func() {
			if n, err := count(ctx, Frame(r).Member); err == nil {
				sum.Add(int64(n))
			}
		})
	}
	all.Wait()
	return int(sum.Load())
}

// unreadFor is how long a page waits for the number of unread notifications.
const unreadFor = time.Second / 2

// Either renders the part if the request asks for the part only, and otherwise the whole page.
func (sh *Shell) Either(w http.ResponseWriter, r *http.Request, part, whole templ.Component) error {
	if Partial(r) {
		return sh.Show(w, r, http.StatusOK, part)
	}
	return sh.Show(w, r, http.StatusOK, whole)
}

// Done redirects to another page after a change, where text is shown.
func (sh *Shell) Done(w http.ResponseWriter, r *http.Request, to string, tone ui.Tone, text string) error {
	if text != "" {
		sh.pushFlash(r, ui.Flash{Kind: tone, Text: text})
	}
	Redirect(w, r, to)
	return nil
}

// DoneUndoable is [Shell.Done] for a change that can be undone: the undo form is shown next to the
// text.
func (sh *Shell) DoneUndoable(w http.ResponseWriter, r *http.Request, to, text string, undo ui.Undo) error {
	sh.pushFlash(r, ui.Flash{Kind: ui.Good, Text: text, Undo: &undo})
	Redirect(w, r, to)
	return nil
}

// Undone redirects to the page of the undone change. The message says that the change is undone, or
// that it had been undone before.
func (sh *Shell) Undone(w http.ResponseWriter, r *http.Request, to, name string, u staff.Undone) error {
	if u == staff.UndidBefore {
		return sh.Done(w, r, to, ui.Info, Say(r, "undo.before", name))
	}
	return sh.Done(w, r, to, ui.Good, Say(r, "undo.done", name))
}

// NotUndone redirects to the page, which says why the change can no longer be undone. Other errors
// are returned.
func (sh *Shell) NotUndone(w http.ResponseWriter, r *http.Request, to string, err error) error {
	if !errors.Is(err, staff.ErrTooLate) {
		return err
	}
	return sh.Done(w, r, to, ui.Warn, ui.FaultText(r.Context(), err))
}

// Redirect leads the browser to another page, even if it requested a part only.
func Redirect(w http.ResponseWriter, r *http.Request, to string) {
	if Partial(r) {
		// A redirect would be followed unseen and its page swapped into a part.
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusOK)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

const flashKey = "flashes"

func (sh *Shell) pushFlash(r *http.Request, f ui.Flash) {
	list := append(sh.popFlashes(r), f)
	raw, _ := json.Marshal(list) // strings only
	sh.Sessions.Put(r.Context(), flashKey, string(raw))
}

func (sh *Shell) popFlashes(r *http.Request) []ui.Flash {
	if !hasSession(r) {
		return nil
	}
	var list []ui.Flash
	if raw := sh.Sessions.PopString(r.Context(), flashKey); raw != "" {
		_ = json.Unmarshal([]byte(raw), &list) // written by pushFlash
	}
	return list
}

// reloadAfter is the time in seconds after which the browser reloads a page that could not be shown
// because a dependency does not answer. The header does that without scripts and without a session.
const reloadAfter = 5

// Fail answers a request with the error of its handler.
func (sh *Shell) Fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	sh.denied(r, err)
	f := sh.failure(r, err)
	if f.Status == http.StatusUnauthorized {
		sh.askToSignIn(w, r)
		return
	}
	if errors.Is(err, staff.ErrMustEnrol) {
		sh.askToEnrol(w, r)
		return
	}
	if f.Status == http.StatusInternalServerError {
		sh.Log.ErrorContext(r.Context(), "console request failed", "error", err, "request", f.RequestID, "method", r.Method)
	}
	if after, ok := errors.AsType[*fault.RetryAfter](err); ok {
		w.Header().Set("Retry-After", Seconds(after.After))
	} else if f.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	if f.Status == http.StatusServiceUnavailable && f.Retry != "" && !Partial(r) {
		f.Reload = reloadAfter
		w.Header().Set("Refresh", strconv.Itoa(reloadAfter))
	}
	page := f.Page()
	if Partial(r) {
		page = f.Fragment()
	}
	if err := sh.Show(w, r, f.Status, page); err != nil {
		sh.Log.ErrorContext(r.Context(), "failure page failed", "error", err, slog.Int("status", f.Status))
		http.Error(w, http.StatusText(f.Status), f.Status)
	}
}

func (sh *Shell) failure(r *http.Request, err error) pageparts.Failure {
	f := pageparts.Failure{Status: http.StatusInternalServerError}
	if kind := fault.KindOf(err); kind != 0 {
		f.Status = map[fault.Kind]int{fault.Invalid: 422, fault.NotFound: 404, fault.Conflict: 409, fault.Denied: 403,
			fault.Unauthenticated: 401, fault.Throttled: 429, fault.Unavailable: 503}[kind]
	}
	switch {
	case errors.Is(err, ErrMalformed):
		f.Status = http.StatusBadRequest
	case f.Status == http.StatusInternalServerError:
		f.RequestID = requestID(r)
	case FieldsOf(err) != nil:
		f.Fields = FieldsOf(err)
	case fault.CodeOf(err) != "":
		f.Text, f.Complete = sh.refusal(r, err)
	}
	if Reads(r) && f.Status >= 500 {
		f.Retry = r.URL.RequestURI()
	}
	return f
}

// refusal returns the text of a refusal in the viewer's language, "" if there is no text for it.
// complete reports whether the text says everything.
func (sh *Shell) refusal(r *http.Request, err error) (text string, complete bool) {
	l := Frame(r).Locale
	if complete = l.Has(fault.KeyOf(err)); complete || l.Has("fault."+fault.CodeOf(err)) {
		return ui.FaultText(r.Context(), err), complete
	}
	return "", false
}

// Seconds writes a wait for the header Retry-After, rounded up.
func Seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second)+1, 10) }

// readsItself reports whether the handler of the address reads the body itself: a file, part by
// part, or the body of a handler of [Shell.Handle].
func (sh *Shell) readsItself(r *http.Request) bool {
	for path := range sh.own {
		if strings.HasPrefix(r.URL.Path, path) {
			return true
		}
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind == "multipart/form-data" && sh.uploads.Match(chi.NewRouteContext(), r.Method, r.URL.Path)
}
