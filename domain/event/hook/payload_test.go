package hook_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/musttest"
)

var at = time.Date(2026, 11, 20, 11, 55, 0, 123456000, time.UTC)

const big = 9007199254740993 // above 2^53, where a JSON number would lose its last digit

// examples has one event of each type, made from the payload of the bus if the bus
// announces it.
func examples(t *testing.T) map[hook.Type]hook.Event {
	t.Helper()
	all := map[hook.Type]hook.Event{}
	add := func(e hook.Event, ok bool) {
		if !ok {
			t.Fatal("no event")
		}
		all[e.Type] = e
	}
	template := event.Template{TemplateID: big, Version: 3, OpensAt: at.Truncate(time.Hour), Sequence: 41, At: at}
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateClosed, event.TemplateCancelled} {
		e, ok := hook.OfTemplate(topic, template)
		add(e, ok)
	}
	if _, ok := hook.OfTemplate(event.TemplateChanged, template); ok {
		t.Error("any change is told")
	}
	add(hook.Event{Type: hook.DropOpened, Subject: hook.Drop(big), TemplateID: big, Sequence: 42, At: at, Items: 1, Data: hook.DropData{TemplateID: big, OpensAt: at}}, true)
	soldOut := hook.OfIssue(event.Issue{TemplateID: big, Issued: 1, Total: 1000}, at)
	soldOut.Sequence = 43
	add(soldOut, true)
	items := []event.ListedReminders{{UserID: big, Bits: 1 | 1<<11 | 1<<12, Sequence: 44, At: at}, {UserID: 2, Bits: 1, Sequence: 45, At: at.Add(time.Second)}}
	add(hook.OfReservations(event.ReservationList{TemplateID: big, Items: items})[0], true)
	add(hook.OfReservations(event.ReservationList{TemplateID: big, Cancelled: true, Items: items[1:]})[0], true)
	issued := hook.OfIssued([]hook.Issued{{TemplateID: big, IssuedItem: hook.IssuedItem{CouponID: big, UserID: 7, Origin: "claim", IssuedAt: at, ExpiresAt: at.Add(time.Hour)}}}, at)[0]
	issued.Sequence = 46
	add(issued, true)
	until := at.Add(15 * time.Minute)
	for step, to := range map[string]string{"lock": "locked", "confirm": "used", "timeout": "unused", "refund": "unused", "revoke": "revoked", "suspend": "suspended", "reinstate": "unused"} {
		c := event.Coupon{CouponID: big, TemplateID: 1, UserID: 7, OrderID: "A-1", Step: step, To: to, Discount: 1000, OperationID: 47, At: at}
		if step == "lock" || step == "confirm" || step == "refund" {
			c.OrderAmount = 6000
		}
		if step == "suspend" || step == "reinstate" {
			c.OrderID, c.Discount = "", 0
		}
		if step == "lock" {
			c.LockedUntil = &until
		}
		e, ok := hook.OfCoupon(c)
		add(e, ok)
	}
	expired := hook.OfExpired(event.ExpiredList{TemplateID: big, At: at, Items: []event.ListedCoupon{{CouponID: big, UserID: 7, OperationID: 48}}})[0]
	expired.Sequence = 49
	add(expired, true)
	finished := hook.OfCampaign(hook.CampaignData{CampaignID: big, TemplateID: 1, FinishedAt: at, Recipients: 10, Sent: 6, Skipped: 2, Expired: 1, Dead: 1})
	finished.Sequence = 50
	add(finished, true)
	dead := hook.OfDead(hook.DeadData{BatchID: big, Kind: "reminder", Channel: "email", TemplateID: 1, Items: []hook.DeadItem{{UserID: 7, Reason: "attempts", Attempts: 8, At: at}}}, at)[0]
	dead.Sequence = 51
	add(dead, true)
	reached := hook.OfBudget(event.Budget{Scope: "drop", Subject: big, ShopNumber: 10, Currency: "CNY", Amount: 100_000, Used: 80_000, Level: "near", At: at})
	reached.Sequence = 53
	add(reached, true)
	earned := hook.OfEarned(hook.EarnedData{TemplateID: big, EndedAt: at.Add(-hook.EarnedAfter), Currency: "CNY", Orders: 612, Ordered: 6_120_000, Discount: 612_000, Revenue: 5_508_000, Refunds: 8, Refunded: 72_000, SMS: []hook.SMSCost{{Currency: "CNY", Parts: 300, Micros: 13_500_000}}}, at)
	earned.Sequence = 54
	add(earned, true)
	drawn := event.Draw{TemplateID: big, Signed: "dropbell-draw/1 …", Round: 40_000_000, Won: 100, Sequence: 55, At: at}
	add(hook.OfSeal(drawn), true)
	add(hook.OfDraw(drawn), true)
	for _, won := range []bool{true, false} {
		one := event.ListedEntry{UserID: 7, Ticket: "000102030405060708090a0b0c0d0e0f"}
		if won {
			one.CouponID = big
		}
		add(hook.OfEntries(event.EntryList{TemplateID: big, Won: won, Items: []event.ListedEntry{one}, Sequence: 56, At: at})[0], true)
	}
	for _, filled := range []bool{true, false} {
		one := event.ListedWaiter{UserID: 7, Out: !filled}
		if filled {
			one.CouponID = big
		}
		add(hook.OfWaiters(event.WaiterList{TemplateID: big, Filled: filled, Items: []event.ListedWaiter{one}, Sequence: 57, At: at})[0], true)
	}
	test := hook.NewTest(hook.Endpoint{ID: 3, Shop: 10}, at)
	test.Sequence = 52
	add(test, true)
	return all
}

// TestPayloadsKeepTheirMeaning: the payloads sent equal the files, on which docs and
// receivers rely.
func TestPayloadsKeepTheirMeaning(t *testing.T) {
	all := examples(t)
	for _, name := range append(hook.Types(), hook.TestEvent) {
		e, ok := all[name]
		if !ok {
			t.Errorf("%s has no example", name)
			continue
		}
		payload, err := e.Payload()
		musttest.OK(t, err)
		var got bytes.Buffer
		musttest.OK(t, json.Indent(&got, payload, "", "  "))
		file := filepath.Join("testdata", string(name)+".json")
		want, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		if got.String() != strings.TrimSpace(string(want)) {
			t.Errorf("%s is sent as\n%s\nand was sent as\n%s", name, got.String(), want)
		}
	}
	files, _ := os.ReadDir("testdata")
	if len(files) != len(hook.Types())+1 {
		t.Errorf("%d files for %d types", len(files), len(hook.Types())+1)
	}
}

// TestBatchedEventsAreBounded and lose no item.
func TestBatchedEventsAreBounded(t *testing.T) {
	list := event.ReservationList{TemplateID: 1}
	for i := range 1201 {
		list.Items = append(list.Items, event.ListedReminders{UserID: int64(i), Bits: 1<<60 - 1, Sequence: int64(i + 1), At: at})
	}
	events, seen := hook.OfReservations(list), 0
	for _, e := range events {
		seen += e.Items
		data := e.Data.(hook.ReservationsData)
		if len(data.Items) != e.Items || e.Items > hook.MaxItems || e.Sequence != data.Items[len(data.Items)-1].Sequence {
			t.Errorf("%d items, %d said, number %d", len(data.Items), e.Items, e.Sequence)
		}
	}
	if seen != 1201 || len(events) != 3 {
		t.Errorf("%d items in %d events", seen, len(events))
	}
	two := hook.OfIssued([]hook.Issued{{TemplateID: 2}, {TemplateID: 1}, {TemplateID: 2}}, at)
	if len(two) != 2 || two[0].TemplateID != 2 || two[0].Items != 2 || two[1].Items != 1 {
		t.Errorf("%+v", two)
	}
	for _, x := range hook.Types() {
		if e := examples(t)[x]; x.Batched() != strings.Contains(string(must(e.Payload())), `"items"`) {
			t.Errorf("%s: batched %v", x, x.Batched())
		}
	}
}

func must(b []byte, _ error) []byte { return b }

// TestListsAreSummed: lists are summed without losing an item, and reservations are
// never mixed with cancellations.
func TestListsAreSummed(t *testing.T) {
	item := func(n int64) []event.ListedReminders { return []event.ListedReminders{{UserID: n, Sequence: n}} }
	sums := event.SumReservationLists([]event.ReservationList{{TemplateID: 2, Items: item(1)}, {TemplateID: 1, Cancelled: true, Items: item(2)},
		{TemplateID: 2, Items: item(3)}, {TemplateID: 1, Items: item(4)}, {TemplateID: 2, Items: item(5)}}, 2)
	var got []string
	for _, s := range sums {
		got = append(got, string(must(json.Marshal([]any{s.TemplateID, s.Cancelled, len(s.Items)}))))
	}
	if want := []string{"[1,false,1]", "[1,true,1]", "[2,false,2]", "[2,false,1]"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
