package program

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// titleLog is a webhook endpoint that notes the titles that each user gets.
type titleLog struct {
	mu   sync.Mutex
	read map[user.ID][]string
}

func (l *titleLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			UserID string `json:"user_id"`
			Title  string `json:"title"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range body.Messages {
		id, err := user.ParseID(m.UserID)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.read[id] = append(l.read[id], m.Title)
	}
}

// readBy returns the titles that the user got.
func (l *titleLog) readBy(id user.ID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.read[id])
}

func (l *titleLog) users() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.read)
}

// TestWorkersDecideATest: two workers send the two versions of a campaign to the share in its test.
// Nobody else gets a message before the end of the test. Then the loop of a worker decides, and the
// version with more clicks goes to all other recipients, once each, although Redis is emptied and all
// workers end right after the end of the test.
func TestWorkersDecideATest(t *testing.T) {
	log := &titleLog{read: map[user.ID][]string{}}
	server := httptest.NewServer(log)
	t.Cleanup(server.Close)
	const users = 600
	r := newCampaignFixture(t, 2, "WEBHOOK_URL", server.URL, "WEBHOOK_SECRET", "whsec_YSBzZWNyZXQgZm9yIHRoZSB0ZXN0IG9mIHlpZWxkaW5n")
	r.exec(`insert into users (id) select i from generate_series(1, $1::int) as i`, users)
	text := func(title string) map[string]delivery.Text {
		return map[string]delivery.Text{"": {Title: title, Body: "https://shop.example/" + title}}
	}
	c := r.publish(func(s *campaign.Spec) {
		s.Channel, s.EndsAt = delivery.Webhook, s.StartsAt.Add(5*time.Hour)
		s.Content = delivery.Copy{Variants: []delivery.Variant{{Percent: 50, Texts: text("A")}, {Percent: 50, Texts: text("B")}},
			Test: &delivery.Test{Share: 30, By: delivery.ByOpened, Minutes: 60}}
	})
	group := func(id user.ID) int { return c.Content.Group(c.ID, id) }
	tested, opened := 0, 0
	for id := user.ID(1); id <= users; id++ {
		if group(id) != delivery.Remaining {
			tested++
		}
	}
	if tested < users/5 || tested > users/2 {
		t.Fatalf("%d of %d users are in the test", tested, users)
	}
	r.until(c, "the test is not sent", func(st campaign.Status) bool { return st.Progress.Sent == int64(tested) })
	for id := user.ID(1); id <= users; id++ {
		want := map[int][]string{0: {"A"}, 1: {"B"}}[group(id)]
		if got := log.readBy(id); !slices.Equal(got, want) {
			t.Fatalf("user %d of group %d reads %q before the decision", id, group(id), got)
		}
		if group(id) == 1 { // every reader of B opens a link, and no reader of A does
			r.exec(`insert into campaign_openings (campaign_id, user_id, variant, opened_at) values ($1, $2, 1, clock_timestamp())`, c.ID, id)
			opened++
		}
	}
	r.exec(`update campaigns set started_at = clock_timestamp() - interval '61 minutes' where id = $1`, c.ID)
	r.must(r.redis.FlushAll(t.Context()).Err())
	r.stop()
	r.start(2)
	st := r.until(c, "the winner is not sent", func(st campaign.Status) bool { return st.Progress.Sent == users })
	if log.users() != users {
		t.Errorf("%d of %d users got a message", log.users(), users)
	}
	for id := user.ID(1); id <= users; id++ {
		want := map[int][]string{0: {"A"}, 1: {"B"}, delivery.Remaining: {"B"}}[group(id)]
		if got := log.readBy(id); !slices.Equal(got, want) {
			t.Errorf("user %d of group %d reads %q, want %q", id, group(id), got, want)
		}
	}
	var decided string
	r.must(r.sql.QueryRow(t.Context(), `select string_agg(look::text || ' ' || winner::text, ',') from campaign_decisions where campaign_id = $1`, c.ID).Scan(&decided))
	if want := fmt.Sprintf("%v 1", campaign.AtEnd); decided != want || st.Content.Test.Winner == nil || *st.Content.Test.Winner != 1 || opened == 0 {
		t.Errorf("decided %q, want %q; the content says %v", decided, want, st.Content.Test)
	}
	r.audited(c)
	r.stop()
}
