package links

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/fault"
	"dropbell/domain/message"
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
	pages  *Pages
	links  report.Links
	store  Opened
	brands Brands
	fonts  fonts
	// public is the address of the program for browsers.
	public string
	mux    *chi.Mux
}

// NewReports returns the pages under [ReportPrefix], which browsers find below the address public.
// brands tell the language of a shop. Invalid links share the limits of the other pages. It panics if the fonts in the program cannot
// be read.
func NewReports(p *Pages, links report.Links, store Opened, brands Brands, public string) *Reports {
	f, err := openFonts()
	if err != nil {
		panic(err)
	}
	t := &Reports{pages: p, links: links, store: store, brands: brands, fonts: f, public: public, mux: chi.NewMux()}
	for address, answer := range map[string]func(*visit, report.Report, string) error{"/{token}": t.page, "/{token}" + pictureName: t.picture} {
		t.mux.Get(address, func(w http.ResponseWriter, r *http.Request) { t.show(w, r, answer) })
		t.mux.Head(address, func(w http.ResponseWriter, r *http.Request) { t.show(w, r, answer) })
	}
	missing := func(w http.ResponseWriter, r *http.Request) { t.show(w, r, t.page) }
	t.mux.NotFound(missing)
	t.mux.MethodNotAllowed(missing)
	return t
}

// ServeHTTP answers a request below the mount point.
func (t *Reports) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.mux.ServeHTTP(w, r) }

// pictureName follows a link's address in the address of its picture.
const pictureName = "/picture.png"

// page answers the report.
func (t *Reports) page(v *visit, made report.Report, token string) error {
	id, err := t.links.Parse(token)
	if err != nil {
		return err
	}
	if accepted := v.r.Header.Get("Accept-Language"); accepted == "" {
		tag, _ := t.language(v, made)
		v.frame.Locale = v.languages.Match(tag)
	}
	p := droppages.SharedReport{Report: made}
	p.Picture = t.links.Address(t.public, id) + pictureName
	return v.draw(http.StatusOK, p.Page())
}

// language returns the language of the shop, and the name of the drop in it; "" = the shop has none.
func (t *Reports) language(v *visit, made report.Report) (tag, name string) {
	d := made.Template
	book, err := t.brands.Book(v.r.Context(), message.Place{Shop: d.ShopNumber, Template: d.ID}, message.Newest)
	if err != nil { // the report works without texts of the shop
		return "", d.Name
	}
	tag = book.Settings().Language
	return tag, book.Name(tag, d.Name)
}

// picture answers the picture that previews of the link show. Programs that fetch it name no language,
// or their own, so it is in the language of the shop.
func (t *Reports) picture(v *visit, made report.Report, _ string) error {
	tag, name := t.language(v, made)
	v.frame.Locale, made.Template.Name = v.languages.Match(tag, v.r.Header.Get("Accept-Language")), name
	raw, err := picture(v.r.Context(), t.fonts, made)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "image/png")
	v.w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	_, _ = v.w.Write(raw) // the client has gone
	return nil
}

// show opens the report of a link and answers it.
func (t *Reports) show(w http.ResponseWriter, r *http.Request, answer func(v *visit, made report.Report, token string) error) {
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
		err = answer(v, made, token)
	}
	if err != nil {
		v.fail(err)
	}
}
