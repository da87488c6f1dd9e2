package campaigns_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/musttest"
)

func TestCampaignReachesEverybodyOnce(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(2500, 7919)
	c := s.running(nil)
	// Users who join later are not in the audience, wherever their ids lie.
	s.Exec(`insert into users (id, created_at) values (5, clock_timestamp()), (90000000, clock_timestamp())`)
	if n := s.Number(`select count(*) from campaign_messages`); n != 1 {
		t.Errorf("%d messages for three ranges", n)
	}
	if n := s.Number(`select count(*) from batches where kind = 'campaign' and due_count <= 1000`); n != 3 {
		t.Errorf("%d batches for 2500 users", n)
	}
	hook := pgtest.NewSink(delivery.Webhook, 100)
	s.Must(s.deliverer(hook).Drain(t.Context(), delivery.Webhook))
	s.reached(hook, 2500)
	if got := s.settled(c); got != (delivery.Counts{Reserved: 2500, Sent: 2500}) {
		t.Errorf("books %+v", got)
	}
	if c = s.now(c); c.State != campaign.Finished || c.EndedAt == nil {
		t.Errorf("the campaign is %s", c.State)
	}
	st, err := s.campaigns.Status(t.Context(), c.ID)
	musttest.OK(t, err)
	p, want := st.Progress, st.Progress
	want.Sent, want.InFlight, want.Left = 2500, 0, 0
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestCampaignStartsByTheDatabasesClock(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(3, 1)
	c := s.published(func(sp *campaign.Spec) { sp.StartsAt = pgtest.Clock().Add(700 * time.Millisecond) })
	if _, cut, err := s.campaigns.Due(t.Context(), 0, 10); err != nil || len(cut) != 0 {
		t.Fatalf("due %v %v", cut, err)
	}
	s.Must(s.launcher.Start(t.Context(), c.ID)) // woke early and waits
	if early := s.Number(`select count(*) from campaigns where started_at < starts_at`); early != 0 {
		t.Error("started before its start")
	}
	if n := s.Number(`select count(*) from outbox where topic = $1`, event.CampaignStarted); n != 1 {
		t.Errorf("%d started events", n)
	}
	s.Must(s.launcher.Start(t.Context(), c.ID)) // nothing to do
	if n := s.Number(`select count(*) from outbox where topic = $1`, event.CampaignStarted); n != 1 {
		t.Errorf("%d started events", n)
	}
	// A timer that wakes much too early queues another.
	later := s.published(func(sp *campaign.Spec) {
		sp.StartsAt = pgtest.Clock().Add(time.Hour)
		sp.EndsAt = pgtest.Clock().Add(2 * time.Hour)
	})
	s.Must(s.launcher.Start(t.Context(), later.ID))
	if s.now(later).State != campaign.Scheduled || len(s.queue.Tasks) == 0 {
		t.Error("a campaign an hour ahead was started or forgotten")
	}
}

func TestSweepStartsAndCutsWithoutTimers(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(10, 1)
	c := s.published(func(sp *campaign.Spec) { sp.StartsAt = pgtest.Clock().Add(-time.Minute) })
	s.Must(s.launcher.Sweep(t.Context()))
	if got := s.tasks("campaign.start.v1"); got != 1 {
		t.Fatalf("%d start tasks", got)
	}
	s.Must(s.launcher.Start(t.Context(), c.ID))
	s.Exec(`update campaigns set started_at = started_at - interval '1 minute'`)
	s.Must(s.launcher.Sweep(t.Context())) // the event was lost
	if got := s.tasks("campaign.cut.v1"); got != 1 {
		t.Fatalf("%d cut tasks", got)
	}
}

func (s *campaignFixture) tasks(name string) (n int) {
	for _, task := range s.queue.Tasks {
		if task.Name == name {
			n++
		}
	}
	return n
}

// failingStore fails at one step, as if the process had died before or after the step's effect.
type failingStore struct {
	campaignsdb.Campaigns
	at    int
	after bool
	step  int
	name  string // of the step that failed
}

var errDied = errors.New("the process died")

func (d *failingStore) around(name string, do func() error) error {
	d.step++
	if d.step == d.at && !d.after {
		d.name = name
		return errDied
	}
	if d.at > 0 && d.step > d.at { // it is dead: nothing more happens
		return errDied
	}
	err := do()
	if d.step == d.at {
		d.name = name
		return errDied
	}
	return err
}

func (d *failingStore) BeginCut(ctx context.Context, id int64, lasting time.Duration) (c campaign.Cut, err error) {
	err = d.around("begin", func() error { c, err = d.Campaigns.BeginCut(ctx, id, lasting); return err })
	return c, err
}

func (d *failingStore) Append(ctx context.Context, c campaign.Cut, ms []campaign.Message) error {
	return d.around("append", func() error { return d.Campaigns.Append(ctx, c, ms) })
}

func (d *failingStore) EndCut(ctx context.Context, c campaign.Cut) error {
	return d.around("end", func() error { return d.Campaigns.EndCut(ctx, c) })
}

// TestCutSurvivesDeathAtEveryStep cuts an audience of three pages and fails at each step, once
// before and once after the step's effect. The next cutter continues, and each user is in the
// cut once.
func TestCutSurvivesDeathAtEveryStep(t *testing.T) {
	const people = 250_000
	s := newCampaignFixture(t)
	s.users(people, 3)
	for at := 1; ; at++ {
		for _, after := range []bool{false, true} {
			c := s.published(func(sp *campaign.Spec) {
				sp.Name = strings.Repeat("x", at) + map[bool]string{true: "a", false: "b"}[after]
			})
			s.Must(s.launcher.Start(t.Context(), c.ID))
			d := &failingStore{Campaigns: s.campaigns, at: at, after: after}
			first := &campaign.Launcher{Store: d, Queue: s.queue, Now: pgtest.Clock, LeaseFor: 10 * time.Second}
			err := first.Cut(t.Context(), c.ID)
			if d.name == "" {
				musttest.OK(t, err)
				if at < 5 {
					t.Fatalf("only %d steps", at)
				}
				return
			}
			s.Exec(`update campaigns set cut_lease_until = clock_timestamp() - interval '1 second' where cut_token is not null`)
			s.Must(s.launcher.Cut(t.Context(), c.ID))
			if s.now(c).CutAt == nil {
				t.Fatalf("%s: nobody went on", d.name)
			}
			if n := s.Number(`select coalesce(sum(due_count), 0) from batches where kind = 'campaign' and owner_id = $1`, c.ID); n != people {
				t.Errorf("death at step %d (%s, after %v): %d of %d users in batches", at, d.name, after, n, people)
			}
			if b := s.books(c); b.Twice != 0 || b.Counted.Reserved != people || b.Counted.InFlight != people {
				t.Errorf("death at step %d (%s, after %v): %+v", at, d.name, after, b)
			}
		}
	}
}

func TestTwoCuttersOneWins(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(3000, 1)
	c := s.published(nil)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := s.launcher.Cut(context.Background(), c.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := s.Number(`select sum(users) from campaign_messages`); n != 3000 {
		t.Errorf("%d users in messages", n)
	}
	// A cutter that was silent and continues after its lease has expired can store nothing.
	late := s.published(func(sp *campaign.Spec) { sp.Name = "late" })
	s.Must(s.launcher.Start(t.Context(), late.ID))
	cut, err := s.campaigns.BeginCut(t.Context(), late.ID, time.Millisecond)
	s.Must(err)
	s.Exec(`update campaigns set cut_lease_until = clock_timestamp() - interval '1 second' where id = $1`, late.ID)
	s.Must(s.launcher.Cut(t.Context(), late.ID))
	set, err := s.campaigns.Encode([]user.ID{1})
	s.Must(err)
	m := campaign.Message{Seq: 99, From: 1, To: 1, Users: 1, Ranges: []campaign.Range{{From: 1, To: 1, Users: 1, Set: set}}}
	if err := s.campaigns.Append(t.Context(), cut, []campaign.Message{m}); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("a lost lease stored: %v", err)
	}
	if n := s.Number(`select coalesce(sum(due_count), 0) from batches where owner_id = $1`, late.ID); n != 3000 {
		t.Errorf("%d users in batches", n)
	}
}

// TestMessagesLeftByAnOlderVersion: version 0.1.0 stored messages first, and their batches later.
// Messages that it left become batches once, whoever sweeps.
func TestMessagesLeftByAnOlderVersion(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(2500, 11)
	c := s.running(nil)
	left := func(payload string, args ...any) {
		s.Exec(`update campaign_messages set stored_at = null, published_at = now() - interval '1 minute', payload = convert_to((`+payload+`)::text, 'UTF8')`, args...)
	}
	left(`select jsonb_build_object('campaign_id', $1::bigint::text, 'seq', 0, 'ranges', jsonb_agg(jsonb_build_object(
			'from', from_user::text, 'to', to_user::text, 'users', due_count, 'set', translate(encode(due, 'base64'), E'\n', '')) order by from_user))
		from batches where owner_id = $1`, c.ID)
	s.Exec(`delete from batches where owner_id = $1`, c.ID)
	if channels, err := s.campaigns.StoreLeft(t.Context(), time.Hour, 10); err != nil || len(channels) != 0 {
		t.Errorf("before the grace is over: %v %v", channels, err)
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if _, err := s.campaigns.StoreLeft(context.Background(), time.Second, 10); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := s.Number(`select sum(due_count) from batches where kind = 'campaign'`); n != 2500 {
		t.Errorf("%d users in batches", n)
	}
	s.books(c)
	for _, bad := range []string{`{"from": "1", "to": "5", "users": 1, "set": "bm8gYml0bWFw"}`, `{"from": "1", "to": "2", "users": 3}`} {
		left(`select jsonb_build_object('campaign_id', $1::bigint::text, 'seq', 0, 'ranges', jsonb_build_array($2::jsonb))`, c.ID, bad)
		if _, err := s.campaigns.StoreLeft(t.Context(), time.Second, 10); fault.KindOf(err) != fault.Invalid {
			t.Errorf("a broken range: %v", err)
		}
	}
}

func TestSameCampaignIsPublishedOnce(t *testing.T) {
	s := newCampaignFixture(t) // without Redis
	starts, ends := pgtest.Clock().Add(time.Hour), pgtest.Clock().Add(2*time.Hour)
	make2 := func(by staff.Actor, name string) campaign.Campaign {
		spec := campaignSpec()
		spec.Name, spec.StartsAt, spec.EndsAt = name, starts, ends
		c, err := s.service.Create(t.Context(), by, spec, "")
		s.Must(err)
		return c
	}
	other := staff.Actor{Label: "staff:7", Name: "Wu", Role: staff.Marketer}
	var drafts []campaign.Campaign
	for range 8 {
		drafts = append(drafts, make2(staff.System(), "Spring"))
	}
	// Services of different processes, at the same moment.
	results := make([]error, len(drafts))
	var all sync.WaitGroup
	for i, c := range drafts {
		all.Go(func() {
			svc := *s.service
			_, results[i] = svc.Do(context.Background(), staff.System(), c.ID, 0, campaign.Publishing, "")
		})
	}
	all.Wait()
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, campaign.ErrPublished):
			t.Errorf("refused with %v", err)
		}
	}
	if n := s.Number(`select count(*) from campaigns where state = 'scheduled'`); won != 1 || n != 1 {
		t.Fatalf("%d won, %d are scheduled", won, n)
	}
	for _, c := range []campaign.Campaign{make2(other, "Spring"), make2(staff.System(), "Spring 2")} {
		if _, err := s.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Publishing, ""); err != nil {
			t.Errorf("another creator or name: %v", err)
		}
	}
	s.Exec(`update campaign_publications set published_at = published_at - interval '29 minutes 50 seconds'`)
	again := make2(staff.System(), "Spring")
	if _, err := s.service.Do(t.Context(), staff.System(), again.ID, 0, campaign.Publishing, ""); !errors.Is(err, campaign.ErrPublished) {
		t.Errorf("within 30 minutes: %v", err)
	}
	s.Exec(`update campaign_publications set published_at = published_at - interval '10 seconds'`)
	if _, err := s.service.Do(t.Context(), staff.System(), again.ID, 0, campaign.Publishing, ""); err != nil {
		t.Errorf("after 30 minutes: %v", err)
	}
}

// TestLargeCampaignsTakeTwoPeople: above the shop's limit, neither the member who asked for
// approval nor the member who created the campaign can publish it. An edit voids the approval.
func TestLargeCampaignsTakeTwoPeople(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(20, 1)
	s.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 10)`)
	li, wu := staff.Actor{Label: "staff:1", Name: "Li", Role: staff.Marketer}, staff.Actor{Label: "staff:2", Name: "Wu", Role: staff.Marketer}
	spec := campaignSpec()
	spec.StartsAt, spec.EndsAt = pgtest.Clock().Add(time.Hour), pgtest.Clock().Add(2*time.Hour)
	c, err := s.service.Create(t.Context(), li, spec, "")
	s.Must(err)
	publish := func(by staff.Actor) (campaign.Campaign, error) {
		return s.service.Do(t.Context(), by, c.ID, 0, campaign.Publishing, "")
	}
	if got, err := publish(li); err != nil || got.State != campaign.Draft || got.ApprovalAskedAt == nil {
		t.Fatalf("asked: %s %v", got.State, err)
	}
	if _, err := publish(li); !errors.Is(err, approval.ErrApproval) {
		t.Errorf("the creator alone: %v", err)
	}
	spec.Name = "other"
	if got, err := s.service.Edit(t.Context(), wu, c.ID, s.now(c).Version, spec); err != nil || got.ApprovalAskedAt != nil {
		t.Fatalf("edited: %v %v", got.ApprovalAskedAt, err)
	}
	if got, err := publish(wu); err != nil || got.State != campaign.Draft {
		t.Fatalf("asked again: %s %v", got.State, err)
	}
	if _, err := publish(wu); !errors.Is(err, approval.ErrApproval) {
		t.Errorf("who asked alone: %v", err)
	}
	ada := staff.Actor{Label: "staff:3", Name: "Ada", Role: staff.Marketer}
	if got, err := publish(ada); err != nil || got.State != campaign.Scheduled || got.ApprovedBy != "staff:3 Ada" || got.ApprovalAskedAt != nil {
		t.Errorf("approved: %+v %v", got, err)
	}
	small := s.published(func(sp *campaign.Spec) { sp.Audience = campaign.Audience{Kind: campaign.Named, Users: ids(1, 2)} })
	if small.State != campaign.Scheduled {
		t.Errorf("a small one is %s", small.State)
	}
}

// TestSegmentAsAudience: members are found page by page, and users who joined late are left out.
// A segment that is deleted before the start fails the campaign.
func TestSegmentAsAudience(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(3000, 1)
	s.Exec(`update users set locale = case when id % 2 = 0 then 'fr' else 'en' end`)
	id := s.Number(`insert into segments (name, kind, rule, created_by) values ('French', 'rules', '{"all":[{"field":"locale","op":"is","values":["fr"]}]}', 'x') returning id`)
	spec := campaignSpec()
	spec.Audience = campaign.Audience{Kind: campaign.Segment, ID: 999}
	if _, err := s.service.Create(t.Context(), staff.System(), spec, ""); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an unknown segment: %v", err)
	}
	of := func(sp *campaign.Spec) { sp.Audience = campaign.Audience{Kind: campaign.Segment, ID: id} }
	c := s.published(of)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	s.Exec(`insert into users (id, locale, created_at) values (5000, 'fr', clock_timestamp()), (5001, 'fr', now() - interval '1 day')`)
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	if b := s.books(c); b.Counted.Reserved != 1501 {
		t.Errorf("audience %+v", b.Counted)
	}
	gone := s.published(func(sp *campaign.Spec) { of(sp); sp.Name = "gone" })
	s.Exec(`delete from segments`)
	s.Must(s.launcher.Start(t.Context(), gone.ID))
	s.Must(s.launcher.Cut(t.Context(), gone.ID))
	if got := s.now(gone); got.State != campaign.Failed || got.Reason != "audience_gone" {
		t.Errorf("without its segment: %s %s", got.State, got.Reason)
	}
	s.settled(gone)
}
