package campaigns_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/increment"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// divided is a content in two versions, with a share that gets nothing.
func divided(percentB, holdOut int) delivery.Copy {
	c := text("Hello", "Come and see")
	c.HoldOut = holdOut
	if percentB > 0 {
		c.Variants[0].Percent = 100 - percentB
		c.Variants = append(c.Variants, delivery.Variant{Percent: percentB, Texts: c.Variants[0].Texts})
	}
	return c
}

// givesAll is a gate without refusals.
type givesAll struct{}

func (givesAll) Grant(context.Context, campaign.Grant) (map[user.ID]string, error) { return nil, nil }

// compared returns a campaign about tpl that was sent to n users in two versions with a hold-out
// group. The provider refuses every seventh user.
func (s *campaignFixture) compared(tpl template.Template, n int) campaign.Campaign {
	s.Helper()
	s.users(n, 3)
	c := s.running(func(sp *campaign.Spec) { sp.GrantTemplate, sp.Content = tpl.ID, divided(40, 20) })
	hook := pgtest.NewSink(delivery.Webhook, 100)
	hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID%7 == 0 {
			return delivery.Result{Status: delivery.Permanent, Detail: "no such user"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	d := s.deliverer(hook)
	d.Guards = map[delivery.Kind]delivery.Guard{delivery.KindCampaign: &campaign.Guard{Store: s.campaigns, Granter: givesAll{}}}
	s.Must(d.Drain(s.Context(), delivery.Webhook))
	s.settled(c)
	return s.now(c)
}

func (s *campaignFixture) coupon(tpl template.Template, id user.ID, issued time.Time, state string, used *time.Time) {
	s.Helper()
	s.Insert("coupons", pgtest.Row{"template_id": tpl.ID, "user_id": id, "state": state, "issued_at": issued, "expires_at": issued.AddDate(0, 0, 9), "used_at": used})
}

// counted counts until nothing is due and returns the campaign's results.
func (s *campaignFixture) counted(c campaign.Campaign) campaign.Results {
	s.Helper()
	for {
		more, err := s.campaigns.CountNext(s.Context())
		s.Must(err)
		if !more {
			return s.results(c)
		}
	}
}

func (s *campaignFixture) results(c campaign.Campaign) campaign.Results {
	s.Helper()
	all, err := s.campaigns.Results(s.Context(), []int64{c.ID, 999})
	s.Must(err)
	if len(all) != 1 {
		s.Fatalf("results of %d campaigns", len(all))
	}
	return all[c.ID]
}

// countNow makes it time to count the campaign.
func (s *campaignFixture) countNow(c campaign.Campaign) {
	s.Helper()
	s.Exec(`update campaigns set count_due_at = clock_timestamp() where id = $1`, c.ID)
}

// TestResultsAreCountedByGroup counts users' actions one by one and compares the stored results:
// actions in the window and out of it, by the audience and by other users.
func TestResultsAreCountedByGroup(t *testing.T) {
	s := newCampaignFixture(t)
	tpl := s.fixture.Published(time.Hour)
	other := s.fixture.Published(2 * time.Hour)
	c := s.compared(tpl, 2400)
	if r := s.results(c); len(r.Groups) != 0 || r.CountedTo != nil || r.AccountOff != nil || r.Final {
		t.Fatalf("counted before anybody did: %+v", r)
	}
	before, in := c.StartedAt.Add(-time.Second), *c.StartedAt
	want := map[int]*campaign.Tally{0: {Variant: 0}, 1: {Variant: 1}, delivery.HeldOut: {Variant: delivery.HeldOut}}
	for i := range 2400 {
		id := user.ID(3 * (i + 1))
		variant := c.Content.Pick(c.ID, id)
		w := want[variant]
		w.Assigned++
		if variant != delivery.HeldOut && id%7 != 0 {
			w.Sent++
		}
		if i%5 == 0 && variant != delivery.HeldOut {
			s.Exec(`insert into campaign_openings values ($1, $2, $3, $4)`, c.ID, id, variant, in)
			w.Opened++
		}
		switch i % 11 {
		case 0:
			s.Exec(`insert into reservations (template_id, user_id, slots, created_at) values ($1, $2, 1, $3)`, tpl.ID, id, in)
			w.Reserved++
		case 1: // had it before
			s.Exec(`insert into reservations (template_id, user_id, slots, created_at) values ($1, $2, 1, $3)`, tpl.ID, id, before)
		case 2: // of another template
			s.Exec(`insert into reservations (template_id, user_id, slots, created_at) values ($1, $2, 1, $3)`, other.ID, id, in)
		}
		switch i % 13 {
		case 0: // two of them are the same user
			s.coupon(tpl, id, in, "unused", nil)
			s.coupon(tpl, id, in, "locked", nil)
			w.Claimed++
		case 1:
			s.coupon(tpl, id, in, "used", &in)
			w.Claimed++
			w.Used++
		case 2: // got it before, used it now
			s.coupon(tpl, id, before, "used", &in)
			w.Used++
		case 3: // used it before
			s.coupon(tpl, id, before, "used", &before)
		case 4: // used and given back
			s.coupon(tpl, id, in, "refunded", nil)
			w.Claimed++
		case 5:
			s.coupon(other, id, in, "used", &in)
		}
	}
	// A user outside the audience takes all actions.
	s.Exec(`insert into campaign_openings values ($1, 1, 0, $2)`, c.ID, in)
	s.Exec(`insert into reservations (template_id, user_id, slots, created_at) values ($1, 1, 1, $2)`, tpl.ID, in)
	s.coupon(tpl, 1, in, "used", &in)

	for _, w := range want { // each used coupon paid an order; their amounts are in rows of operations, which are not there
		w.Spent = campaign.Spent{Currency: "CNY", Orders: w.Used, OrderPowers: increment.Powers{Squares: float64(w.Used), Cubes: float64(w.Used)}}
	}
	r := s.counted(c)
	if len(r.Groups) != 3 || r.Groups[0].Variant != 0 || r.Groups[2].Variant != delivery.HeldOut {
		t.Fatalf("groups %+v", r.Groups)
	}
	for _, got := range r.Groups {
		if got != *want[got.Variant] {
			t.Errorf("counted %+v, want %+v", got, *want[got.Variant])
		}
	}
	if r.CountedTo == nil || r.CountedTo.Before(in) || r.Final || r.Until == nil || r.AccountOff == nil || *r.AccountOff != 0 {
		t.Errorf("%+v", r)
	}
	if more, err := s.campaigns.CountNext(t.Context()); more || err != nil {
		t.Errorf("counted again at once: %v", err)
	}
	// Reservations cancelled since are no longer there, coupons claimed since are.
	s.Exec(`delete from reservations where template_id = $1`, tpl.ID)
	late := user.ID(3 * 7) // i = 6: none yet
	s.coupon(tpl, late, pgtest.Clock(), "unused", nil)
	s.countNow(c)
	r = s.counted(c)
	got, _ := r.Group(c.Content.Pick(c.ID, late))
	if sum := r.Meant(); sum.Reserved != 0 || got.Claimed != want[got.Variant].Claimed+1 {
		t.Errorf("counted again: %+v", r.Groups)
	}
}

func TestResultsOfAnUndividedCampaign(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(1500, 2)
	c := s.running(nil)
	s.Must(s.deliverer(pgtest.NewSink(delivery.Webhook, 100)).Drain(t.Context(), delivery.Webhook))
	r := s.counted(c) // while it goes on
	if len(r.Groups) != 1 || r.Groups[0] != (campaign.Tally{Assigned: 1500, Sent: 1500}) || r.Until != nil || r.Final {
		t.Errorf("%+v", r)
	}
	if draft := s.results(s.published(func(sp *campaign.Spec) { sp.Name = "waits" })); len(draft.Groups) != 0 {
		t.Errorf("a campaign that has not started: %+v", draft)
	}
}

// TestResultsAgreeOnceSettled: a count made before the last messages were sent lacks these
// messages, and its results say so. Once the campaign is settled it is counted again without
// waiting. Then the groups add up to the campaign's progress.
func TestResultsAgreeOnceSettled(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(500, 2)
	c := s.running(nil)
	progress := func() campaign.Progress {
		st, err := s.campaigns.Status(t.Context(), c.ID)
		s.Must(err)
		return st.Progress
	}
	if early := s.counted(c); early.Total().Sent != 0 || !early.Agree(progress()) {
		t.Fatalf("before the first message: %+v", early)
	}
	s.Must(s.deliverer(pgtest.NewSink(delivery.Webhook, 100)).Drain(t.Context(), delivery.Webhook))
	if stale := s.results(c); stale.Agree(progress()) {
		t.Errorf("%+v agrees with %+v", stale, progress())
	}
	if more, err := s.campaigns.CountNext(t.Context()); more || err != nil {
		t.Errorf("the next count is not put off: %v", err)
	}
	_, err := s.campaigns.Settle(t.Context())
	s.Must(err)
	if more, err := s.campaigns.CountNext(t.Context()); !more || err != nil {
		t.Errorf("no count follows the settlement: %v", err)
	}
	if r, p := s.results(c), progress(); !r.Agree(p) || p.Sent != 500 {
		t.Errorf("%+v does not agree with %+v", r, p)
	}
}

// TestResultsEnd: events after the window do not count. The last count is made a minute after
// the window, and no count after it.
func TestResultsEnd(t *testing.T) {
	s := newCampaignFixture(t)
	tpl := s.fixture.Published(time.Hour)
	c := s.compared(tpl, 50)
	ago := func(d time.Duration) {
		s.Exec(`update campaigns set started_at = clock_timestamp() - $2::interval - interval '1 hour', ended_at = clock_timestamp() - $2::interval, counted_to = null where id = $1`, c.ID, d)
		c = s.now(c)
	}
	ago(campaign.ResultsFor + 30*time.Second)
	until := c.EndedAt.Add(campaign.ResultsFor)
	s.coupon(tpl, 3, until.Add(-time.Microsecond), "unused", nil)
	s.coupon(tpl, 6, until, "unused", nil)
	r := s.counted(c)
	if sum := r.Meant().Plus(r.Groups[2]); sum.Claimed != 1 || r.Final || !r.CountedTo.Equal(until) {
		t.Errorf("just after the window: %+v", r)
	}
	if s.Number(`select extract(epoch from count_due_at - clock_timestamp())::int from campaigns where id = $1`, c.ID) > 90 {
		t.Error("the last count is put off")
	}
	ago(campaign.ResultsFor + 2*time.Minute)
	s.countNow(c)
	if r = s.counted(c); !r.Final {
		t.Fatalf("after the last count: %+v", r)
	}
	s.Exec(`delete from coupons`)
	if more, err := s.campaigns.CountNext(t.Context()); more || err != nil {
		t.Errorf("counted after the last time: %v", err)
	}
	if n := s.Number(`select count(*) from campaigns where id = $1 and count_due_at = 'infinity'`, c.ID); n != 1 {
		t.Error("a final count is due again")
	}
}

// TestFinalResultsAreComparedOnce: results that an earlier program counted for the last time get the sums
// for intervals if their orders can be counted as they were then. Otherwise they stay as they are,
// and are incomparable: a coupon was refunded since, or the log of the orders was removed.
func TestFinalResultsAreComparedOnce(t *testing.T) {
	s := newCampaignFixture(t)
	tpl := s.fixture.Published(time.Hour)
	c := s.compared(tpl, 300)
	s.Exec(`update campaigns set started_at = clock_timestamp() - interval '9 days', ended_at = clock_timestamp() - interval '8 days' where id = $1`, c.ID)
	c = s.now(c)
	used := c.StartedAt.Add(time.Hour)
	for i := range 100 {
		s.coupon(tpl, user.ID(3*(i+1)), used, "used", &used)
	}
	s.countNow(c)
	want := s.counted(c)
	if i, ok := want.Increment(); !ok || !want.Final || !want.Compared || i.Reached.Orders+i.HeldOut.Orders != 100 || i.HeldOut.OrderPowers.Squares == 0 {
		t.Fatalf("%+v", want)
	}
	earlier := func() {
		s.Exec(`update campaign_results set orders = 0, ordered = 0, discount = 0, currency = '', order_squares = 0, order_cubes = 0, revenue_squares = 0, revenue_cubes = 0`)
		s.Exec(`update campaigns set compared = false`)
		if r := s.results(c); r.Incomparable() {
			t.Errorf("incomparable before a worker has tried: %+v", r)
		}
	}
	compare := func() campaign.Results {
		t.Helper()
		for n, more := 0, true; more; n++ {
			var err error
			more, err = s.campaigns.CompareNext(t.Context())
			s.Must(err)
			if n > 1 {
				t.Fatal("compared again")
			}
		}
		return s.results(c)
	}
	earlier()
	if diff := cmp.Diff(want, compare()); diff != "" {
		t.Errorf("compared (-want +got):\n%s", diff)
	}
	earlier()
	s.Exec(`insert into removed_steps (until) values ($1)`, used)
	if r := compare(); !r.Incomparable() || r.Total().Used != 100 {
		t.Errorf("the log was removed: %+v", r)
	}
	s.Exec(`delete from removed_steps`)
	earlier()
	s.Exec(`update coupons set state = 'unused', used_at = null where user_id = 3`)
	r := compare()
	if _, ok := r.Increment(); ok || !r.Incomparable() || r.Total().Used != 100 {
		t.Errorf("a coupon was refunded: %+v", r)
	}
}

// Several workers count each campaign once. A campaign that cannot be counted does not keep
// other campaigns from being counted.
func TestCountsAreShared(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(300, 1)
	var all []campaign.Campaign
	for i := range 4 {
		all = append(all, s.running(func(sp *campaign.Spec) { sp.Name = fmt.Sprint("campaign ", i) }))
	}
	s.Exec(`update batches set due = '\x0102' where owner_id = $1`, all[0].ID)
	var workers sync.WaitGroup
	var mu sync.Mutex
	counts, failures := 0, 0
	for range 6 {
		workers.Go(func() {
			for {
				more, err := s.campaigns.CountNext(t.Context())
				mu.Lock()
				if err != nil {
					failures++
				} else if more {
					counts++
				}
				mu.Unlock()
				if err == nil && !more {
					return
				}
			}
		})
	}
	workers.Wait()
	if counts != 3 || failures != 1 {
		t.Errorf("%d counts and %d failures, want 3 and 1", counts, failures)
	}
	for _, c := range all[1:] {
		if r := s.results(c); r.Meant().Assigned != 300 {
			t.Errorf("%+v", r)
		}
	}
	// Later it is tried again.
	if r := s.results(all[0]); r.CountedTo != nil {
		t.Errorf("a count that failed left %+v", r)
	}
	s.Exec(`update batches set due = (select due from batches where owner_id = $2 limit 1) where owner_id = $1`, all[0].ID, all[1].ID)
	s.countNow(all[0])
	if r := s.counted(all[0]); r.Meant().Assigned != 300 {
		t.Errorf("%+v", r)
	}
}

// A slow count does not replace a later count. A count of batches that are being removed is not
// stored.
func TestSlowCounts(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(2000, 1)
	c := s.running(nil)
	for name, change := range map[string]string{
		"overtaken": `update campaigns set counted_to = clock_timestamp() + interval '1 minute', account_off = 77`,
		"archived":  `update campaigns set archived = true`,
	} {
		s.Exec(`update campaigns set counted_to = null, account_off = null, archived = false, count_due_at = '-infinity'`)
		tx, err := s.SQL.Begin(t.Context())
		s.Must(err)
		_, err = tx.Exec(t.Context(), `lock table batches in access exclusive mode`)
		s.Must(err)
		done := make(chan error, 1)
		go func() { _, err := s.campaigns.CountNext(context.Background()); done <- err }()
		for s.Number(`select count(*) from pg_locks where not granted and relation = 'batches'::regclass`) == 0 {
			select {
			case err := <-done:
				t.Fatalf("%s: it did not wait: %v", name, err)
			case <-time.After(5 * time.Millisecond):
			}
		}
		_, err = tx.Exec(t.Context(), change)
		s.Must(err)
		s.Must(tx.Commit(t.Context()))
		s.Must(<-done)
		if r := s.results(c); len(r.Groups) != 0 || name == "overtaken" && *r.AccountOff != 77 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A worker that dies during a count stores nothing, and another worker counts when the dead
// worker's time is over.
func TestCountOfADyingWorker(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(100, 1)
	c := s.running(nil)
	ctx, die := context.WithCancel(t.Context())
	tx, err := s.SQL.Begin(t.Context())
	s.Must(err)
	_, err = tx.Exec(t.Context(), `lock table batches in access exclusive mode`)
	s.Must(err)
	done := make(chan error, 1)
	go func() { _, err := s.campaigns.CountNext(ctx); done <- err }()
	for s.Number(`select count(*) from pg_locks where not granted and relation = 'batches'::regclass`) == 0 {
		<-time.After(5 * time.Millisecond)
	}
	die()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("died with %v", err)
	}
	s.Must(tx.Rollback(t.Context()))
	if more, err := s.campaigns.CountNext(t.Context()); more || err != nil {
		t.Errorf("taken over at once: %v", err)
	}
	if s.Number(`select extract(epoch from count_due_at - clock_timestamp())::int from campaigns`) > 5*60 {
		t.Error("it waits for more than the five minutes that a count may take")
	}
	s.countNow(c)
	if r := s.counted(c); r.Meant().Assigned != 100 {
		t.Errorf("%+v", r)
	}
}

// The account is recounted with the results.
func TestResultsTellTheAccount(t *testing.T) {
	s := newCampaignFixture(t)
	c := s.compared(s.fixture.Published(time.Hour), 60)
	s.Exec(`update campaigns set sent = sent - 2 where id = $1`, c.ID)
	b, err := s.campaigns.Balance(t.Context(), c.ID)
	s.Must(err)
	if r := s.counted(c); r.AccountOff == nil || *r.AccountOff != b.Difference() || *r.AccountOff == 0 {
		t.Errorf("off by %v, want %d", r.AccountOff, b.Difference())
	}
}

// Results stay when the rows they were counted from have gone.
func TestResultsOutliveTheirBatches(t *testing.T) {
	s := newCampaignFixture(t)
	c := s.compared(s.fixture.Published(time.Hour), 60)
	had := s.counted(c).Groups
	s.Exec(`update campaigns set starts_at = now() - interval '12 days', ends_at = now() - interval '11 days' where id = $1`, c.ID)
	s.Exec(`update batches set worthless_after = now() - interval '11 days'`)
	s.Clean()
	if n := s.Number(`select count(*) from batches`); n != 0 {
		t.Fatalf("%d batches are left", n)
	}
	s.countNow(c)
	r := s.counted(c)
	if len(r.Groups) != 3 || r.Groups[0] != had[0] || !r.Final {
		t.Errorf("%+v, had %+v", r, had)
	}
	page, err := s.campaigns.Recipients(t.Context(), s.now(c), campaign.RecipientQuery{Limit: 10})
	s.Must(err)
	if len(page.List) != 0 || page.More {
		t.Errorf("recipients without batches: %+v", page)
	}
}

// The statements that find the next campaign to count, and that read stored results, use an
// index whatever rows there are.
func TestCountingIsFoundByIndex(t *testing.T) {
	s := newCampaignFixture(t)
	now := pgtest.SQL("now()")
	s.Fill("campaigns", "generate_series(1, 5000)", pgtest.Row{"state": "finished", "started_at": now, "ended_at": now, "settled_at": now, "count_due_at": pgtest.SQL("'infinity'")})
	s.Exec(`analyze campaigns`)
	rows, err := s.SQL.Query(t.Context(), `explain select id from campaigns where started_at is not null and not archived and count_due_at < 'infinity' and count_due_at <= clock_timestamp()
		order by count_due_at limit 1 for update skip locked`)
	s.Must(err)
	plan := ""
	for rows.Next() {
		var line string
		s.Must(rows.Scan(&line))
		plan += line + "\n"
	}
	if !strings.Contains(plan, "campaigns_to_count") {
		t.Errorf("the plan is\n%s", plan)
	}
}
