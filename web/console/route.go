package console

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/staff"
)

// A route is one address with who may use it. Rights that depend on a shop
// are checked by the use cases as well.
type route struct {
	method  string
	pattern string
	// needs is the permission; open routes need none, not even a sign-in.
	needs staff.Permission
	open  bool
	// everywhere says that what it shows or does concerns every shop, so that it
	// is not for those who are limited to some.
	everywhere bool
	serve      handler
	// every is how often a live part of a page that comes from here is looked
	// at while somebody watches it; 0 = it never changes by itself.
	every time.Duration
	// own says that who is limited to shops sees what they began themselves
	// besides, so that nobody shares the part with them.
	own bool
	// sure asks the member to confirm that it is they, unless they did lately.
	sure bool
	// enrolling is set for what is open to a member who must have a second
	// factor and has none.
	enrolling bool
}

// handler answers a request or returns why it cannot.
type handler func(w http.ResponseWriter, r *http.Request) error

func get(pattern string, needs staff.Permission, h handler) route {
	return route{method: http.MethodGet, pattern: pattern, needs: needs, serve: h}
}

func post(pattern string, needs staff.Permission, h handler) route {
	return route{method: http.MethodPost, pattern: pattern, needs: needs, serve: h}
}

// live is a route whose partial answer keeps itself up to date on pages.
func live(every time.Duration, r route) route {
	r.every = every
	return r
}

func own(r route) route {
	r.own = true
	return r
}

func everywhere(r route) route {
	r.everywhere = true
	return r
}

func sure(r route) route {
	r.sure = true
	return r
}

func enrolling(r route) route {
	r.enrolling = true
	return r
}

func open(r route) route {
	r.open = true
	return r
}

// head serves HEAD like GET. The middleware of chi asks the root router, which
// takes every method of what is mounted.
func head(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// reads reports whether the request asks for a page and changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// serve checks who asks before the route's handler sees the request.
func (sh *Shell) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := sh.admit(r, rt); err != nil {
			sh.fail(w, r, err)
			return
		}
		if rt.sure && !sh.confirmed(r) {
			sh.askToConfirm(w, r)
			return
		}
		if err := rt.serve(w, r); err != nil {
			sh.fail(w, r, err)
		}
	})
}

func (sh *Shell) admit(r *http.Request, rt route) error {
	if rt.open {
		return nil
	}
	member := frame(r).Member
	if member.ID == 0 {
		return staff.ErrUnauthenticated
	}
	if frame(r).MustEnrol && !rt.enrolling {
		return staff.ErrMustEnrol
	}
	if rt.everywhere {
		return member.Actor().MayEverywhere(rt.needs)
	}
	return member.Actor().May(rt.needs, 0)
}
