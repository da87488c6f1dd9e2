package program

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"dropbell/domain/campaign"
)

// workerEnv has the environment of a worker that a test starts as a process of its own.
const workerEnv = "DROPBELL_TEST_WORKER"

// TestMain runs the tests, or is that process.
func TestMain(m *testing.M) {
	raw := os.Getenv(workerEnv)
	if raw == "" {
		os.Exit(m.Run())
	}
	var env map[string]string
	if err := json.Unmarshal([]byte(raw), &env); err != nil {
		panic(err)
	}
	_ = run(context.Background(), func(name string) string { return env[name] }, io.Discard)
}

// TestAKillWhileTheOtherProviderTakesOver: the first of two providers fails until its circuit
// breaker opens, and the second takes over. The worker is killed while calls of the second
// provider have taken messages and not answered. Another worker finishes: every recipient is
// reached, only messages of those calls are sent twice, and each outcome names its provider.
func TestAKillWhileTheOtherProviderTakesOver(t *testing.T) {
	const n = 3000
	a, b := newSMSService(t, http.StatusServiceUnavailable), newSMSService(t, http.StatusOK)
	a.after = 6
	b.stall, b.at, b.unsure = make(chan struct{}), 5, map[string]int{}
	r := routedOn(newCampaignFixture(t, 0, "PROVIDERS_KEY", providersKey, "PROVIDERS_PRIVATE", "yes"), n, a, b)
	raw, err := json.Marshal(r.env)
	r.must(err)
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), workerEnv+"="+string(raw))
	r.must(victim.Start())
	c := r.publish(throughSMS)
	r.until(c, "the calls that were answered are not all recorded", func(campaign.Status) bool {
		var recorded int
		r.must(r.sql.QueryRow(t.Context(), `select coalesce(sum(sent_count), 0) from batches where kind = 'campaign'`).Scan(&recorded))
		first, _ := a.taken()
		second, _ := b.taken()
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.unsure) > 0 && recorded == first+second-len(b.unsure)
	})
	r.must(victim.Process.Kill())
	_ = victim.Wait()
	b.mu.Lock()
	close(b.stall)
	b.stall = nil
	b.mu.Unlock()

	r.start(1)
	st := r.until(c, "it does not finish", finished)
	if st.Progress.Sent != n || st.Progress.Reserved != n {
		t.Errorf("%+v", st.Progress)
	}
	reached := map[string]int{}
	for _, s := range []*smsService{a, b} {
		s.mu.Lock()
		for key, times := range s.took {
			reached[key] += times
		}
		s.mu.Unlock()
	}
	for key, times := range reached {
		if most := 1 + b.unsure[key]; times > most {
			t.Errorf("%s was taken %d times, want at most %d", key, times, most)
		}
	}
	got := r.outcomes(c)
	if len(reached) != n || got[1]+got[2] != n || got[1] == 0 || got[2] == 0 {
		t.Errorf("%d of %d recipients were reached; recorded by provider: %v", len(reached), n, got)
	}
	r.audited(c)
	r.stop()
}
