package links

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/web/middleware"
)

// TrackedPrefix is where the links of campaigns live.
const TrackedPrefix = "/l"

// Openings returns the targets of campaigns' links.
type Openings interface {
	// Target returns where the link of a campaign that was sent leads, or [user.ErrLink].
	Target(ctx context.Context, r campaign.Reader) (campaign.Destination, error)
	// Open returns the target like Target, and records that the reader opened the link. Repeating
	// it changes nothing.
	Open(ctx context.Context, r campaign.Reader) (campaign.Destination, error)
}

// Tracked leads readers of campaigns to claim pages.
type Tracked struct {
	pages *Pages
	links campaign.Links
	store Openings
	// page returns the address of a reader's own page of a drop; nil = there are no pages.
	page func(reminder.Reader) string
	mux  *chi.Mux
}

// NewTracked returns the links under [TrackedPrefix]. Invalid links look like invalid links of the
// other pages, and share their limits. page is [reminder.Links.Addresses].
func NewTracked(p *Pages, links campaign.Links, store Openings, page func(reminder.Reader) string) *Tracked {
	t := &Tracked{pages: p, links: links, store: store, page: page, mux: chi.NewMux()}
	t.mux.Get("/{token}", func(w http.ResponseWriter, r *http.Request) {
		if checksLinks(r) {
			t.serve(store.Target)(w, r)
			return
		}
		t.serve(store.Open)(w, r)
	})
	t.mux.Head("/{token}", t.serve(store.Target)) // a program checks whether the link works
	missing := t.serve(func(context.Context, campaign.Reader) (campaign.Destination, error) {
		return campaign.Destination{}, user.ErrLink
	})
	t.mux.NotFound(missing)
	t.mux.MethodNotAllowed(missing)
	return t
}

// ServeHTTP answers a request below the mount point.
func (t *Tracked) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.mux.ServeHTTP(w, r) }

// serve redirects to the address that find returns. The address never comes from the request, so
// that a link cannot be altered to lead to another site.
func (t *Tracked) serve(find func(context.Context, campaign.Reader) (campaign.Destination, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := t.pages.visit(w, r, TrackedPrefix)
		reader, err := t.links.Parse(chi.URLParam(r, "token"))
		limiter, key := v.users, middleware.LimitKey{Kind: 'f', Low: uint64(reader.UserID)}
		if err != nil {
			q, r := middleware.Ensure(v.r)
			limiter, key = v.failed, middleware.AddressKey('l', q.ClientIP(r))
		}
		if limited := v.limit(limiter, key); limited != nil {
			err = limited
		}
		var to campaign.Destination
		if err == nil {
			to, err = find(v.r.Context(), reader)
		}
		target := (delivery.Subject{ClaimURL: to.URL}).Link()
		if to.URL == "" && to.TemplateID != 0 && t.page != nil {
			target = t.page(reminder.Reader{TemplateID: to.TemplateID, UserID: reader.UserID, Channel: delivery.Email}) + "?" + counted
		}
		if err == nil && target == "" {
			err = user.ErrLink
		}
		if err != nil {
			v.fail(err)
			return
		}
		http.Redirect(w, r, target, http.StatusFound)
	}
}
