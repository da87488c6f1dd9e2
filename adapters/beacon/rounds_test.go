package beacon_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dropbell/adapters/beacon"
	"dropbell/domain/draw"
	"dropbell/musttest"
)

// relay is a relay of drand that answers requests with answer.
func relay(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

func says(round int64, signature string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"round":%d,"randomness":"00","signature":%q}`, round, signature)
	}
}

// A round counts by its signature alone: relays that lie, answer another round, fail or do not answer cannot
// decide a draw, and do not keep an honest relay from being heard.
func TestRoundsOfRelays(t *testing.T) {
	source := draw.Source{Kind: draw.Drand, Detail: draw.QuicknetChain}
	asked := make(chan string, 1)
	honest := relay(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default:
		}
		says(1000, strings.ToUpper(signature1000))(w, r)
	})
	stopped := make(chan struct{})
	silent := relay(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stopped:
		}
	})
	t.Cleanup(func() { close(stopped) }) // before the server's own clean-up
	other := strings.Replace(signature1000, "b4", "a4", 1)
	liars := map[string]string{
		"another signature": relay(t, says(1000, other)),
		"an old round":      relay(t, says(999, signature1000)),
		"not there yet":     relay(t, http.NotFound),
		"no JSON":           relay(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }),
		"no signature":      relay(t, says(1000, "")),
		"no address":        "http://127.0.0.1:1",
	}
	for what, liar := range liars {
		if got, err := (beacon.Rounds{Relays: []string{liar}}).Round(t.Context(), source, 1000); !errors.Is(err, draw.ErrNoRound) || got != "" {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		if got, err := (beacon.Rounds{Relays: []string{liar, honest}}).Round(t.Context(), source, 1000); err != nil || got != signature1000 {
			t.Errorf("%s and an honest relay: %q, %v", what, got, err)
		}
	}
	if got, err := (beacon.Rounds{Relays: []string{silent, honest}}).Round(t.Context(), source, 1000); err != nil || got != signature1000 {
		t.Errorf("a relay that does not answer, and an honest one: %q, %v", got, err)
	}
	if path := <-asked; path != "/"+draw.QuicknetChain+"/public/1000" {
		t.Errorf("the relay is asked for %s", path)
	}
	// An honest relay that is asked for another round than it has.
	if _, err := (beacon.Rounds{Relays: []string{honest}}).Round(t.Context(), source, 1001); !errors.Is(err, draw.ErrNoRound) {
		t.Errorf("round 1001: %v", err)
	}
	if _, err := (beacon.Rounds{}).Round(t.Context(), source, 1000); !errors.Is(err, draw.ErrNoRound) {
		t.Errorf("without relays: %v", err)
	}
}

// The local beacon gives rounds of its own key alone.
func TestRoundsOfTheLocalBeacon(t *testing.T) {
	local, err := beacon.NewLocal([]byte(strings.Repeat("local", 8)))
	musttest.OK(t, err)
	source := draw.Source{Kind: draw.Local, Detail: local.Public()}
	evidence, err := (beacon.Rounds{Local: local}).Round(t.Context(), source, 5)
	musttest.OK(t, err)
	if _, err := source.Randomness(beacon.Judge{}, 5, evidence); err != nil {
		t.Error(err)
	}
	source.Detail = strings.Replace(source.Detail, source.Detail[:2], "00", 1)
	if _, err := (beacon.Rounds{Local: local}).Round(t.Context(), source, 5); !errors.Is(err, draw.ErrNoRound) {
		t.Errorf("the beacon of another card: %v", err)
	}
}
