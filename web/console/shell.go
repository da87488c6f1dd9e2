package console

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/go-chi/chi/v5"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	"dropbell/views/pages"
	"dropbell/views/static"
	"dropbell/web/security"
)

// ShopList lists the shops, which many lists are narrowed down to.
type ShopList interface {
	Shops(ctx context.Context) ([]template.Shop, error)
}

// ShellDeps are what every page needs. All are required unless stated
// otherwise.
type ShellDeps struct {
	// Staff finds the member behind a sign-in.
	Staff *staff.Service
	// Security is told of refusals and of changes of access; nil = of none.
	Security *security.Log
	ShopList ShopList
	// Sessions stores sessions.
	Sessions scs.CtxStore
	// PublicURL is where browsers reach the console; with https its cookies
	// are never sent over anything else.
	PublicURL string
	// DefaultZone shows instants that belong to no shop.
	DefaultZone *time.Location
	Now         func() time.Time
	Log         *slog.Logger
}

// A Shell is what all pages share: the frame they are drawn in, sessions and
// the check of rights in front of every route, live parts, exports, and the
// question whether the member is still the one who signed in.
type Shell struct {
	// PublicURL is where browsers reach the console.
	PublicURL string
	// DefaultZone shows instants that belong to no shop.
	DefaultZone *time.Location
	Now         func() time.Time
	Log         *slog.Logger
	// sessions holds the session of each request.
	sessions *scs.SessionManager
	// languages are the catalogues of the console's texts.
	languages *i18n.Languages
	// askConfirm draws the page that asks for a proof before a form is sent
	// again; see [Shell.confirmWith].
	askConfirm func(http.ResponseWriter, *http.Request, pages.Confirm) error

	assets   *static.Assets
	security *security.Log
	shops    ShopList
	present  *presence
	live     liveParts
}

// NewShell returns a shell, on which [Shell.mount] must be called before it
// answers requests. It panics if the catalogues or assets, which are part of
// the program, cannot be read.
func NewShell(d ShellDeps) *Shell {
	languages, err := i18n.Load()
	if err != nil {
		panic(err)
	}
	assets, err := static.Load()
	if err != nil {
		panic(err)
	}
	sh := &Shell{PublicURL: d.PublicURL, DefaultZone: d.DefaultZone, Now: d.Now, Log: d.Log, languages: languages, assets: assets,
		security: d.Security, shops: d.ShopList, present: newPresence(d.Staff.Present, d.Now)}
	sh.sessions = newSessions(d, sh.fail)
	sh.live.hub = newHub(sh.lookAtPart, func(p *part) time.Duration { return p.every })
	return sh
}

// confirmWith sets the page that asks members to confirm that it is they.
func (sh *Shell) confirmWith(page func(http.ResponseWriter, *http.Request, pages.Confirm) error) {
	sh.askConfirm = page
}

// mount returns the handler of the routes and of the static files. own adds
// what checks rights itself; it is behind the same middleware.
func (sh *Shell) mount(table []route, own func(chi.Router)) http.Handler {
	sh.live.routes, sh.live.own = routesOfParts(table)
	r := chi.NewRouter()
	r.Use(head)
	r.Handle(static.Prefix+"*", sh.assets)
	r.Group(func(r chi.Router) {
		r.Use(sh.protect, sh.origin, sh.sessions.LoadAndSave, sh.identify, sh.crossOrigin(), sh.readable)
		for _, rt := range table {
			r.Method(rt.method, rt.pattern, sh.serve(rt))
		}
		own(r)
		r.NotFound(func(w http.ResponseWriter, r *http.Request) { sh.fail(w, r, errNoPage) })
		r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { sh.fail(w, r, errNoPage) })
	})
	return r
}

// watchedParts returns how many live parts somebody watches.
func (sh *Shell) watchedParts() int { return sh.live.hub.watching() }

// close ends all streams of live parts, which would never end by themselves.
func (sh *Shell) close() { sh.live.hub.close() }

// accessChanged makes the next request of everybody ask the database for the
// member's rights again.
func (sh *Shell) accessChanged() { sh.present.clear() }

// signedInAs returns the id of the request's sign-in, "" for nobody's.
func (sh *Shell) signedInAs(r *http.Request) string {
	return sh.sessions.GetString(r.Context(), signInKey)
}

// forgetSignIn makes the next request with the sign-in ask the database for the
// member behind it again.
func (sh *Shell) forgetSignIn(id string) { sh.present.forget(id) }
