package links

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/fault"
	"dropbell/domain/report"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/middleware"
)

// ReportPrefix is where shared reports live.
const ReportPrefix = "/r"

// Opened returns the report that a link's token leads to, or [report.ErrNoLink].
type Opened interface {
	Open(ctx context.Context, token string) (report.Report, error)
}

// Reports shows the reports of drops to holders of a link.
type Reports struct {
	pages *Pages
	links report.Links
	store Opened
	mux   *chi.Mux
}

// NewReports returns the pages under [ReportPrefix]. Invalid links share the limits of the other
// pages.
func NewReports(p *Pages, links report.Links, store Opened) *Reports {
	t := &Reports{pages: p, links: links, store: store, mux: chi.NewMux()}
	t.mux.Get("/{token}", t.show)
	t.mux.Head("/{token}", t.show)
	t.mux.NotFound(t.show)
	t.mux.MethodNotAllowed(t.show)
	return t
}

// ServeHTTP answers a request below the mount point.
func (t *Reports) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.mux.ServeHTTP(w, r) }

func (t *Reports) show(w http.ResponseWriter, r *http.Request) {
	v := t.pages.visit(w, r, ReportPrefix)
	v.failure = func(status int) page { return droppages.SharedFailure{Status: status} }
	token := chi.URLParam(r, "token")
	id, err := t.links.Parse(token)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		err = report.ErrNoLink
	}
	limiter, key := v.users, middleware.LimitKey{Kind: 'r', Low: uint64(id)}
	if err != nil {
		q, r := middleware.Ensure(v.r)
		limiter, key = v.failed, middleware.AddressKey('l', q.ClientIP(r))
	}
	if limited := v.limit(limiter, key); limited != nil {
		err = limited
	}
	var made report.Report
	if err == nil {
		made, err = t.store.Open(v.r.Context(), token)
	}
	if fault.KindOf(err) == fault.Conflict { // there is nothing to show any more
		err = report.ErrNoLink
	}
	if err == nil {
		v.frame.Zone = made.Template.Zone()
		err = v.draw(http.StatusOK, droppages.SharedReport{Report: made}.Page())
	}
	if err != nil {
		v.fail(err)
	}
}
