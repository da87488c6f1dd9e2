package links

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/middleware"
)

// DropPrefix is where the links in messages about drops live.
const DropPrefix = "/d"

// counted is in the query of an address to which the link of a campaign has led: the campaign has
// counted the click.
const counted = "counted"

const (
	// lookFor and noteFor bound how long a click waits for a database: lookFor to read the claim
	// address if an earlier address is known, noteFor to record the opening.
	lookFor = 300 * time.Millisecond
	noteFor = 250 * time.Millisecond
	// maxTargets is how many claim addresses are cached for times when the database does not
	// answer.
	maxTargets = 10_000
)

// Drops finds drops, also under the load of a rush. It returns [template.ErrNotFound] if the drop
// does not exist.
type Drops interface {
	Template(ctx context.Context, id int64) (template.Template, error)
}

// Noted records the user who opened a link; see [reminder.Openings].
type Noted interface {
	Note(ctx context.Context, r reminder.Reader) bool
}

// DropLinks redirects readers of messages about a drop to its claim page, whether or not the click
// could be recorded yet.
type DropLinks struct {
	pages *Pages
	links reminder.Links
	drops Drops
	noted Noted
	// brands and claim serve the pages of drops without a claim address. claim may be nil.
	brands Brands
	claim  Claim
	mux    *chi.Mux

	mu      sync.Mutex
	targets map[int64]string // of drops, as last seen
}

// NewDropLinks returns the links under [DropPrefix]. Invalid links look like invalid links of the
// other pages, and share their limits.
func NewDropLinks(p *Pages, links reminder.Links, drops Drops, noted Noted, brands Brands, claim Claim) *DropLinks {
	t := &DropLinks{pages: p, links: links, drops: drops, noted: noted, brands: brands, claim: claim, mux: chi.NewMux(), targets: map[int64]string{}}
	t.mux.Get("/{token}", t.lead)
	t.mux.Head("/{token}", t.lead)
	bound := middleware.Bound(middleware.NewBudget(claimsInFlight, "drop pages", nil), func(*http.Request) bool { return false },
		func(w http.ResponseWriter, r *http.Request) { t.pages.visit(w, r, DropPrefix).fail(errBusy) })
	t.mux.With(bound).Post("/{token}", t.claimed)
	t.mux.NotFound(t.missing)
	t.mux.MethodNotAllowed(t.missing)
	return t
}

// ServeHTTP answers a request below the mount point.
func (t *DropLinks) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.mux.ServeHTTP(w, r) }

func (t *DropLinks) missing(w http.ResponseWriter, r *http.Request) {
	t.pages.visit(w, r, DropPrefix).fail(user.ErrLink)
}

func (t *DropLinks) lead(w http.ResponseWriter, r *http.Request) {
	v := t.pages.visit(w, r, DropPrefix)
	reader, err := t.links.Parse(chi.URLParam(r, "token"))
	limiter, key := v.users, middleware.LimitKey{Kind: 'd', Low: uint64(reader.UserID)}
	if err != nil {
		q, r := middleware.Ensure(v.r)
		limiter, key = v.failed, middleware.AddressKey('l', q.ClientIP(r))
	}
	if limited := v.limit(limiter, key); limited != nil {
		err = limited
	}
	target, own := "", template.Template{}
	if err == nil {
		target, own, err = t.target(v.r.Context(), reader.TemplateID)
	}
	if err != nil {
		v.fail(err)
		return
	}
	if reader.UserID != 0 && !checksLinks(r) && !r.URL.Query().Has(counted) { // 0 = the example of a preview
		ctx, cancel := context.WithTimeout(v.r.Context(), noteFor)
		defer cancel()
		t.noted.Note(ctx, reader)
	}
	if target == "" {
		t.page(v, reader, own, http.StatusOK, droppages.Claimed{})
		return
	}
	http.Redirect(w, r, target, http.StatusFound)
}

// target returns the claim address of the drop, or the drop if it has none. While no database
// answers, target returns the address of the last answer. The address never comes from the request,
// so that a link cannot be altered to lead to another site.
func (t *DropLinks) target(ctx context.Context, id int64) (string, template.Template, error) {
	t.mu.Lock()
	last := t.targets[id]
	t.mu.Unlock()
	if last != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookFor)
		defer cancel()
	}
	d, err := t.drop(ctx, id)
	if err != nil {
		if last != "" && !errors.Is(err, user.ErrLink) {
			return last, d, nil
		}
		return "", d, err
	}
	target := addressOf(d)
	if target == "" {
		return "", d, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.targets) >= maxTargets {
		clear(t.targets)
	}
	t.targets[id] = target
	return target, d, nil
}
