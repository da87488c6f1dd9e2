package campaigns_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

// failures is a fixture whose campaigns reach only users with odd ids.
type failures struct {
	*campaignFixture
	letters *delivery.DeadLetters
	ledger  *delivery.Ledger
	daemon  *delivery.Service
	broken  bool
}

func newFailures(t *testing.T) *failures {
	f := &failures{campaignFixture: newCampaignFixture(t), broken: true}
	f.users(4, 1)
	f.letters = &delivery.DeadLetters{Store: f.DeadLetters}
	f.ledger = &delivery.Ledger{Store: f.Ledger}
	hook := pgtest.NewSink(delivery.Webhook, 100)
	hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		if f.broken && m.To.ID%2 == 0 {
			return delivery.Result{Status: delivery.Permanent, Detail: "no such address"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	f.daemon = f.deliverer(hook)
	return f
}

// sent is a campaign of the shop that was sent to four users, two in vain.
func (f *failures) sent(name string, shop int64, audience campaign.Audience) campaign.Campaign {
	f.Helper()
	c := f.running(func(sp *campaign.Spec) { sp.Name, sp.Shop, sp.Audience = name, shop, audience })
	f.Must(f.daemon.Drain(f.Context(), delivery.Webhook))
	return c
}

func operatorOf(shops ...int64) staff.Actor {
	return staff.Actor{Label: "staff:7", Role: staff.Operator, Shops: shops}
}

// A campaign belongs to its own shop, even if its template belongs to another shop. A campaign
// without a shop belongs to its template's shop.
func TestFailuresOfCampaignsAreShownToTheirShop(t *testing.T) {
	f := newFailures(t)
	everybody := campaign.Audience{Kind: campaign.Everybody}
	ten := f.sent("Ten", 10, everybody)
	eleven := f.sent("Eleven", 11, everybody)
	f.sent("Nobody's", 0, everybody)
	drop := f.Drop(pgtest.Drop{Shop: 11})
	f.Exec(`insert into reservations (template_id, user_id, slots, created_at) select $1, id, 1, now() - interval '1 hour' from users`, drop)
	about := campaign.Audience{Kind: campaign.Reserved, ID: drop}
	byTemplate, ofBoth := f.sent("By template", 0, about), f.sent("Of both", 11, about)
	for name, x := range map[string]struct {
		by   staff.Actor
		want []int64
	}{
		"shop 10": {operatorOf(10), []int64{ten.ID}},
		"shop 11": {operatorOf(11), []int64{eleven.ID, byTemplate.ID, ofBoth.ID}},
		"shop 12": {operatorOf(12), nil},
	} {
		var seen, dead []int64
		page, err := f.ledger.Batches(t.Context(), x.by, delivery.BatchQuery{Limit: 50})
		f.Must(err)
		for _, b := range page.List {
			seen = append(seen, b.OwnerID)
			if _, err := f.ledger.Batch(t.Context(), x.by, b.ID); err != nil || b.CampaignName == "" {
				t.Errorf("%s: batch %+v: %v", name, b, err)
			}
		}
		list, err := f.letters.List(t.Context(), x.by, delivery.DeadLetterFilter{}, 0, 0, 100)
		f.Must(err)
		for _, d := range list {
			dead = append(dead, d.OwnerID)
		}
		slices.Sort(seen)
		if !slices.Equal(seen, x.want) || !slices.Equal(slices.Compact(dead), x.want) || len(list) != 2*len(x.want) {
			t.Errorf("%s sees batches of %v and dead letters of %v, want %v", name, seen, dead, x.want)
		}
		groups, err := f.letters.Groups(t.Context(), x.by, delivery.DeadLetterFilter{})
		f.Must(err)
		var sum int64
		for _, g := range groups {
			sum += g.Dead
		}
		triage, err := f.letters.DryRun(t.Context(), x.by, delivery.DeadLetterFilter{}, 0)
		f.Must(err)
		if want := int64(2 * len(x.want)); sum != want || len(groups) > 1 || triage.Total != want || triage.InTime != want {
			t.Errorf("%s: groups %+v, triage %+v, want %d", name, groups, triage, want)
		}
	}
	// Page by page, over both kinds.
	both, err := f.letters.List(t.Context(), operatorOf(10, 11), delivery.DeadLetterFilter{}, 0, 0, 100)
	f.Must(err)
	var paged []delivery.DeadLetter
	for last := (delivery.DeadLetter{}); ; {
		page, err := f.letters.List(t.Context(), operatorOf(10, 11), delivery.DeadLetterFilter{}, last.BatchID, last.UserID, 3)
		f.Must(err)
		if len(page) == 0 {
			break
		}
		paged, last = append(paged, page...), page[len(page)-1]
	}
	if len(both) != 8 || !slices.Equal(both, paged) {
		t.Errorf("%d at once, in pages %+v", len(both), paged)
	}
	// A replay reaches as far as its operator.
	f.broken = false
	_, err = f.letters.Start(t.Context(), operatorOf(10), delivery.DeadLetterOrder{Action: delivery.Replay})
	f.Must(err)
	f.Must(f.letters.Step(t.Context()))
	if n := f.Number(`select count(*) from exceptions where outcome = 'dead'`); n != 8 {
		t.Errorf("%d are dead, want those of the others", n)
	}
	if n := f.Number(`select done from dead_letter_jobs`); n != 2 {
		t.Errorf("%d were tried again", n)
	}
}

func TestDeadLettersOfOneCampaign(t *testing.T) {
	f := newFailures(t)
	one, other := f.sent("One", 0, campaign.Audience{Kind: campaign.Everybody}), f.sent("Other", 0, campaign.Audience{Kind: campaign.Everybody})
	filter := delivery.DeadLetterFilter{CampaignID: one.ID}
	list, err := f.letters.List(t.Context(), staff.System(), filter, 0, 0, 100)
	f.Must(err)
	if len(list) != 2 {
		t.Fatalf("letters %+v", list)
	}
	want := list[0]
	want.Kind, want.OwnerID, want.OwnerName, want.TemplateID = delivery.KindCampaign, one.ID, "One", 0
	if diff := cmp.Diff(want, list[0]); diff != "" {
		t.Fatalf("letter (-want +got):\n%s", diff)
	}
	if groups, err := f.letters.Groups(t.Context(), staff.System(), filter); err != nil || len(groups) != 1 || groups[0].Dead != 2 {
		t.Errorf("groups %+v %v", groups, err)
	}
	j, err := f.letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Discard, Filter: filter, RequestKey: "k"})
	f.Must(err)
	again, err := f.letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Discard, Filter: filter, RequestKey: "k"})
	if err != nil || again.ID != j.ID || f.Number(`select count(*) from dead_letter_jobs`) != 1 {
		t.Errorf("asked again: %+v %v", again, err)
	}
	f.Must(f.letters.Step(t.Context()))
	if n := f.Number(`select count(*) from exceptions e join batches b on b.id = e.batch_id where e.outcome = 'dead' and b.owner_id = $1`, other.ID); n != 2 {
		t.Errorf("%d of the other campaign are dead, want 2", n)
	}
}
