package campaigns_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// reasons counts the exceptions by reason.
func (s *campaignFixture) reasons(c campaign.Campaign) map[string]int64 {
	s.Helper()
	rows, err := s.SQL.Query(s.Context(), `select e.outcome || ' ' || e.reason, count(*) from exceptions e join batches b on b.id = e.batch_id
		where b.kind = 'campaign' and b.owner_id = $1 group by 1`, c.ID)
	s.Must(err)
	defer rows.Close()
	list := map[string]int64{}
	for rows.Next() {
		var reason string
		var n int64
		s.Must(rows.Scan(&reason, &n))
		list[reason] = n
	}
	return list
}

func TestEverySkipSaysWhy(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(10, 1)
	s.Exec(`update users set email = 'u' || id || '@example.com' where id <> 3`)       // 3: no contact
	s.Exec(`update users set opt_outs = $1 where id = 4`, int16(delivery.Email.Bit())) // 4: opted out
	const minute = `(extract(hour from now()) * 60 + extract(minute from now()))::int`
	s.Exec(`update users set quiet_from = (` + minute + ` + 1435) % 1440, quiet_to = (` + minute + ` + 1430) % 1440 where id = 5`) // 5: quiet until after the end
	s.Exec(`update users set quiet_from = ` + minute + `, quiet_to = (` + minute + ` + 2) % 1440 where id = 6`)                    // 6: for a minute or two
	c := s.running(func(sp *campaign.Spec) { sp.Channel = delivery.Email })
	s.Exec(`delete from users where id = 7`) // deleted meanwhile
	mail := pgtest.NewSink(delivery.Email, 10)
	s.Must(s.deliverer(mail).Drain(t.Context(), delivery.Email))
	got := s.reasons(c)
	want := map[string]int64{"skipped no_contact": 1, "skipped opted_out": 1, "skipped quiet_hours": 1, "failed quiet_hours": 1, "skipped user_deleted": 1}
	for reason, n := range want {
		if got[reason] != n {
			t.Errorf("%s: %d, want %d (all %v)", reason, got[reason], n, got)
		}
	}
	if len(got) != len(want) || len(mail.Got) != 5 {
		t.Errorf("exceptions %v, %d sent", got, len(mail.Got))
	}
	if n := s.Number(`select count(*) from batches where next_run_at > clock_timestamp() and next_run_at < clock_timestamp() + interval '3 minutes'`); n != 1 {
		t.Error("the batch is not looked at again when the quiet hours end")
	}
	s.Exec(`update users set quiet_from = 0, quiet_to = 0 where id = 6`)
	s.Exec(`update exceptions set next_retry_at = clock_timestamp() where outcome = 'failed'`)
	s.Exec(`update batches set next_run_at = clock_timestamp()`)
	s.Must(s.deliverer(mail).Drain(t.Context(), delivery.Email))
	s.reached(mail, 6)
	if b := s.settled(c); b.Sent != 6 || b.Skipped != 4 {
		t.Errorf("books %+v", b)
	}
}

// TestFrequencyCap runs campaigns of one shop at the same time: no user gets
// more than the shop allows, and reminders do not count.
func TestFrequencyCap(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(1500, 1)
	s.Shops(10)
	s.Exec(`insert into campaign_limits (shop_number, per_day, per_week) values (10, 2, 3)`)
	hook := pgtest.NewSink(delivery.Webhook, 100)
	per := map[user.ID]int{}
	hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		per[m.To.ID]++
		return delivery.Result{Status: delivery.Delivered}
	}
	var all []campaign.Campaign
	for i := range 4 {
		c := s.running(func(sp *campaign.Spec) { sp.Shop, sp.Name = 10, "c"+strconv.Itoa(i) })
		all = append(all, c)
	}
	deadline := time.Now().Add(time.Minute)
	for s.Number(`select count(*) from batches where state <> 'done'`) > 0 && time.Now().Before(deadline) {
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				if err := s.deliverer(hook).Drain(context.Background(), delivery.Webhook); err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		s.Exec(`update exceptions set next_retry_at = clock_timestamp() where outcome = 'failed'`)
		s.Exec(`update batches set next_run_at = clock_timestamp() where state = 'ready'`)
	}
	for id := range user.ID(1500) {
		if per[id+1] != 2 {
			t.Fatalf("user %d got %d messages, want 2", id+1, per[id+1])
		}
	}
	// Two days later one more message fits into the week.
	s.Exec(`update batches set finished_at = finished_at - interval '2 days', started_at = started_at - interval '2 days'`)
	for i := range 2 {
		all = append(all, s.running(func(sp *campaign.Spec) { sp.Shop, sp.Name = 10, "later"+strconv.Itoa(i) }))
		s.Must(s.deliverer(hook).Drain(t.Context(), delivery.Webhook))
	}
	for id := range user.ID(1500) {
		if per[id+1] != 3 {
			t.Fatalf("user %d got %d messages, want 3", id+1, per[id+1])
		}
	}
	var sum delivery.Counts
	for _, c := range all {
		sum = sum.Plus(s.settled(c))
	}
	if sum != (delivery.Counts{Reserved: 9000, Sent: 4500, Skipped: 4500}) {
		t.Errorf("books %+v", sum)
	}
}

// granting is a gate with so many coupons that fails now and then.
type granting struct {
	mu     sync.Mutex
	stock  int
	owners map[user.ID]int
}

func (g *granting) has(id user.ID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.owners[id]
}

func (g *granting) Grant(_ context.Context, w campaign.Grant) (map[user.ID]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	refused := map[user.ID]string{}
	for _, id := range w.Users {
		switch {
		case g.owners[id] > 0: // repeated
		case g.stock == 0:
			refused[id] = delivery.ReasonSoldOut
		default:
			g.stock--
			g.owners[id]++
		}
	}
	if rand.IntN(3) == 0 { // the answer is lost
		return nil, errors.New("away")
	}
	return refused, nil
}

func TestGrantBeforeTheMessage(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(1000, 1)
	tpl := s.fixture.Published(time.Hour)
	c := s.running(func(sp *campaign.Spec) { sp.GrantTemplate = tpl.ID })
	gate := &granting{stock: 600, owners: map[user.ID]int{}}
	hook := pgtest.NewSink(delivery.Webhook, 50)
	hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		if n := gate.has(m.To.ID); n != 1 {
			t.Errorf("user %d was told of a coupon and has %d", m.To.ID, n)
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	d := s.deliverer(hook)
	d.Guards[delivery.KindCampaign] = &campaign.Guard{Store: s.campaigns, Granter: gate}
	deadline := time.Now().Add(time.Minute)
	for s.Number(`select count(*) from batches where state <> 'done'`) > 0 && time.Now().Before(deadline) {
		s.Must(d.Drain(t.Context(), delivery.Webhook))
		s.Exec(`update batches set next_run_at = clock_timestamp() where state = 'ready'`)
	}
	s.reached(hook, 600)
	if got := s.reasons(c); got["skipped sold_out"] != 400 || len(got) != 1 {
		t.Errorf("exceptions %v", got)
	}
	s.settled(c)
	if n := s.Number(`select count(*) from batches where template_id = $1`, tpl.ID); n != 1 {
		t.Error("the batch does not know its template")
	}
}
