package program

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/sender"
	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/jsonapi"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/worker/senders"
)

const providersKey = "a key of at least thirty-two bytes"

// smsService implements the JSON interface of text messages. It answers with a given status and
// counts how often it took each message.
type smsService struct {
	*httptest.Server

	mu     sync.Mutex
	status int
	wait   string // Retry-After
	after  int    // calls that are answered with 200 first
	calls  int
	took   map[string]int
	stall  chan struct{} // calls from `at` on are not answered until it is closed; nil = none is
	at     int
	unsure map[string]int // messages of calls that were not answered
}

func newSMSService(t *testing.T, status int) *smsService {
	s := &smsService{status: status, took: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *smsService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			Key string `json:"idempotency_key"`
		} `json:"messages"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.status != http.StatusOK && s.calls > s.after {
		w.Header().Set("Retry-After", s.wait)
		w.WriteHeader(s.status)
		return
	}
	type result struct {
		Status string `json:"status"`
	}
	results := make([]result, len(in.Messages))
	stalls := s.stall != nil && s.calls >= s.at
	for i, m := range in.Messages {
		s.took[m.Key]++
		results[i].Status = "accepted"
		if stalls {
			s.unsure[m.Key]++
		}
	}
	if stalls {
		stall := s.stall
		s.mu.Unlock()
		select {
		case <-stall:
		case <-r.Context().Done():
		}
		s.mu.Lock()
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
}

func (s *smsService) set(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// taken returns the number of messages taken, and how often the most repeated message was taken.
func (s *smsService) taken() (n, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.took {
		most = max(most, times)
	}
	return len(s.took), most
}

// routed is a fixture of two workers. Its SMS channel has the services as providers, in the
// given order; n users have a phone number.
func routed(t *testing.T, n int, services ...*smsService) *campaignFixture {
	return routedOn(newCampaignFixture(t, 2, "PROVIDERS_KEY", providersKey, "PROVIDERS_PRIVATE", "yes"), n, services...)
}

// routedOn is [routed] of a fixture that is there.
func routedOn(r *campaignFixture, n int, services ...*smsService) *campaignFixture {
	t := r.T
	t.Helper()
	r.exec(`insert into users (id, phone) select i, '+86138' || lpad(i::text, 8, '0') from generate_series(1, $1) as i`, n)
	db, err := postgres.Open(t.Context(), r.url, postgres.Options{AppName: "test"})
	r.must(err)
	t.Cleanup(db.Close)
	box, err := seal.New(provider.SealPurpose, providersKey)
	r.must(err)
	service := &provider.Service{Store: deliverydb.NewConfigured(db), Box: box, Keyed: true, IsCountry: sms.IsCountry}
	for i, s := range services {
		_, err := service.Create(t.Context(), staff.System(), provider.Input{Kind: provider.JSON, Spec: provider.Spec{Name: fmt.Sprintf("service %d", i+1), Order: i, Weight: 1, Enabled: true,
			Settings: map[string]string{"url": s.URL}},
			Secrets: map[string]string{"token": "secret"}}, "")
		r.must(err)
	}
	return r
}

// outcomes returns, by provider, how many recipients of the campaign are recorded as sent
// through this provider.
func (r *campaignFixture) outcomes(c campaign.Campaign) map[int64]int64 {
	r.Helper()
	rows, err := r.sql.Query(r.Context(), `select p.provider_id, sum(p.sent_count) from batch_providers p join batches b on b.id = p.batch_id
		where b.kind = 'campaign' and b.owner_id = $1 group by 1`, c.ID)
	r.must(err)
	defer rows.Close()
	got := map[int64]int64{}
	for rows.Next() {
		var id, n int64
		r.must(rows.Scan(&id, &n))
		got[id] = n
	}
	return got
}

func throughSMS(s *campaign.Spec) { s.Channel = delivery.SMS }

// TestTheOtherProviderTakesOver: the first of two providers fails after a few calls until its
// circuit breaker opens, or asks the workers to wait. Every recipient is reached exactly once,
// each outcome names its provider, and the campaign balances.
func TestTheOtherProviderTakesOver(t *testing.T) {
	for name, answer := range map[string]int{"it fails": http.StatusServiceUnavailable, "it asks to wait": http.StatusTooManyRequests} {
		t.Run(name, func(t *testing.T) {
			a, b := newSMSService(t, answer), newSMSService(t, http.StatusOK)
			a.after = 6
			if answer == http.StatusTooManyRequests {
				a.wait = "120"
			}
			r := routed(t, 3000, a, b)
			c := r.publish(throughSMS)
			st := r.until(c, "it does not finish", finished)
			first, most1 := a.taken()
			second, most2 := b.taken()
			if st.Progress.Sent != 3000 || first+second != 3000 || most1 != 1 || most2 != 1 || first == 0 {
				t.Errorf("%+v; %d through the first, %d through the second, a message at most %d and %d times", st.Progress, first, second, most1, most2)
			}
			if got := r.outcomes(c); got[1] != int64(first) || got[2] != int64(second) {
				t.Errorf("recorded %v, want %d and %d", got, first, second)
			}
			r.audited(c)
			r.stop()
		})
	}
}

// TestBothProvidersAreDown: messages are retried until a provider works. A message that cannot
// be sent within its attempts becomes a dead letter that names the provider.
func TestBothProvidersAreDown(t *testing.T) {
	a, b := newSMSService(t, http.StatusServiceUnavailable), newSMSService(t, http.StatusServiceUnavailable)
	r := routed(t, 300, a, b)
	c := r.publish(throughSMS)
	r.until(c, "nothing fails", func(campaign.Status) bool {
		var n int
		r.must(r.sql.QueryRow(t.Context(), `select count(*) from exceptions where outcome = 'failed' and provider_id in (1, 2)`).Scan(&n))
		return n > 0
	})
	r.exec(`update exceptions set attempts = 7, next_retry_at = now() where user_id = (select min(user_id) from exceptions where outcome = 'failed')`)
	r.exec(`update batches set next_run_at = now() where state = 'ready'`)
	var via int64
	r.until(c, "nothing is dead", func(campaign.Status) bool {
		err := r.sql.QueryRow(t.Context(), `select coalesce(max(provider_id), 0) from exceptions where outcome = 'dead'`).Scan(&via)
		r.must(err)
		return via != 0
	})
	b.set(http.StatusOK)
	st := r.until(c, "it does not finish", finished)
	if n, most := b.taken(); st.Progress.Dead == 0 || st.Progress.Sent+st.Progress.Dead != 300 || int64(n) != st.Progress.Sent || most != 1 {
		t.Errorf("%+v, %d taken, a message at most %d times", st.Progress, n, most)
	}
	r.audited(c)
	r.stop()
}

// TestARouterIsASender: a router fulfils the contract of senders, with one provider and with two
// providers that share the messages.
func TestARouterIsASender(t *testing.T) {
	for name, weights := range map[string][]int{"one provider": {1}, "two providers": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			build := func(t *testing.T, answer http.HandlerFunc) delivery.Sender {
				t.Helper()
				server := httptest.NewServer(answer)
				t.Cleanup(server.Close)
				var entries []provider.Entry
				for i, w := range weights {
					s, err := jsonapi.New(jsonapi.Config{URL: server.URL, Token: "secret", Options: sender.Options{Timeout: time.Minute}})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = s.Close() })
					entries = append(entries, provider.Entry{Provider: provider.Provider{ID: int64(i + 1), Spec: provider.Spec{Enabled: true, Weight: w}}, Sender: s})
				}
				p, _ := assembled(t)
				router := provider.NewRouter(delivery.SMS, nil, senders.NewBreakers(p.Redis, p.alone, p.Log), func(*user.User) string { return "" }, time.Now)
				router.Set(entries)
				return router
			}
			sendertest.Run(t, sendertest.Harness{
				Accepting: func(t *testing.T) delivery.Sender {
					return build(t, (&smsService{status: http.StatusOK, took: map[string]int{}}).ServeHTTP)
				},
				Stalled: func(t *testing.T) delivery.Sender {
					return build(t, func(_ http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client has gone
						<-r.Context().Done()
					})
				},
				Unreachable: func(u *user.User) { u.Phone = "none" },
			})
		})
	}
}
