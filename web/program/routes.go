package program

import (
	"net/http"
	"strings"
	"time"
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
	return reasons
}

// ready answers /readyz.
func (p *program) ready(w http.ResponseWriter, r *http.Request) {
	p.Ready(p.bus.Health, p.waitsFor)(w, r)
}
