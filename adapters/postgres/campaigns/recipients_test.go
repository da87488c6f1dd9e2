package campaigns_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func alikeOutcomes(a, b campaign.Outcome) bool {
	return a.UserID == b.UserID && a.Outcome == b.Outcome && a.Reason == b.Reason && a.Detail == b.Detail && a.Attempts == b.Attempts &&
		a.BatchID == b.BatchID && a.Variant == b.Variant && (a.OpenedAt == nil) == (b.OpenedAt == nil) && (a.NextRetryAt == nil) == (b.NextRetryAt == nil)
}

// TestRecipientsOfACampaign compares every filter and page size with the outcome of each
// recipient alone.
func TestRecipientsOfACampaign(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(3500, 3)
	s.Exec(`update users set opt_outs = $1 where id % 17 = 0`, int16(delivery.Webhook.Bit()))
	c := s.running(func(sp *campaign.Spec) { sp.Content = divided(30, 10) })
	hook := pgtest.NewSink(delivery.Webhook, 100)
	hook.Answer = func(m delivery.Message, times int) delivery.Result {
		switch {
		case m.To.ID%19 == 0:
			return delivery.Result{Status: delivery.Permanent, Detail: "no such user"}
		case m.To.ID%23 == 0:
			return delivery.Result{Status: delivery.Transient, Detail: "HTTP 503"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	// The last batch is still on its way.
	s.Exec(`update batches set next_run_at = clock_timestamp() + interval '1 hour' where from_user = (select max(from_user) from batches)`)
	d := s.deliverer(hook)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	s.Exec(`insert into campaign_openings select $1, id, 0, now() from users where id % 29 = 0`, c.ID)

	var everybody []campaign.Outcome
	seen := map[delivery.Outcome]int{}
	for i := range 3500 {
		o, found, err := s.campaigns.Outcome(t.Context(), delivery.KindCampaign, c, user.ID(3*(i+1)))
		s.Must(err)
		if !found {
			t.Fatalf("user %d is not in the campaign", 3*(i+1))
		}
		everybody = append(everybody, o)
		seen[o.Outcome]++
	}
	for _, o := range []delivery.Outcome{delivery.Sent, delivery.Skipped, delivery.Dead, delivery.Failed, delivery.InFlight} {
		if seen[o] < 20 {
			t.Fatalf("too few are %s to test anything: %v", o, seen)
		}
	}
	variants := []*int{nil, new(0), new(1), new(delivery.HeldOut)}
	for _, outcome := range append([]delivery.Outcome{""}, delivery.ListedOutcomes()...) {
		for _, reason := range []string{"", delivery.ReasonHoldOut, delivery.ReasonOptedOut, delivery.ReasonRefused, "no such reason"} {
			for _, variant := range variants {
				q := campaign.RecipientQuery{Outcome: outcome, Reason: reason, Variant: variant, Limit: 101}
				var want, got []campaign.Outcome
				for _, o := range everybody {
					if (outcome == "" || pgtest.Listed(o.Outcome, outcome)) &&
						(reason == "" || o.Reason == reason) && (variant == nil || o.Variant == *variant) {
						want = append(want, o)
					}
				}
				s.Must(s.service.EachRecipient(t.Context(), staff.System(), c.ID, q, func(o campaign.Outcome) error {
					got = append(got, o)
					return nil
				}))
				if !slices.EqualFunc(got, want, alikeOutcomes) {
					t.Fatalf("%+v: %d recipients, want %d", q, len(got), len(want))
				}
			}
		}
	}
	// With pages of any size, each user is shown once.
	for _, limit := range []int{1, 7, 999, 1000, 1001, 5000} {
		n, after := 0, user.ID(0)
		if limit == 1 {
			after = everybody[3400].UserID
			n = 3401
		}
		for {
			page, err := s.campaigns.Recipients(t.Context(), c, campaign.RecipientQuery{After: after, Limit: limit})
			s.Must(err)
			if len(page.List) > limit {
				t.Fatalf("%d on a page of %d", len(page.List), limit)
			}
			for _, o := range page.List {
				if o.UserID != everybody[n].UserID || (o.Outcome == delivery.InFlight) != (o.At.IsZero() && o.NotBefore == nil) {
					t.Fatalf("pages of %d: %+v at place %d", limit, o, n)
				}
				n++
			}
			if !page.More {
				break
			}
			after = page.Next
		}
		if n != 3500 {
			t.Errorf("pages of %d: %d recipients", limit, n)
		}
	}
	for id, found := range map[user.ID]bool{3: true, 3 * 1000: true, 3 * 1001: true, 3 * 3500: true, 4: false, 1: false, 3*3500 + 1: false, math.MaxInt64: false} {
		page, err := s.campaigns.Recipients(t.Context(), c, campaign.RecipientQuery{Only: id, Limit: 10})
		s.Must(err)
		if len(page.List) != map[bool]int{true: 1}[found] || page.More || found && page.List[0].UserID != id {
			t.Errorf("user %d alone: %+v", id, page)
		}
	}
	page, err := s.campaigns.Recipients(t.Context(), c, campaign.RecipientQuery{After: math.MaxInt64, Limit: 10})
	s.Must(err)
	if len(page.List) != 0 || page.More {
		t.Errorf("after the last id: %+v", page)
	}
	if page, err = s.campaigns.Recipients(t.Context(), c, campaign.RecipientQuery{Only: 3, Outcome: delivery.Expired, Limit: 10}); err != nil || len(page.List) != 0 {
		t.Errorf("user 3 did not expire: %+v %v", page, err)
	}
}

// A rare outcome is looked for in a bounded number of batches at a time.
func TestRareRecipients(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(1, 1)
	c := s.running(nil)
	const batches = 450
	for i := int64(10); i < 10+batches; i++ {
		s.Insert("batches", pgtest.Row{"kind": "campaign", "owner_id": c.ID, "channel": c.Channel, "from_user": i, "to_user": i, "due": pgtest.Bitmap(user.ID(i)),
			"skipped_count": 1, "rest_outcome": "skipped", "rest_reason": map[bool]string{true: "sold_out", false: "opted_out"}[i == 9+batches], "state": "done"})
	}
	q := campaign.RecipientQuery{Reason: "sold_out", Limit: 10}
	looks := 0
	for {
		page, err := s.campaigns.Recipients(t.Context(), c, q)
		s.Must(err)
		looks++
		if len(page.List) == 1 && page.List[0].UserID == 9+batches && !page.More {
			break
		}
		if len(page.List) != 0 || !page.More || page.Next <= q.After {
			t.Fatalf("look %d after %d: %+v", looks, q.After, page)
		}
		q.After = page.Next
	}
	if looks != 3 {
		t.Errorf("found at look %d", looks)
	}
	// The counters of batches lead straight to the batches that may contain the outcome.
	page, err := s.campaigns.Recipients(t.Context(), c, campaign.RecipientQuery{Outcome: delivery.InFlight, Limit: 10})
	s.Must(err)
	if len(page.List) != 1 || page.More {
		t.Errorf("in flight: %+v", page)
	}
}

// A campaign of a shop is compared with earlier campaigns of the same shop only.
func TestEarlierCampaigns(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(10, 1)
	s.Shops(10, 11)
	of := func(shop int64, name string) campaign.Campaign {
		c := s.running(func(sp *campaign.Spec) { sp.Shop, sp.Name = shop, name })
		s.Must(s.deliverer(pgtest.NewSink(delivery.Webhook, 100)).Drain(t.Context(), delivery.Webhook))
		s.settled(c)
		return s.now(c)
	}
	var mine []campaign.Campaign
	for i := range 7 {
		mine = append(mine, of(10, fmt.Sprint("mine ", i)))
	}
	theirs, none1 := of(11, "theirs"), of(0, "of no shop")
	waits := s.published(func(sp *campaign.Spec) { sp.Shop, sp.Name, sp.StartsAt = 10, "waits", pgtest.Clock().Add(time.Minute) })
	s.do(waits, campaign.Cancelling) // it never went out
	last, none2 := of(10, "the last"), of(0, "of no shop either")
	s.counted(last)

	names := func(list []campaign.Past) (all []int64) {
		for _, p := range list {
			all = append(all, p.ID)
			if p.Results.Meant().Sent != 10 || p.Progress.Sent != 10 {
				t.Errorf("%s: %+v", p.Name, p.Results)
			}
		}
		return all
	}
	list, err := s.service.Earlier(t.Context(), staff.System(), last, 0, 3)
	s.Must(err)
	if got := names(list); !slices.Equal(got, []int64{mine[6].ID, mine[5].ID, mine[4].ID}) {
		t.Errorf("earlier ones %v", got)
	}
	list, err = s.service.Earlier(t.Context(), staff.System(), last, mine[4].ID, 10)
	s.Must(err)
	if got := names(list); len(got) != 4 || got[0] != mine[3].ID {
		t.Errorf("those before %v", got)
	}
	list, err = s.service.Earlier(t.Context(), staff.System(), none2, 0, 10)
	s.Must(err)
	if got := names(list); !slices.Equal(got, []int64{none1.ID}) {
		t.Errorf("of no shop %v", got)
	}
	list, out, err := s.service.Compared(t.Context(), staff.System(), last, []int64{mine[0].ID, theirs.ID, mine[2].ID, mine[0].ID, last.ID, 999, waits.ID})
	s.Must(err)
	if got := names(list); !slices.Equal(got, []int64{mine[0].ID, mine[2].ID}) || out != 4 {
		t.Errorf("compared %v, %d left out", got, out)
	}
	if list, out, err = s.service.Compared(t.Context(), staff.System(), last, []int64{mine[0].ID, mine[1].ID, mine[2].ID, mine[3].ID, mine[4].ID, mine[5].ID}); err != nil ||
		len(list) != campaign.MaxCompared || out != 1 {
		t.Errorf("%d compared, %d left out: %v", len(list), out, err)
	}
	limited := staff.Actor{Role: staff.Viewer, Shops: []int64{11}}
	if _, err := s.service.Recipients(t.Context(), limited, last.ID, campaign.RecipientQuery{Limit: 1}); err == nil {
		t.Error("somebody of another shop sees recipients")
	}
	if _, _, err := s.service.Results(t.Context(), limited, last.ID); err == nil {
		t.Error("somebody of another shop sees results")
	}
	if list, out, err = s.service.Compared(t.Context(), limited, theirs, []int64{mine[0].ID}); err != nil || len(list) != 0 || out != 1 {
		t.Errorf("somebody of another shop compares with %v %v", list, err)
	}
}

// A user in quiet hours waits until these hours end, and is counted apart from users who failed
// for another reason.
func TestRecipientsWhoWaitForTheMorning(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(2500, 1)
	c := s.running(nil)
	waiting := func() campaign.Waiting {
		t.Helper()
		w, err := s.campaigns.Waiting(t.Context(), c.ID)
		s.Must(err)
		return w
	}
	if w := waiting(); w != (campaign.Waiting{}) {
		t.Errorf("before anybody was sent to %+v wait", w)
	}
	const minute = `(extract(hour from timezone('UTC', now()))::int * 60 + extract(minute from timezone('UTC', now()))::int)`
	s.Exec(`update users set timezone = 'UTC', quiet_from = (` + minute + ` + 1430) % 1440, quiet_to = (` + minute + ` + case when id = 700 then 3 else 4 end) % 1440
		where id % 100 = 0`)
	hook := pgtest.NewSink(delivery.Webhook, 100)
	hook.Answer = func(m delivery.Message, times int) delivery.Result {
		if m.To.ID == 7 {
			return delivery.Result{Status: delivery.Transient, Detail: "HTTP 503"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	d := s.deliverer(hook)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	w := waiting()
	st, err := s.campaigns.Status(t.Context(), c.ID)
	s.Must(err)
	p := st.Progress
	first := s.Number(`select count(*) from exceptions where user_id = 700 and next_retry_at = $1`, w.Next)
	if w.Users != 25 || first != 1 || p.InFlight != 26 || p.Difference() != 0 || p.Reserved != 2500 {
		t.Errorf("%+v wait, %d of them first; progress %+v", w, first, p)
	}
	for q, want := range map[campaign.RecipientQuery]int{{Outcome: delivery.Failed, Reason: delivery.ReasonQuietHours, Limit: 3000}: 25,
		{Outcome: delivery.Failed, Awake: true, Limit: 3000}: 1, {Awake: true, Limit: 3000}: 2475} {
		page, err := s.campaigns.Recipients(t.Context(), c, q)
		s.Must(err)
		if len(page.List) != want {
			t.Errorf("%+v: %d, want %d", q, len(page.List), want)
		}
	}
	// A user whose quiet hours are over does not wait any more, before being sent to.
	s.Exec(`update exceptions set next_retry_at = clock_timestamp() where user_id = 700`)
	if w := waiting(); w.Users != 24 || s.Number(`select count(*) from exceptions where user_id = 800 and next_retry_at = $1`, w.Next) != 1 {
		t.Errorf("once one has woken %+v wait", w)
	}
	s.Exec(`update users set quiet_from = 0, quiet_to = 0`)
	s.Exec(`update batches set next_run_at = clock_timestamp()`)
	s.Exec(`update exceptions set next_retry_at = clock_timestamp()`)
	hook.Answer = nil
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	if got := s.settled(c); waiting() != (campaign.Waiting{}) || got.Sent != 2500 {
		t.Errorf("in the morning: %+v", got)
	}
}

// A message that was sent at the first attempt has the span in which its batch was sent. A
// recipient who waited for the end of quiet hours does not extend that span.
func TestWhenRecipientsWereSentTo(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(100, 1)
	c := s.running(nil)
	const minute = `(extract(hour from timezone('UTC', now()))::int * 60 + extract(minute from timezone('UTC', now()))::int)`
	s.Exec(`update users set timezone = 'UTC', quiet_from = (` + minute + ` + 1430) % 1440, quiet_to = (` + minute + ` + 3) % 1440 where id = 7`)
	hook := pgtest.NewSink(delivery.Webhook, 100)
	d := s.deliverer(hook)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	// The morning is brought nearer: the sent messages lie hours back.
	s.Exec(`update users set quiet_from = 0, quiet_to = 0`)
	s.Exec(`update batches set due_at = due_at - interval '8 hours', created_at = created_at - interval '8 hours', started_at = started_at - interval '8 hours',
		next_run_at = clock_timestamp()`)
	s.Exec(`update exceptions set next_retry_at = clock_timestamp()`)
	s.Must(d.Drain(t.Context(), delivery.Webhook))
	if s.Number(`select count(*) from batches where state = 'done'`) != 1 || s.Number(`select count(*) from exceptions where outcome = 'recovered'`) != 1 {
		t.Fatal("the sleeper was not sent to in the morning")
	}
	page, err := s.campaigns.Recipients(t.Context(), c, campaign.RecipientQuery{Limit: 200})
	s.Must(err)
	for _, o := range page.List {
		alone, found, err := s.campaigns.Outcome(t.Context(), delivery.KindCampaign, c, o.UserID)
		s.Must(err)
		for _, o := range []campaign.Outcome{o, alone} {
			switch {
			case !found:
				t.Errorf("%v is not found", o.UserID)
			case o.UserID == 7:
				if o.At.IsZero() || o.NotBefore != nil || o.NotAfter != nil {
					t.Errorf("the sleeper: %+v", o)
				}
			case !o.At.IsZero() || o.NotBefore == nil || o.NotAfter == nil || o.NotAfter.Before(*o.NotBefore):
				t.Errorf("user %v: %+v", o.UserID, o)
			case time.Since(*o.NotAfter) < 7*time.Hour || time.Since(*o.NotBefore) < 7*time.Hour:
				t.Errorf("user %v is said to be sent to between %v and %v", o.UserID, o.NotBefore, o.NotAfter)
			}
		}
	}
}
