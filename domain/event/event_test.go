package event_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/event"
	"dropbell/musttest"
)

var (
	due = time.Date(2026, 11, 20, 11, 55, 0, 0, time.UTC)
	at  = time.Date(2026, 11, 20, 11, 55, 0, 123456000, time.UTC)
)

// golden has one value per event. Files of versions that were sent once stay
// unchanged for ever: a reader may receive an old payload long after an upgrade.
// Ids are above 2^53, where a JSON number would lose its last digits.
var golden = map[string]any{
	event.TemplatePublished: event.Template{TemplateID: 9007199254740993, ShopNumber: 9007199254740994, Version: 2, OpensAt: due.Add(5 * time.Minute), Sequence: 9007199254740994, At: at},
	event.TemplateMoved:     event.Template{TemplateID: 9007199254740993, Version: 3, OpensAt: due.Add(time.Hour), Sequence: 9007199254740994, At: at},
	event.TemplateChanged:   event.Template{TemplateID: 1, Version: 1, OpensAt: due, Sequence: 9007199254740994, At: at},
	event.TemplateClosed:    event.Template{TemplateID: 1, Version: 5, OpensAt: due, Sequence: 9007199254740994, At: at},
	event.TemplateCancelled: event.Template{TemplateID: 1, Version: 6, OpensAt: due, Sequence: 9007199254740994, At: at},
	event.ReservationsChanged: event.Reservations{At: at,
		Added:   []event.Booking{{TemplateID: 9007199254740993, Bits: 1<<60 - 1, Users: 250}, {TemplateID: 2, Bits: 1, Users: 1}},
		Removed: []event.Booking{{TemplateID: 2, Bits: 576460752303423488, Users: 3}}},
	event.SlotFired: event.Slot{SlotID: 9007199254740993, TemplateID: 1, Slot: 1, DueAt: due, At: at},
	event.BatchFinished: event.Batch{BatchID: 9007199254740993, Kind: "reminder", OwnerID: 9007199254740994, TemplateID: 1,
		Channel: 4, Sent: 999, FromUser: 9007199254740995, ToUser: 9007199254740996, At: at},
	event.SlotFinished: event.Slot{SlotID: 9007199254740993, TemplateID: 1, Slot: 12, DueAt: due, At: at},
	event.AnnouncementCreated: event.Announcement{AnnouncementID: 9007199254740993, TemplateID: 9007199254740994, Kind: "correction",
		OpensAt: due.Add(time.Hour), At: at},
	event.CampaignPublished: event.Campaign{CampaignID: 9007199254740993, State: "scheduled", StartsAt: due, At: at},
	event.CampaignStarted:   event.Campaign{CampaignID: 9007199254740993, State: "running", StartsAt: due, At: at},
	event.CampaignChanged:   event.Campaign{CampaignID: 9007199254740993, State: "paused", StartsAt: due, At: at},
	event.CouponsIssued:     event.Coupons{At: at, Issued: []event.Issue{{TemplateID: 9007199254740993, Issued: 256, Total: 1024}, {TemplateID: 2, Issued: 1, Total: 1}}},
	event.DrawSealed:        event.Draw{TemplateID: 9007199254740993, Signed: "dropbell-draw/1 seal\ndrop 9007199254740993\n", Round: 40000000, Sequence: 9007199254740994, At: at},
	event.DrawDrawn:         event.Draw{TemplateID: 9007199254740993, Signed: "dropbell-draw/1 result\ndrop 9007199254740993\n", Round: 40000000, Won: 100, Sequence: 9007199254740995, At: at},
	event.EntriesListed: event.EntryList{TemplateID: 9007199254740993, Won: true, Sequence: 9007199254740996, At: at, Items: []event.ListedEntry{
		{UserID: 9007199254740994, Ticket: "000102030405060708090a0b0c0d0e0f", CouponID: 9007199254740995}}},
	event.WaitersListed: event.WaiterList{TemplateID: 9007199254740993, Filled: true, Sequence: 9007199254740996, At: at, Items: []event.ListedWaiter{
		{UserID: 9007199254740994, CouponID: 9007199254740995}, {UserID: 9007199254740997, Out: true}}},
	event.GateRefilled:  event.Gate{TemplateID: 9007199254740993},
	event.BudgetReached: event.Budget{Scope: "shop", Subject: 10, ShopNumber: 10, Currency: "CNY", Amount: 100_000, Used: 80_000, Level: "near", At: at},
	event.JobCreated:    event.Job{JobID: 9007199254740993, Kind: "templates.bulk", At: at},
	event.CouponsChanged: event.CouponChanges{Changes: []event.Coupon{
		{CouponID: 9007199254740993, TemplateID: 9007199254740994, UserID: 9007199254740995, OrderID: "A-1", Step: "confirm", From: "locked", To: "used",
			Discount: 1000, OrderAmount: 6000, OperationID: 9007199254740996, At: at},
		{CouponID: 9007199254740997, TemplateID: 9007199254740994, UserID: 9007199254740998, Step: "revoke", From: "unused", To: "revoked",
			OperationID: 9007199254740999, At: at}}},
	event.CouponChanged: event.Coupon{CouponID: 9007199254740993, TemplateID: 9007199254740994, UserID: 9007199254740995, OrderID: "A-1",
		Step: "lock", From: "unused", To: "locked", Discount: 1000, OrderAmount: 6000, LockedUntil: new(due.Add(15 * time.Minute)),
		OperationID: 9007199254740996, At: at},
	event.CouponsExpired: event.Expired{At: at, Expired: []event.ExpiredCoupons{{TemplateID: 9007199254740993, Coupons: 500}, {TemplateID: 2, Coupons: 1}}},
	event.CodesChanged:   event.Codes{BatchID: 9007199254740993, TemplateID: 9007199254740994, State: "revoked"},
	event.UsersChanged:   event.Users{FromUser: 1, ToUser: 9223372036854775807},
	event.ReservationsListed: event.ReservationList{TemplateID: 9007199254740993, Cancelled: true, Items: []event.ListedReminders{
		{UserID: 9007199254740994, Bits: 1<<60 - 1, Sequence: 9007199254740995, At: at}}},
	event.IssuedListed: event.IssuedList{TemplateID: 9007199254740993, Items: []event.OwnedCoupon{{CouponID: 9007199254740994, UserID: 9007199254740995}}},
	event.ExpiredListed: event.ExpiredList{TemplateID: 9007199254740993, At: at, Items: []event.ListedCoupon{
		{CouponID: 9007199254740994, UserID: 9007199254740995, OperationID: 9007199254740996}}},
	event.CodeRequested:      event.PhoneCode{VerificationID: 9007199254740993, At: at},
	event.ChannelTestCreated: event.ChannelTest{TestID: 9007199254740993, Channel: 4, At: at},
}

func TestPayloadsKeepTheirMeaning(t *testing.T) {
	for _, name := range event.All() {
		value, ok := golden[name]
		if !ok {
			t.Errorf("%s has no golden value", name)
			continue
		}
		raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := json.MarshalIndent(value, "", "  ")
		musttest.OK(t, err)
		if !bytes.Equal(bytes.TrimSpace(raw), got) {
			t.Errorf("%s is now sent as\n%s\nand was sent as\n%s", name, got, raw)
		}
		back := reflect.New(reflect.TypeOf(value))
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		if err := strict.Decode(back.Interface()); err != nil {
			t.Errorf("%s cannot be read any more: %v", name, err)
		}
		if !reflect.DeepEqual(back.Elem().Interface(), value) {
			t.Errorf("%s is read as %+v, want %+v", name, back.Elem().Interface(), value)
		}
	}
}

func TestEveryGoldenFileIsAnEvent(t *testing.T) {
	files, err := os.ReadDir("testdata")
	musttest.OK(t, err)
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".json"); !slices.Contains(event.All(), name) {
			t.Errorf("%s belongs to no event; a version once sent must stay readable", f.Name())
		}
	}
}

func TestNames(t *testing.T) {
	form, seen := regexp.MustCompile(`^[a-z]+\.[a-z]+\.v[1-9][0-9]*$`), map[string]bool{}
	for _, name := range event.All() {
		if !form.MatchString(name) || seen[name] {
			t.Errorf("%q is not a name that ends in its version, or stands twice", name)
		}
		seen[name] = true
	}
	if len(seen) != len(golden) {
		t.Errorf("%d events and %d golden values", len(seen), len(golden))
	}
}
