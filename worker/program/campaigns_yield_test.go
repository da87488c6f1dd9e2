package program

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// noticedWithin is how soon campaigns must have noticed that reminders are due: their cached
// answer is up to 300 ms old (controlLife in worker/campaigns), and calls that are in flight
// finish first.
const noticedWithin = (300 + 500) * time.Millisecond

// hookLog is a webhook endpoint that notes when messages of each kind arrive.
type hookLog struct {
	mu sync.Mutex
	at map[delivery.Kind][]time.Time
}

func (h *hookLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Kind delivery.Kind }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range body.Messages {
		h.at[m.Kind] = append(h.at[m.Kind], time.Now())
	}
}

func (h *hookLog) arrivals(k delivery.Kind) []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]time.Time(nil), h.at[k]...)
}

// TestRemindersGoBeforeCampaigns: a slot falls due while a campaign is sent over a channel that
// is short of capacity. All reminders of the slot are sent before the campaign continues. The
// second rate is lower than the size of one reminder call: batches of reminders must wait for
// permits, while the small calls of the campaign would always get some.
func TestRemindersGoBeforeCampaigns(t *testing.T) {
	for _, c := range []struct {
		name                         string
		channel, campaign, reminders int // messages per second; recipients
	}{{"whole calls", 200, 0, 600}, {"less than a call", 30, 25, 120}} {
		t.Run(c.name, func(t *testing.T) {
			hook := &hookLog{at: map[delivery.Kind][]time.Time{}}
			server := httptest.NewServer(hook)
			t.Cleanup(server.Close)
			r := newCampaignFixture(t, 2, "WEBHOOK_URL", server.URL, "WEBHOOK_SECRET", "whsec_YSBzZWNyZXQgZm9yIHRoZSB0ZXN0IG9mIHlpZWxkaW5n")
			r.exec(`insert into users (id) select i from generate_series(1, 20000) as i`)
			r.exec(`update channel_settings set rate_per_second = $1 where channel = $2`, c.channel, delivery.Webhook)
			r.reserve(c.reminders, 10*time.Second)
			running := r.publish(func(s *campaign.Spec) { s.Channel, s.RatePerSecond = delivery.Webhook, c.campaign })
			r.until(running, "the campaign does not begin", func(st campaign.Status) bool { return st.Progress.Sent > 0 })
			r.eventually("not every reminder was sent", func() bool { return len(hook.arrivals(delivery.KindReminder)) >= c.reminders })
			var fired time.Time
			r.must(r.sql.QueryRow(t.Context(), `select fired_at from slots where fired_at is not null and state in ('sending', 'finished')`).Scan(&fired))
			reminders := hook.arrivals(delivery.KindReminder)
			last, between, before := reminders[len(reminders)-1], 0, 0
			for _, at := range hook.arrivals(delivery.KindCampaign) {
				switch {
				case at.Before(fired):
					before++
				case at.After(fired.Add(noticedWithin)) && at.Before(last):
					between++
				}
			}
			t.Logf("%d reminders at %d a second: the last %v after firing; %d messages of the campaign before, %d meanwhile", len(reminders), c.channel,
				last.Sub(fired).Round(time.Millisecond), before, between)
			if before == 0 || between > 0 || len(reminders) != c.reminders {
				t.Errorf("%d messages of the campaign were sent before, %d while %d reminders waited", before, between, len(reminders))
			}
			sent := len(hook.arrivals(delivery.KindCampaign))
			r.eventually("the campaign does not go on", func() bool { return len(hook.arrivals(delivery.KindCampaign)) > sent })
			r.stop()
		})
	}
}

// reserve publishes a drop with webhook reminders for n users. The reminders fall due after
// about the given time.
func (r *campaignFixture) reserve(n int, after time.Duration) {
	r.Helper()
	service := &template.Service{Store: r.service.Templates.(dropsdb.Templates), Now: app.Clock}
	opens := app.Clock().Add(5*time.Minute + after).Truncate(time.Second)
	tpl, err := service.Create(r.Context(), staff.System(), template.Spec{ShopNumber: 10, Name: "Drop", Kind: template.AmountOff, AmountOff: 1000, Currency: "CNY",
		Target: template.WholeShop, Stock: 100, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour), ValidHours: 48, Obtain: template.ByClaim,
		ClaimMode: template.Durable}, "")
	r.must(err)
	_, err = service.Do(r.Context(), staff.System(), tpl.ID, 0, template.Publishing, "")
	r.must(err)
	r.exec(`insert into reservations (template_id, user_id, slots) select $1, i, $2 from generate_series(1, $3::int) as i`, tpl.ID,
		int64(1)<<(template.Slots*int(delivery.Webhook)), n)
}

func (r *campaignFixture) eventually(what string, done func() bool) {
	r.Helper()
	for end := time.Now().Add(localstack.Patience(r.T)); !done(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatal(what)
		}
	}
}
