package program

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/app"
	"dropbell/domain/user"
	"dropbell/web/links"
	"dropbell/web/middleware"
)

// Sign-in is slowed down after a handful of attempts per network. Passwords of
// one account can be guessed at less than 170 times a day from one network, and
// less than 1,600 times from all together.
const (
	signInBurst  = 5
	signInEvery  = 10 * time.Second
	guessesBurst = 20
	guessesEvery = 10 * time.Minute
	allBurst     = 100
	allEvery     = time.Minute
)

// staffInFlight is how many requests of staff, in the console and by the API
// each, are served at a time. They are counted apart from those of end users,
// of whom there are many more.
const staffInFlight = 256

// Forms of the console are read before they take a place among staffInFlight, so that slow
// clients, signed in or not, take none.
const (
	consoleForm   = 64 << 10
	consoleMemory = 32 << 20
)

// receivedForms reads forms of the console before the requests take a place.
func receivedForms() func(http.Handler) http.Handler {
	return middleware.NewReception(consoleForm, consoleMemory).Received(busy)
}

// isStream reports whether the request of the console lasts as long as a page
// is open.
func isStream(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/live") }

func busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests are being served; try again", http.StatusServiceUnavailable)
}

// waitsFor is what this program waits for beside its stores.
func (p *program) waitsFor(databaseReady bool) (reasons []string) {
	if p.draining.Load() {
		reasons = append(reasons, "shutting down")
	}
	if databaseReady && !p.access.Load() {
		reasons = append(reasons, "the first admin and key are not set up yet")
	}
	if databaseReady && !p.Erased.Known() {
		reasons = append(reasons, "the users who were erased are not read yet")
	}
	return reasons
}

// watchErased looks at once and whenever it is told to. A failed look, which leaves
// everything as it was, is logged once.
func (p *program) watchErased(ctx context.Context, again <-chan time.Time) {
	failing := false
	for {
		err := p.Erased.Look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			p.Log.Warn("the users who were erased cannot be read; users erased from now on can claim until they can", "error", err)
		}
		failing = err != nil
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// ready answers /readyz.
func (p *program) ready(w http.ResponseWriter, r *http.Request) {
	p.Ready(p.bus.Health, p.waitsFor)(w, r)
}

// mountLinks serves the pages behind links in messages. Without a secret
// there are no links, and every address below is missing.
func (p *program) mountLinks(r chi.Router) {
	pages := links.New(links.Deps{Users: p.users, Links: user.NewLinks(p.Config.LinkSecret), Channels: &p.channels, Now: app.Clock, Log: p.Log})
	r.Mount(links.Prefix, pages)
	r.Mount(links.TrackedPrefix, links.NewTracked(pages, p.campaignLinks(), p.Stores.Campaigns))
	r.Mount(links.DropPrefix, links.NewDropLinks(pages, p.dropLinks(), p.lookup, p.openings))
	r.Mount(links.ReportPrefix, links.NewReports(pages, p.reports.Signed, p.reports))
}
