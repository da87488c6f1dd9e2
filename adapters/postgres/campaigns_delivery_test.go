package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func (s *stage) do(c campaign.Campaign, step campaign.Transition) campaign.Campaign {
	s.Helper()
	c, err := s.service.Do(s.Context(), staff.System(), c.ID, 0, step, "test")
	s.must(err)
	return c
}

// TestPauseAndResumeStorm pauses and resumes fifty times while four workers
// deliver: nobody is left out and nobody gets it twice.
func TestPauseAndResumeStorm(t *testing.T) {
	s := newStage(t)
	s.users(6000, 2)
	c := s.running(nil)
	s.bring()
	hook := newSink(delivery.Webhook, 50)
	hook.answer = func(m delivery.Message, _ int) delivery.Result {
		<-time.After(time.Millisecond) // a provider takes time, so that pauses meet calls
		return delivery.Result{Status: delivery.Delivered}
	}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for range 4 {
		d := s.deliverer(hook)
		workers.Go(func() {
			for ctx.Err() == nil {
				if err := d.Drain(ctx, delivery.Webhook); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 {
		if _, err := s.service.Do(ctx, staff.System(), c.ID, 0, campaign.Pausing, ""); errors.Is(err, campaign.ErrTransition) {
			t.Fatalf("finished before the storm was over: %v", err)
		}
		s.do(c, campaign.Resuming)
	}
	deadline := time.Now().Add(time.Minute)
	for s.number(`select count(*) from batches where state <> 'done'`) > 0 && time.Now().Before(deadline) {
		<-time.After(20 * time.Millisecond)
	}
	stop()
	workers.Wait()
	s.reached(hook, 6000)
	if got := s.settled(c); got.Sent != 6000 || got.Reserved != 6000 {
		t.Errorf("books %+v", got)
	}
}

func TestPausedCampaignSendsNothing(t *testing.T) {
	s := newStage(t)
	s.users(2000, 1)
	c := s.running(nil)
	hook := newSink(delivery.Webhook, 100)
	d := s.deliverer(hook)
	// In the middle of the first batch somebody pauses, in the middle of the
	// cut's ranges becoming batches.
	var once sync.Once
	hook.answer = func(delivery.Message, int) delivery.Result {
		once.Do(func() { s.do(c, campaign.Pausing) })
		return delivery.Result{Status: delivery.Delivered}
	}
	s.bring()
	d.Parallel = nil // one call at a time
	s.must(d.Drain(t.Context(), delivery.Webhook))
	sent := len(hook.got)
	if sent == 0 || sent > 200 {
		t.Fatalf("%d users reached after the pause", sent)
	}
	s.exec(`update batches set next_run_at = clock_timestamp() - interval '1 minute' where state = 'ready'`)
	s.must(d.Drain(t.Context(), delivery.Webhook))
	if idle, err := s.batches.Overdue(t.Context(), 0); err != nil || len(idle) != 0 {
		t.Errorf("held batches wake %v %v", idle, err)
	}
	if len(hook.got) != sent {
		t.Fatalf("%d users reached while paused", len(hook.got)-sent)
	}
	if b := s.books(c); b.Counted.InFlight != int64(2000-sent) {
		t.Errorf("books %+v", b)
	}
	s.do(c, campaign.Resuming)
	s.must(d.Drain(t.Context(), delivery.Webhook))
	s.reached(hook, 2000)
	s.settled(c)
}

func TestCancelSkipsTheRest(t *testing.T) {
	s := newStage(t)
	s.users(3000, 1)
	c := s.running(nil)
	late := s.wire.take()
	s.wire.messages = late[:0]
	hook := newSink(delivery.Webhook, 100)
	s.do(c, campaign.Pausing)
	s.wire.messages = late
	c = s.do(c, campaign.Cancelling)
	s.bring() // ranges that were on the wire when it was cancelled
	s.must(s.deliverer(hook).Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got != (delivery.Counts{Reserved: 3000, Skipped: 3000}) || len(hook.got) != 0 {
		t.Errorf("books %+v, %d sent", got, len(hook.got))
	}
	if n := s.number(`select count(*) from batches where rest_reason = $1`, delivery.ReasonCampaignCancel); n != 3 {
		t.Errorf("%d batches say why", n)
	}
	if c = s.now(c); c.State != campaign.Cancelled {
		t.Errorf("the campaign is %s", c.State)
	}
	// One that never started has nobody to account for.
	draft := s.published(func(sp *campaign.Spec) { sp.Name = "other" })
	s.do(draft, campaign.Cancelling)
	if s.now(draft).SettledAt == nil {
		t.Error("a campaign that never started waits for its books")
	}
}

func TestCancelWhileCutting(t *testing.T) {
	s := newStage(t)
	s.users(250_000, 1)
	c := s.published(nil)
	s.must(s.launcher.Start(t.Context(), c.ID))
	d := &dying{Campaigns: s.campaigns, at: 3}
	first := &campaign.Launcher{Store: d, Wire: s.wire, Queue: s.queue, Now: clock, LeaseFor: 10 * time.Second}
	if err := first.Cut(t.Context(), c.ID); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	s.do(c, campaign.Cancelling)
	s.exec(`update campaigns set cut_lease_until = clock_timestamp() - interval '1 second'`)
	s.must(s.launcher.Cut(t.Context(), c.ID)) // nothing to do
	s.bring()
	s.must(s.deliverer(newSink(delivery.Webhook, 100)).Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got.Reserved != 100_000 || got.Skipped != 100_000 {
		t.Errorf("books %+v", got)
	}
}

// leaving is a store whose process is told to stop while the second page is read.
type leaving struct {
	postgres.Campaigns
	stop         func()
	pages, ended int
}

func (l *leaving) Audience(c campaign.Cut) campaign.AudienceReader {
	return &leavingReader{l.Campaigns.Audience(c), l}
}

type leavingReader struct {
	campaign.AudienceReader
	store *leaving
}

func (r *leavingReader) Next(ctx context.Context, limit int) (users, strangers []user.ID, err error) {
	if r.store.pages++; r.store.pages == 2 {
		r.store.stop()
		return nil, nil, ctx.Err()
	}
	return r.AudienceReader.Next(ctx, limit)
}

func (l *leaving) EndCut(context.Context, campaign.Cut) error {
	l.ended++
	return nil
}

func TestAReadThatIsBrokenOffIsNotTheEnd(t *testing.T) {
	s := newStage(t)
	s.users(120_000, 1)
	c := s.published(nil)
	s.must(s.launcher.Start(t.Context(), c.ID))
	ctx, stop := context.WithCancel(t.Context())
	store := &leaving{Campaigns: s.campaigns, stop: stop}
	l := &campaign.Launcher{Store: store, Wire: s.wire, Queue: s.queue, Now: clock, LeaseFor: 10 * time.Second}
	if err := l.Cut(ctx, c.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("the cut ended with %v", err)
	}
	if store.pages != 2 || store.ended != 0 {
		t.Errorf("after %d pages the audience was ended %d times", store.pages, store.ended)
	}
}

func TestEndExpiresWhoeverIsLeftEvenWhilePaused(t *testing.T) {
	s := newStage(t)
	s.users(1500, 1)
	c := s.running(nil)
	s.bring()
	s.do(c, campaign.Pausing)
	s.exec(`update campaigns set starts_at = starts_at - interval '2 hours', ends_at = clock_timestamp()`)
	s.exec(`update batches set worthless_after = clock_timestamp()`)
	if _, err := s.campaigns.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must(s.deliverer(newSink(delivery.Webhook, 100)).Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got != (delivery.Counts{Reserved: 1500, Expired: 1500}) {
		t.Errorf("books %+v", got)
	}
	if s.now(c).State != campaign.Finished {
		t.Errorf("the campaign is %s", s.now(c).State)
	}
}

// reasons counts the exceptions by reason.
func (s *stage) reasons(c campaign.Campaign) map[string]int64 {
	s.Helper()
	rows, err := s.sql.Query(s.Context(), `select e.outcome || ' ' || e.reason, count(*) from exceptions e join batches b on b.id = e.batch_id
		where b.kind = 'campaign' and b.owner_id = $1 group by 1`, c.ID)
	s.must(err)
	defer rows.Close()
	list := map[string]int64{}
	for rows.Next() {
		var reason string
		var n int64
		s.must(rows.Scan(&reason, &n))
		list[reason] = n
	}
	return list
}

func TestEverySkipSaysWhy(t *testing.T) {
	s := newStage(t)
	s.users(10, 1)
	s.exec(`update users set email = 'u' || id || '@example.com' where id <> 3`)       // 3: no contact
	s.exec(`update users set opt_outs = $1 where id = 4`, int16(delivery.Email.Bit())) // 4: opted out
	const minute = `(extract(hour from now()) * 60 + extract(minute from now()))::int`
	s.exec(`update users set quiet_from = (` + minute + ` + 1435) % 1440, quiet_to = (` + minute + ` + 1430) % 1440 where id = 5`) // 5: quiet until after the end
	s.exec(`update users set quiet_from = ` + minute + `, quiet_to = (` + minute + ` + 2) % 1440 where id = 6`)                    // 6: for a minute or two
	c := s.running(func(sp *campaign.Spec) { sp.Channel = delivery.Email })
	s.exec(`delete from users where id = 7`) // deleted meanwhile
	s.bring()
	mail := newSink(delivery.Email, 10)
	s.must(s.deliverer(mail).Drain(t.Context(), delivery.Email))
	got := s.reasons(c)
	want := map[string]int64{"skipped no_contact": 1, "skipped opted_out": 1, "skipped quiet_hours": 1, "failed quiet_hours": 1, "skipped user_deleted": 1}
	for reason, n := range want {
		if got[reason] != n {
			t.Errorf("%s: %d, want %d (all %v)", reason, got[reason], n, got)
		}
	}
	if len(got) != len(want) || len(mail.got) != 5 {
		t.Errorf("exceptions %v, %d sent", got, len(mail.got))
	}
	if n := s.number(`select count(*) from batches where next_run_at > clock_timestamp() and next_run_at < clock_timestamp() + interval '3 minutes'`); n != 1 {
		t.Error("the batch is not looked at again when the quiet hours end")
	}
	s.exec(`update users set quiet_from = 0, quiet_to = 0 where id = 6`)
	s.exec(`update exceptions set next_retry_at = clock_timestamp() where outcome = 'failed'`)
	s.exec(`update batches set next_run_at = clock_timestamp()`)
	s.must(s.deliverer(mail).Drain(t.Context(), delivery.Email))
	s.reached(mail, 6)
	if b := s.settled(c); b.Sent != 6 || b.Skipped != 4 {
		t.Errorf("books %+v", b)
	}
}

func TestStrangersGetTheirAppMessage(t *testing.T) {
	s := newStage(t)
	s.users(2, 1)
	c := s.running(func(sp *campaign.Spec) {
		sp.Channel, sp.Audience = delivery.App, campaign.Audience{Kind: campaign.Named, Users: ids(2, 900, 1, 900)}
	})
	s.exec(`delete from users where id = 1`)
	s.bring()
	app := newSink(delivery.App, 1000)
	s.must(s.deliverer(app).Drain(t.Context(), delivery.App))
	if b := s.settled(c); b != (delivery.Counts{Reserved: 3, Sent: 2, Skipped: 1}) {
		t.Errorf("books %+v", b)
	}
	if got := s.reasons(c); got["skipped user_deleted"] != 1 {
		t.Errorf("exceptions %v", got)
	}
}

func TestAudiencesOfATemplate(t *testing.T) {
	s := newStage(t)
	tpl := s.world.published(time.Hour)
	for _, id := range []user.ID{5, 9, 70_000} {
		s.reserve(tpl, id, reminders(delivery.App, 5)...)
	}
	s.exec(`insert into coupons (template_id, user_id, claim_id, origin, state, expires_at, issued_at) values
		($1, 5, 1, 'claim', 'unused', now() + interval '1 day', now()), ($1, 5, 2, 'claim', 'unused', now() + interval '1 day', now()),
		($1, 6, 3, 'claim', 'locked', now() + interval '1 day', now()), ($1, 7, 4, 'claim', 'used', now() + interval '1 day', now())`, tpl.ID)
	for kind, want := range map[campaign.AudienceKind]int64{campaign.Reserved: 3, campaign.Holds: 2} {
		a := campaign.Audience{Kind: kind, ID: tpl.ID}
		if n, exact, err := s.campaigns.Estimate(t.Context(), a); n != want || !exact || err != nil {
			t.Errorf("%s is estimated at %d %v %v", kind, n, exact, err)
		}
		c := s.running(func(sp *campaign.Spec) { sp.Name, sp.Audience = string(kind), a })
		if c.Shop != tpl.ShopNumber {
			t.Errorf("the campaign is of shop %d", c.Shop)
		}
		s.bring()
		if b := s.books(c); b.Counted.Reserved != want {
			t.Errorf("%s: %+v", kind, b)
		}
	}
	spec := campaignSpec()
	spec.Audience = campaign.Audience{Kind: campaign.Reserved, ID: 999}
	if _, err := s.service.Create(t.Context(), staff.System(), spec, ""); err == nil || !strings.Contains(err.Error(), "reserved_template_id") {
		t.Errorf("an unknown template: %v", err)
	}
}

// TestFrequencyCap runs campaigns of one shop at the same time: nobody gets
// more than the shop allows, and reminders do not count.
func TestFrequencyCap(t *testing.T) {
	s := newStage(t)
	s.users(1500, 1)
	s.exec(`insert into shops (number, name, timezone) values (10, 'A', 'UTC')`)
	s.exec(`insert into campaign_limits (shop_number, per_day, per_week) values (10, 2, 3)`)
	hook := newSink(delivery.Webhook, 100)
	per := map[user.ID]int{}
	hook.answer = func(m delivery.Message, _ int) delivery.Result {
		per[m.To.ID]++
		return delivery.Result{Status: delivery.Delivered}
	}
	var all []campaign.Campaign
	for i := range 4 {
		c := s.running(func(sp *campaign.Spec) { sp.Shop, sp.Name = 10, "c"+strconv.Itoa(i) })
		all = append(all, c)
	}
	s.bring()
	deadline := time.Now().Add(time.Minute)
	for s.number(`select count(*) from batches where state <> 'done'`) > 0 && time.Now().Before(deadline) {
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				if err := s.deliverer(hook).Drain(context.Background(), delivery.Webhook); err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		s.exec(`update exceptions set next_retry_at = clock_timestamp() where outcome = 'failed'`)
		s.exec(`update batches set next_run_at = clock_timestamp() where state = 'ready'`)
	}
	for id := range user.ID(1500) {
		if per[id+1] != 2 {
			t.Fatalf("user %d got %d messages, want 2", id+1, per[id+1])
		}
	}
	// Two days later one more fits into the week.
	s.exec(`update batches set finished_at = finished_at - interval '2 days', started_at = started_at - interval '2 days'`)
	for i := range 2 {
		all = append(all, s.running(func(sp *campaign.Spec) { sp.Shop, sp.Name = 10, "later"+strconv.Itoa(i) }))
		s.bring()
		s.must(s.deliverer(hook).Drain(t.Context(), delivery.Webhook))
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
	s := newStage(t)
	s.users(1000, 1)
	tpl := s.world.published(time.Hour)
	c := s.running(func(sp *campaign.Spec) { sp.GrantTemplate = tpl.ID })
	s.bring()
	gate := &granting{stock: 600, owners: map[user.ID]int{}}
	hook := newSink(delivery.Webhook, 50)
	hook.answer = func(m delivery.Message, _ int) delivery.Result {
		if n := gate.has(m.To.ID); n != 1 {
			t.Errorf("user %d was told of a coupon and has %d", m.To.ID, n)
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	d := s.deliverer(hook)
	d.Guards[delivery.KindCampaign] = &campaign.Guard{Store: s.campaigns, Granter: gate}
	deadline := time.Now().Add(time.Minute)
	for s.number(`select count(*) from batches where state <> 'done'`) > 0 && time.Now().Before(deadline) {
		s.must(d.Drain(t.Context(), delivery.Webhook))
		s.exec(`update batches set next_run_at = clock_timestamp() where state = 'ready'`)
	}
	s.reached(hook, 600)
	if got := s.reasons(c); got["skipped sold_out"] != 400 || len(got) != 1 {
		t.Errorf("exceptions %v", got)
	}
	s.settled(c)
	if n := s.number(`select count(*) from batches where template_id = $1`, tpl.ID); n != 1 {
		t.Error("the batch does not know its template")
	}
}

func TestDeadLettersOfACampaignAreReplayed(t *testing.T) {
	s := newStage(t)
	s.users(20, 1)
	c := s.running(nil)
	s.bring()
	hook := newSink(delivery.Webhook, 10)
	hook.answer = func(m delivery.Message, times int) delivery.Result {
		if m.To.ID <= 5 && times == 1 {
			return delivery.Result{Status: delivery.Permanent, Detail: "no such address"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	d := s.deliverer(hook)
	s.must(d.Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got.Dead != 5 || got.Sent != 15 {
		t.Fatalf("books %+v", got)
	}
	letters := &delivery.DeadLetters{Store: postgres.NewDeadLetters(s.db)}
	_, err := letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay})
	s.must(err)
	s.must(letters.Step(t.Context()))
	if s.now(c).State != campaign.Running {
		t.Errorf("the campaign is %s while dead letters are replayed", s.now(c).State)
	}
	s.must(d.Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got != (delivery.Counts{Reserved: 20, Sent: 20}) {
		t.Errorf("books %+v", got)
	}
}
