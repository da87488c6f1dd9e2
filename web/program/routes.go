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

// Sign-in is throttled after a handful of attempts per network. Passwords of one account can be
// guessed at less than 170 times a day from one network, and less than 1,600 times from all
// networks together.
const (
	signInBurst  = 5
	signInEvery  = 10 * time.Second
	guessesBurst = 20
	guessesEvery = 10 * time.Minute
	allBurst     = 100
	allEvery     = time.Minute
)

// staffInFlight is how many staff requests the console and the API each serve at a time. They are
// counted apart from the requests of end users, which are far more numerous.
const staffInFlight = 256

// Forms of the console are read before they take a place among staffInFlight, so that slow clients,
// signed in or not, take no place.
const (
	consoleForm   = 64 << 10
	consoleMemory = 32 << 20
)

// receivedForms reads forms of the console before the requests take a place.
func receivedForms() func(http.Handler) http.Handler {
	return middleware.NewReception(consoleForm, consoleMemory).Received(busy)
}

// isStream reports whether the console request lasts as long as a page is open.
func isStream(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/live") }

func busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests are being served; try again", http.StatusServiceUnavailable)
}

// waitsFor returns the reasons, apart from its stores, why this program is not ready.
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

// watchErased reads the erased users at once and whenever again fires. A failed read changes
// nothing, and is logged once.
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

// mountLinks serves the pages behind links in messages. Without a secret there are no links, and
// every address below answers 404.
func (p *program) mountLinks(r chi.Router) {
	pages := links.New(links.Deps{Users: p.useCases.Users, Standing: p.standing(), Links: user.NewLinks(p.Config.LinkSecret), Channels: &p.channels, Now: app.Clock, Log: p.Log})
	r.Mount(links.Prefix, pages)
	r.Mount(links.TrackedPrefix, links.NewTracked(pages, p.campaignLinks(), p.Stores.Campaigns, p.dropLinks().Addresses(p.Config.PublicURL)))
	r.Mount(links.DropPrefix, links.NewDropLinks(pages, p.dropLinks(), p.lookup, p.openings, p.surroundings.Texts, p.claimByLink))
	r.Mount(links.DrawPrefix, links.NewDrawPages(pages, p.lookup, p.draws(), p.surroundings.Texts, p.Config.PublicURL))
	r.Mount(links.ReportPrefix, links.NewReports(pages, p.useCases.Reports.Signed, p.useCases.Reports, p.surroundings.Texts, p.Config.PublicURL))
}
