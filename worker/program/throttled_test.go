package program

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

// slowDown is a webhook endpoint that answers its first call with a request to pause for a
// while.
type slowDown struct {
	mu    sync.Mutex
	calls []time.Time
}

func (s *slowDown) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls = append(s.calls, time.Now()); len(s.calls) == 1 {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// TestAProviderIsLeftAloneByAllWorkers: no worker calls the provider during the requested pause.
// Afterwards each recipient is reached.
func TestAProviderIsLeftAloneByAllWorkers(t *testing.T) {
	hook := &slowDown{}
	server := httptest.NewServer(hook)
	defer server.Close()
	r := newCampaignFixture(t, 2, "WEBHOOK_URL", server.URL, "WEBHOOK_SECRET", "whsec_YSBzZWNyZXQgZm9yIHRoZSB0ZXN0IG9mIHlpZWxkaW5n")
	r.exec(`insert into users (id) select i from generate_series(1, 3000) as i`)
	c := r.publish(func(s *campaign.Spec) { s.Channel, s.RatePerSecond = delivery.Webhook, 500 })
	st := r.until(c, "it does not finish", finished)
	if st.Progress.Sent != 3000 {
		t.Errorf("%+v", st.Progress)
	}
	hook.mu.Lock()
	defer hook.mu.Unlock()
	// Calls in flight, and a circuit that was seen closed a moment ago.
	const settled = 500 * time.Millisecond
	for i, at := range hook.calls[1:] {
		if since := at.Sub(hook.calls[0]); since > settled && since < 3*time.Second {
			t.Errorf("call %d came %v after the wish for 3s", i+2, since)
		}
	}
	r.audited(c)
	r.stop()
}
