// Package shell holds the common parts of all console pages: the frame they are rendered in,
// sessions and the check of permissions in front of every route, forms and filters, lists, live
// parts, exports, and the confirmation by a new authentication. It has no subject. A package per
// subject returns its routes, and [Shell.Mount] serves them.
package shell

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/go-chi/chi/v5"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	accesspages "dropbell/views/pages/access"
	"dropbell/views/static"
	"dropbell/web/security"
)

// ShopList lists the shops, which many lists are narrowed down to.
type ShopList interface {
	Shops(ctx context.Context) ([]template.Shop, error)
}

// Deps are the dependencies of every page. All are required unless stated otherwise.
type Deps struct {
	// Staff finds the member of a sign-in.
	Staff *staff.Service
	// Security logs refusals and changes of access; nil = no log.
	Security *security.Log
	ShopList ShopList
	// Sessions stores sessions.
	Sessions SessionStore
	// Replica is the database for reports; nil = reports read the same database as all other pages.
	Replica Replica
	// Unread returns the number of unread notifications of a member; nil = there are no
	// notifications.
	Unread func(ctx context.Context, m staff.Member) (int, error)
	// PublicURL is the address at which browsers reach the console. With https its cookies are sent
	// over https only.
	PublicURL string
	// DefaultZone shows instants that belong to no shop.
	DefaultZone *time.Location
	Now         func() time.Time
	Log         *slog.Logger
	// Cells are the names of the installation's databases, Cell is the name of this one; empty = there
	// is one.
	Cells []string
	Cell  string
	// Others are the further databases whose rows lists have too; empty = the lists have the rows of
	// one database.
	Others []Another
	// ShopCell returns the place of a shop's database, 0 for the console's own one and otherwise one more
	// than in Others; false while the database of the shop may be one that does not answer. Settle calls
	// do with the place for a shop that may be new. Both are needed with Others.
	ShopCell func(shop int64) (int, bool)
	Settle   func(ctx context.Context, shop int64, do func(place int)) error
}

// A Shell is the common part of all pages: the frame they are rendered in, sessions and the check
// of rights in front of every route, live parts, exports, and the confirmation by a new
// authentication.
type Shell struct {
	// PublicURL is where browsers reach the console.
	PublicURL string
	// DefaultZone shows instants that belong to no shop.
	DefaultZone *time.Location
	Now         func() time.Time
	Log         *slog.Logger
	// Sessions holds the session of each request.
	Sessions *scs.SessionManager
	// Languages are the catalogues of the console's texts.
	Languages *i18n.Languages
	// askConfirm renders the page that requires a new authentication before a
	// form is sent again; see [Shell.confirmWith].
	askConfirm func(http.ResponseWriter, *http.Request, accesspages.Confirm) error

	Assets   *static.Assets
	security *security.Log
	replica  Replica
	shops    ShopList
	names    Names
	people   PeopleNames
	alerts   func(ctx context.Context, m staff.Member) (int, error)
	present  *accessCache
	live     liveParts
	// zones are the time zones that browsers named, by name. A name that is no zone is not kept.
	zones sync.Map
	// uploads are the routes that receive files. own holds the handlers of [Shell.Handle] by path.
	uploads chi.Router
	own     map[string]http.Handler
	jobs    map[string]JobView
	closers []func()
	// onSignIn are the functions of [Shell.OnSignIn].
	onSignIn []func(http.ResponseWriter, *http.Request, staff.SignIn) error
	watched  []func() int
	cells    []string
	cell     string
	others   []Another
	shopCell func(shop int64) (int, bool)
	settle   func(ctx context.Context, shop int64, do func(place int)) error
	// ofOne are the routes about one database. naming guards [ui.Frame.Silent].
	ofOne  chi.Router
	naming sync.Mutex
}

// New returns a shell. Call [Shell.Mount] before it answers requests. New panics if the catalogues
// or assets embedded in the program cannot be read.
func New(d Deps) *Shell {
	languages, err := i18n.Load()
	if err != nil {
		panic(err)
	}
	assets, err := static.Load()
	if err != nil {
		panic(err)
	}
	sh := &Shell{PublicURL: d.PublicURL, DefaultZone: d.DefaultZone, Now: d.Now, Log: d.Log, Languages: languages, Assets: assets,
		security: d.Security, replica: d.Replica, shops: d.ShopList, alerts: d.Unread, present: newAccessCache(d.Staff.Present, d.Now), own: map[string]http.Handler{}, jobs: map[string]JobView{}, cells: d.Cells, cell: d.Cell, others: d.Others, shopCell: d.ShopCell, settle: d.Settle}
	sh.Sessions = newSessions(d, sh.Fail)
	sh.live.hub = NewHub(sh.LookAtPart, func(p *liveFragment) time.Duration { return p.every })
	return sh
}

// ConfirmWith sets the page on which members authenticate again.
func (sh *Shell) ConfirmWith(page func(http.ResponseWriter, *http.Request, accesspages.Confirm) error) {
	sh.askConfirm = page
}

// OnSignIn has f called before a sign-in opens a session; its error refuses the session.
func (sh *Shell) OnSignIn(f func(w http.ResponseWriter, r *http.Request, in staff.SignIn) error) {
	sh.onSignIn = append(sh.onSignIn, f)
}

// BeginSession turns the session into the session of a sign-in. The session gets a new token,
// against session fixation.
func (sh *Shell) BeginSession(w http.ResponseWriter, r *http.Request, in staff.SignIn) error {
	for _, f := range sh.onSignIn {
		if err := f(w, r, in); err != nil {
			return err
		}
	}
	if err := sh.Sessions.RenewToken(r.Context()); err != nil {
		return err
	}
	sh.Sessions.Put(r.Context(), SignInKey, in.ID)
	return nil
}

// Keep has the browser keep a value that is no secret, for [CookieLife].
func (sh *Shell) Keep(w http.ResponseWriter, name, value string) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(CookieLife / time.Second),
		HttpOnly: true, Secure: Secure(sh.PublicURL), SameSite: http.SameSiteLaxMode})
}

// Handle makes h answer every request for the path and below. h checks rights and reads bodies
// itself, behind the same middleware as the routes.
func (sh *Shell) Handle(path string, h http.Handler) { sh.own[path] = h }

// Mount returns the handler of the routes, of the static files, and of the handlers of
// [Shell.Handle].
func (sh *Shell) Mount(table []Route) http.Handler {
	sh.live.routes, sh.live.own = routesOfParts(table)
	sh.uploads = routesThat(table, func(rt Route) bool { return rt.Upload })
	sh.ofOne = routesThat(table, func(rt Route) bool { return rt.OfOne })
	r := chi.NewRouter()
	r.Use(head)
	r.Handle(static.Prefix+"*", sh.Assets)
	r.Group(func(r chi.Router) {
		r.Use(sh.protect, sh.origin, steady, sh.Sessions.LoadAndSave, sh.identify, sh.crossOrigin(), sh.readable)
		for _, rt := range table {
			r.Method(rt.Method, rt.Pattern, sh.serve(rt))
		}
		for path, h := range sh.own {
			r.Handle(path, h)
			r.Handle(path+"/*", h)
			sh.ofOne.Handle(path, h)
			sh.ofOne.Handle(path+"/*", h)
		}
		r.NotFound(func(w http.ResponseWriter, r *http.Request) { sh.Fail(w, r, ErrNoPage) })
		r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { sh.Fail(w, r, ErrNoPage) })
	})
	return r
}

// OfOne reports whether the address is of a page about one database of several.
func (sh *Shell) OfOne(method, path string) bool {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return sh.ofOne.Match(chi.NewRouteContext(), method, path)
}

// CountWatched adds the count of f to [Shell.Watched].
func (sh *Shell) CountWatched(f func() int) { sh.watched = append(sh.watched, f) }

// Watched returns the number of watched live parts and other watched states.
func (sh *Shell) Watched() int {
	n := sh.live.hub.Watching()
	for _, f := range sh.watched {
		n += f()
	}
	return n
}

// BeforeClose has f called by [Shell.Close].
func (sh *Shell) BeforeClose(f func()) { sh.closers = append(sh.closers, f) }

// Close ends all live streams, which would not end by themselves, and waits for the security log.
func (sh *Shell) Close() {
	for _, f := range sh.closers {
		f()
	}
	sh.live.hub.Close()
}

// AccessChanged makes the next request of each member read the permissions from the database again.
func (sh *Shell) AccessChanged() { sh.present.clear() }

// SignedInAs returns the id of the request's sign-in, "" without one.
func (sh *Shell) SignedInAs(r *http.Request) string {
	return sh.Sessions.GetString(r.Context(), SignInKey)
}

// ForgetSignIn makes the next request with the sign-in read its member from the database again.
func (sh *Shell) ForgetSignIn(id string) { sh.present.forget(id) }
