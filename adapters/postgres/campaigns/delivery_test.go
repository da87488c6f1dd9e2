package campaigns_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func (s *campaignFixture) do(c campaign.Campaign, step campaign.Transition) campaign.Campaign {
	s.Helper()
	c, err := s.service.Do(s.Context(), staff.System(), c.ID, 0, step, "test")
	s.Must(err)
	return c
}

// TestPauseAndResumeStorm pauses and resumes fifty times while four workers
// deliver: each user gets the message once.
func TestPauseAndResumeStorm(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(6000, 2)
	c := s.running(nil)
	hook := pgtest.NewSink(delivery.Webhook, 50)
	hook.Answer = func(m delivery.Message, _ int) delivery.Result {
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
	for s.Number(`select count(*) from batches where state <> 'done'`) > 0 && time.Now().Before(deadline) {
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
	s := newCampaignFixture(t)
	s.users(2000, 1)
	c := s.running(nil)
	hook := pgtest.NewSink(delivery.Webhook, 100)
	d := s.deliverer(hook)
	// The campaign is paused in the middle of the first batch, while the cut's
	// ranges are becoming batches.
	var once sync.Once
	hook.Answer = func(delivery.Message, int) delivery.Result {
		once.Do(func() { s.do(c, campaign.Pausing) })
		return delivery.Result{Status: delivery.Delivered}
	}
	d.Parallel = nil // one call at a time
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	sent := len(hook.Got)
	if sent == 0 || sent > 200 {
		t.Fatalf("%d users reached after the pause", sent)
	}
	s.Exec(`update batches set next_run_at = clock_timestamp() - interval '1 minute' where state = 'ready'`)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	if idle, err := s.Batches.Overdue(t.Context(), 0); err != nil || len(idle) != 0 {
		t.Errorf("held batches wake %v %v", idle, err)
	}
	if len(hook.Got) != sent {
		t.Fatalf("%d users reached while paused", len(hook.Got)-sent)
	}
	if b := s.books(c); b.Counted.InFlight != int64(2000-sent) {
		t.Errorf("books %+v", b)
	}
	s.do(c, campaign.Resuming)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	s.reached(hook, 2000)
	s.settled(c)
}

func TestCancelSkipsTheRest(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(3000, 1)
	c := s.running(nil)
	hook := pgtest.NewSink(delivery.Webhook, 100)
	s.do(c, campaign.Pausing)
	c = s.do(c, campaign.Cancelling)
	s.Must(s.deliverer(hook).Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got != (delivery.Counts{Reserved: 3000, Skipped: 3000}) || len(hook.Got) != 0 {
		t.Errorf("books %+v, %d sent", got, len(hook.Got))
	}
	if n := s.Number(`select count(*) from batches where rest_reason = $1`, delivery.ReasonCampaignCancel); n != 3 {
		t.Errorf("%d batches say why", n)
	}
	if c = s.now(c); c.State != campaign.Cancelled {
		t.Errorf("the campaign is %s", c.State)
	}
	// A campaign that never started has no recipients.
	draft := s.published(func(sp *campaign.Spec) { sp.Name = "other" })
	s.do(draft, campaign.Cancelling)
	if s.now(draft).SettledAt == nil {
		t.Error("a campaign that never started waits for its books")
	}
}

func TestCancelWhileCutting(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(250_000, 1)
	c := s.published(nil)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	d := &failingStore{Campaigns: s.campaigns, at: 3}
	first := &campaign.Launcher{Store: d, Queue: s.queue, Now: pgtest.Clock, LeaseFor: 10 * time.Second}
	if err := first.Cut(t.Context(), c.ID); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	s.do(c, campaign.Cancelling)
	s.Exec(`update campaigns set cut_lease_until = clock_timestamp() - interval '1 second'`)
	s.Must(s.launcher.Cut(t.Context(), c.ID)) // nothing to do
	s.Must(s.deliverer(pgtest.NewSink(delivery.Webhook, 100)).Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got.Reserved != 100_000 || got.Skipped != 100_000 {
		t.Errorf("books %+v", got)
	}
}

// leaving is a store whose process is told to stop while the second page is read.
type leaving struct {
	campaignsdb.Campaigns
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
	s := newCampaignFixture(t)
	s.users(120_000, 1)
	c := s.published(nil)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	ctx, stop := context.WithCancel(t.Context())
	store := &leaving{Campaigns: s.campaigns, stop: stop}
	l := &campaign.Launcher{Store: store, Queue: s.queue, Now: pgtest.Clock, LeaseFor: 10 * time.Second}
	if err := l.Cut(ctx, c.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("the cut ended with %v", err)
	}
	if store.pages != 2 || store.ended != 0 {
		t.Errorf("after %d pages the audience was ended %d times", store.pages, store.ended)
	}
}

func TestEndExpiresWhoeverIsLeftEvenWhilePaused(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(1500, 1)
	c := s.running(nil)
	s.do(c, campaign.Pausing)
	s.Exec(`update campaigns set starts_at = starts_at - interval '2 hours', ends_at = clock_timestamp()`)
	s.Exec(`update batches set worthless_after = clock_timestamp()`)
	if _, err := s.campaigns.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Must(s.deliverer(pgtest.NewSink(delivery.Webhook, 100)).Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got != (delivery.Counts{Reserved: 1500, Expired: 1500}) {
		t.Errorf("books %+v", got)
	}
	if s.now(c).State != campaign.Finished {
		t.Errorf("the campaign is %s", s.now(c).State)
	}
}

func TestStrangersGetTheirAppMessage(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(2, 1)
	c := s.running(func(sp *campaign.Spec) {
		sp.Channel, sp.Audience = delivery.App, campaign.Audience{Kind: campaign.Named, Users: ids(2, 900, 1, 900)}
	})
	s.Exec(`delete from users where id = 1`)
	app := pgtest.NewSink(delivery.App, 1000)
	s.Must(s.deliverer(app).Drain(t.Context(), delivery.App))
	if b := s.settled(c); b != (delivery.Counts{Reserved: 3, Sent: 2, Skipped: 1}) {
		t.Errorf("books %+v", b)
	}
	if got := s.reasons(c); got["skipped user_deleted"] != 1 {
		t.Errorf("exceptions %v", got)
	}
}

func TestAudiencesOfATemplate(t *testing.T) {
	s := newCampaignFixture(t)
	tpl := s.fixture.Published(time.Hour)
	for _, id := range []user.ID{5, 9, 70_000} {
		s.Reserve(tpl, id, pgtest.Reminders(delivery.App, 5)...)
	}
	s.Insert("coupons", pgtest.Row{"template_id": tpl.ID, "user_id": 5}, pgtest.Row{"template_id": tpl.ID, "user_id": 5},
		pgtest.Row{"template_id": tpl.ID, "user_id": 6, "state": "locked"}, pgtest.Row{"template_id": tpl.ID, "user_id": 7, "state": "used"})
	for kind, want := range map[campaign.AudienceKind]int64{campaign.Reserved: 3, campaign.Holds: 2} {
		a := campaign.Audience{Kind: kind, ID: tpl.ID}
		if n, exact, err := s.campaigns.Estimate(t.Context(), a); n != want || !exact || err != nil {
			t.Errorf("%s is estimated at %d %v %v", kind, n, exact, err)
		}
		c := s.running(func(sp *campaign.Spec) { sp.Name, sp.Audience = string(kind), a })
		if c.Shop != tpl.ShopNumber {
			t.Errorf("the campaign is of shop %d", c.Shop)
		}
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

func TestDeadLettersOfACampaignAreReplayed(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(20, 1)
	c := s.running(nil)
	hook := pgtest.NewSink(delivery.Webhook, 10)
	hook.Answer = func(m delivery.Message, times int) delivery.Result {
		if m.To.ID <= 5 && times == 1 {
			return delivery.Result{Status: delivery.Permanent, Detail: "no such address"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	d := s.deliverer(hook)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got.Dead != 5 || got.Sent != 15 {
		t.Fatalf("books %+v", got)
	}
	letters := &delivery.DeadLetters{Store: s.DeadLetters}
	_, err := letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay})
	s.Must(err)
	s.Must(letters.Step(t.Context()))
	if s.now(c).State != campaign.Running {
		t.Errorf("the campaign is %s while dead letters are replayed", s.now(c).State)
	}
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); got != (delivery.Counts{Reserved: 20, Sent: 20}) {
		t.Errorf("books %+v", got)
	}
}
