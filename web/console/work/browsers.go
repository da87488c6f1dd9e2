package work

import (
	"net/http"

	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/domain/user"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// pushWorkerPath is the address of the service worker. It must not change: browsers look there for
// a newer script. Its folder is its scope.
const pushWorkerPath = "/alerts/push-worker.js"

// pushWorker answers with the service worker's script. Browsers ask for it also
// without a session.
func (h *handlers) pushWorker(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Cache-Control", "no-cache")
	_, err := w.Write(h.Assets.Content("push-worker.js"))
	return err
}

func (h *handlers) addBrowser(w http.ResponseWriter, r *http.Request) error {
	if h.Browsers.PublicKey == "" {
		return shell.ErrNoPage
	}
	b := alert.Browser{SignIn: h.Sessions.GetString(r.Context(), shell.SignInKey), Agent: r.UserAgent(), Language: shell.Frame(r).Locale.Tag,
		Subscription: user.PushSubscription{Endpoint: r.PostFormValue("endpoint"), P256dh: r.PostFormValue("p256dh"), Auth: r.PostFormValue("auth")}}
	err := h.Browsers.Add(r.Context(), shell.Frame(r).Member, b)
	if shell.FieldsOf(err) != nil { // no browser sends this
		return h.Done(w, r, "/alerts/settings", ui.Warn, shell.Say(r, "browsers.failed"))
	}
	if err != nil {
		return err
	}
	h.Keep(w, shell.BrowserCookie, b.Digest())
	return h.Done(w, r, "/alerts/settings", ui.Good, shell.Say(r, "browsers.added"))
}

// followBrowser assigns the browser's subscription to the new sign-in, if the member gets
// notifications in this browser.
func (h *handlers) followBrowser(w http.ResponseWriter, r *http.Request, in staff.SignIn) error {
	digest := shell.KeptBrowser(r)
	if digest == "" {
		return nil
	}
	h.Keep(w, shell.BrowserCookie, digest)
	return h.Browsers.Follow(r.Context(), in.StaffID, digest, in.ID)
}

func (h *handlers) tryBrowser(w http.ResponseWriter, r *http.Request, id int64) error {
	if err := h.Browsers.Try(r.Context(), shell.Frame(r).Member, id); err != nil {
		return err
	}
	return h.Done(w, r, "/alerts/settings", ui.Good, shell.Say(r, "browsers.tried"))
}

func (h *handlers) removeBrowser(w http.ResponseWriter, r *http.Request, id int64) error {
	if err := h.Browsers.Remove(r.Context(), shell.Frame(r).Member, id); err != nil {
		return err
	}
	return h.Done(w, r, "/alerts/settings", ui.Good, shell.Say(r, "browsers.removed"))
}
