package shell

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

// A Route is one address with the members who may use it. Rights that depend on a shop
// are checked by the use cases as well.
type Route struct {
	Method  string
	Pattern string
	// Needs is the permission; open routes need none, not even a sign-in.
	Needs staff.Permission
	Open  bool
	// Everywhere is set if the route shows or changes data of every shop. Members who are limited
	// to some shops may not use it.
	Everywhere bool
	Serve      Handler
	// Every is the interval at which a live part from this route is loaded while it has viewers; 0
	// = the part does not change.
	Every time.Duration
	// Own is set if staff who are limited to shops also see their own objects, so that a rendering
	// cannot be shared.
	Own bool
	// Reports is set if the route only shows data; see [Report].
	Reports bool
	// Sure requires the member to authenticate again, unless the member did so recently.
	Sure bool
	// Upload is set if the body is a form with a file, which the handler reads part by part.
	Upload bool
	// Enrolling is set for routes that are open to a member who must have a second factor and has
	// none.
	Enrolling bool
	// OfOne is set if the page is about one database of several, which the member chooses. Pages about
	// an id are about the database of the id; home's console answers for all other pages.
	OfOne bool
}

// Handler answers a request or returns why it cannot.
type Handler func(w http.ResponseWriter, r *http.Request) error

// With is a handler that first loads the object of the request, such as its id or its drop. If load
// returns an error, the error is the answer.
func With[T any](load func(*http.Request) (T, error), h func(http.ResponseWriter, *http.Request, T) error) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		loaded, err := load(r)
		if err != nil {
			return err
		}
		return h(w, r, loaded)
	}
}

// Get is a page at the pattern, for members with the permission.
func Get(pattern string, needs staff.Permission, h Handler) Route {
	return Route{Method: http.MethodGet, Pattern: pattern, Needs: needs, Serve: h}
}

// Post is a change at the pattern, for members with the permission.
func Post(pattern string, needs staff.Permission, h Handler) Route {
	return Route{Method: http.MethodPost, Pattern: pattern, Needs: needs, Serve: h}
}

// Framing are routes whose pages show a mail in a frame.
func Framing(routes []Route) []Route {
	for i, r := range routes {
		routes[i].Serve = func(w http.ResponseWriter, req *http.Request) error {
			w.Header().Set("Content-Security-Policy", ui.FramingPolicy(Frame(req).Nonce))
			return r.Serve(w, req)
		}
	}
	return routes
}

// Live is a route whose partial answer keeps itself up to date on pages.
func Live(every time.Duration, r Route) Route {
	r.Every = every
	return r
}

// Own marks a live route on which members who are limited to shops also see their own objects.
func Own(r Route) Route {
	r.Own = true
	return r
}

// Everywhere marks a route for members who are not limited to shops.
func Everywhere(r Route) Route {
	r.Everywhere = true
	return r
}

// Sure marks a route that requires a recent authentication.
func Sure(r Route) Route {
	r.Sure = true
	return r
}

// Upload marks a route whose body is a form with a file. Serve reads the file part by part.
func Upload(r Route) Route {
	r.Upload = true
	return r
}

// OfOne marks routes whose pages are about one database of several.
func OfOne(routes ...Route) []Route {
	for i := range routes {
		routes[i].OfOne = true
	}
	return routes
}

// routesThat matches the addresses of the routes for which is returns true.
func routesThat(table []Route, is func(Route) bool) chi.Router {
	r := chi.NewRouter()
	for _, rt := range table {
		if is(rt) {
			r.Method(rt.Method, rt.Pattern, http.NotFoundHandler())
		}
	}
	return r
}

// Enrolling marks a route that is open to members who must have a second factor and have none.
func Enrolling(r Route) Route {
	r.Enrolling = true
	return r
}

// Open is a route that needs no sign-in.
func Open(r Route) Route {
	r.Open = true
	return r
}

// head serves HEAD like GET. chi's own middleware asks the root router, which accepts every method
// for a mounted handler.
func head(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// Reads reports whether the method is safe.
func Reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// serve checks permissions before the route's handler gets the request.
func (sh *Shell) serve(rt Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Frame(r).OfOne = rt.OfOne
		if sh.replica != nil && !rt.Reports && !Reads(r) {
			w = sh.noteChange(w, r)
		}
		if err := sh.Admit(r, rt); err != nil {
			sh.Fail(w, r, err)
			return
		}
		if rt.Sure && !sh.Confirmed(r) {
			sh.askToConfirm(w, r)
			return
		}
		err := error(nil)
		if sh.replica != nil && rt.Reports {
			err = sh.report(w, r, rt.Serve)
		} else {
			err = rt.Serve(w, r)
		}
		if err != nil {
			sh.Fail(w, r, err)
		}
	})
}

// Admit returns why the member may not use the route, nil if they may.
func (sh *Shell) Admit(r *http.Request, rt Route) error {
	if rt.Open {
		return nil
	}
	member := Frame(r).Member
	if member.ID == 0 {
		return staff.ErrUnauthenticated
	}
	if Frame(r).MustEnrol && !rt.Enrolling {
		return staff.ErrMustEnrol
	}
	if rt.Everywhere {
		return member.Actor().MayEverywhere(rt.Needs)
	}
	return member.Actor().May(rt.Needs, 0)
}
