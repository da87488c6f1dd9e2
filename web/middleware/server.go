package middleware

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
)

// Server returns a server of h with the time limits of every connection. After its first byte a
// request has five seconds for its headers. A new connection of [Connections] may be silent before
// that.
func Server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{ConnState: (&silences{most: mostSilent}).changed, Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Minute,
		WriteTimeout: 10 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// All returns the middleware before every handler, for the root chi router.
func All(o Options, stopping *atomic.Bool) chi.Middlewares {
	return chi.Chain(drain(stopping), bodies(bodyTimeout), Requests(o), head)
}

// head serves HEAD like GET where a route has GET alone. chi's own middleware does not: it takes a
// handler mounted on a shorter path, such as the console on /, for the route's own HEAD handler.
func head(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rc := chi.RouteContext(r.Context()); r.Method == http.MethodHead && rc != nil {
			path := cmp.Or(rc.RoutePath, r.URL.RawPath, r.URL.Path)
			get := rc.Routes.Find(chi.NewRouteContext(), http.MethodGet, path)
			if get != "" && get != rc.Routes.Find(chi.NewRouteContext(), http.MethodHead, path) {
				rc.RouteMethod = http.MethodGet
			}
		}
		next.ServeHTTP(w, r)
	})
}

// drain makes clients open a new connection, to another process, while this process is stopping.
func drain(stopping *atomic.Bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if stopping.Load() {
				w.Header().Set("Connection", "close")
			}
			next.ServeHTTP(w, r)
		})
	}
}
