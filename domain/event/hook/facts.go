package hook

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
)

// OfTemplate returns the event of a template's transition, or false if the topic is
// no transition.
func OfTemplate(topic string, e event.Template) (Event, bool) {
	types := map[string]Type{event.TemplatePublished: DropPublished, event.TemplateMoved: DropMoved,
		event.TemplateClosed: DropClosed, event.TemplateCancelled: DropCancelled}
	t, ok := types[topic]
	return Event{Type: t, Subject: Drop(e.TemplateID), TemplateID: e.TemplateID, Sequence: e.Sequence, At: e.At, Items: 1,
		Data: DropData{TemplateID: e.TemplateID, Version: e.Version, OpensAt: e.OpensAt.UTC()}}, ok
}

// OfIssue returns the event of a drop that the issue has sold out.
func OfIssue(i event.Issue, at time.Time) Event {
	return Event{Type: DropSoldOut, Subject: Drop(i.TemplateID), TemplateID: i.TemplateID, At: at, Items: 1,
		Data: SoldOutData{i.TemplateID, i.Total}}
}

var ofSteps = map[coupon.Step]Type{coupon.StepLock: CouponLocked, coupon.StepConfirm: CouponUsed, coupon.StepRelease: CouponReleased,
	coupon.StepTimeout: CouponReleased, coupon.StepRefund: CouponRefunded, coupon.StepRevoke: CouponRevoked, coupon.StepRestore: CouponUsed,
	coupon.StepSuspend: CouponSuspended, coupon.StepReinstate: CouponRestored}

// CouponSteps are the types of events that [OfCoupon] returns.
var CouponSteps = slices.Collect(maps.Values(ofSteps))

// OfCoupon returns the event of one coupon's step, or false for a step without an
// event. Events of one coupon are ordered by the number of the step's line in the
// coupon's log.
func OfCoupon(e event.Coupon) (Event, bool) {
	t, ok := ofSteps[coupon.Step(e.Step)]
	data := CouponData{CouponID: e.CouponID, TemplateID: e.TemplateID, UserID: e.UserID, OrderID: e.OrderID, Step: e.Step, State: e.To, Discount: e.Discount, OrderAmount: e.OrderAmount}
	if e.LockedUntil != nil {
		until := e.LockedUntil.UTC()
		data.LockedUntil = &until
	}
	return Event{Type: t, Subject: couponSubject(e.CouponID), TemplateID: e.TemplateID, Sequence: e.OperationID, At: e.At,
		Items: 1, Data: data}, ok
}

// OfBudget returns the event of a budget that was reached.
func OfBudget(e event.Budget) Event {
	x := Event{Type: BudgetReached, Subject: e.Scope + "/" + strconv.FormatInt(e.Subject, 10), Shop: e.ShopNumber, At: e.At, Items: 1,
		Data: BudgetData{e.Scope, e.Subject, e.Currency, e.Amount, e.Used, e.Level}}
	if e.Scope == "drop" {
		x.TemplateID = e.Subject
	}
	return x
}

// OfSeal returns the event of a list that was sealed.
func OfSeal(e event.Draw) Event {
	return Event{Type: DrawSealed, Subject: Drop(e.TemplateID), TemplateID: e.TemplateID, Sequence: e.Sequence, At: e.At, Items: 1,
		Data: SealedData{e.TemplateID, e.Round, e.Signed}}
}

// OfDraw returns the event of a draw that was made.
func OfDraw(e event.Draw) Event {
	return Event{Type: DrawDrawn, Subject: Drop(e.TemplateID), TemplateID: e.TemplateID, Sequence: e.Sequence, At: e.At, Items: 1,
		Data: DrawnData{e.TemplateID, e.Round, e.Won, e.Signed}}
}

// OfEntries returns the events of entries, in parts of at most [MaxItems].
func OfEntries(e event.EntryList) []Event {
	t := EntryLost
	if e.Won {
		t = EntryWon
	}
	return ofUsers(Event{Type: t, TemplateID: e.TemplateID, Sequence: e.Sequence, At: e.At}, e.Items, func(x event.ListedEntry) EntryItem { return EntryItem(x) },
		func(items []EntryItem) any { return EntriesData{e.TemplateID, items} })
}

// OfWaiters returns the events of users of a waitlist, in parts of at most [MaxItems].
func OfWaiters(e event.WaiterList) []Event {
	t := WaitlistLapsed
	if e.Filled {
		t = WaitlistFilled
	}
	return ofUsers(Event{Type: t, TemplateID: e.TemplateID, Sequence: e.Sequence, At: e.At}, e.Items, func(x event.ListedWaiter) WaiterItem { return WaiterItem(x) },
		func(items []WaiterItem) any { return WaitersData{e.TemplateID, items} })
}

// ofUsers returns e for each part of the items.
func ofUsers[From, To any](e Event, all []From, item func(From) To, data func([]To) any) (list []Event) {
	for part := range slices.Chunk(all, MaxItems) {
		items := make([]To, len(part))
		for i, x := range part {
			items[i] = item(x)
		}
		e.Subject, e.Items, e.Data = Drop(e.TemplateID), len(part), data(items)
		list = append(list, e)
	}
	return list
}

// OfEarned returns the event of what a drop earned.
func OfEarned(d EarnedData, at time.Time) Event {
	d.EndedAt = d.EndedAt.UTC()
	return Event{Type: DropEarned, Subject: Drop(d.TemplateID), TemplateID: d.TemplateID, At: at, Items: 1, Data: d}
}

func couponSubject(id int64) string { return "coupon/" + strconv.FormatInt(id, 10) }

// OfReservations returns the events of reservations or cancellations, in parts of
// at most [MaxItems].
func OfReservations(e event.ReservationList) (list []Event) {
	t, known := ReservationMade, map[int64]json.RawMessage{}
	if e.Cancelled {
		t = ReservationCancelled
	}
	for part := range slices.Chunk(e.Items, MaxItems) {
		x := Event{Type: t, Subject: Drop(e.TemplateID), TemplateID: e.TemplateID, Items: len(part)}
		items := make([]ReservationItem, len(part))
		for i, r := range part {
			if known[r.Bits] == nil {
				known[r.Bits] = remindersJSON(r.Bits)
			}
			items[i] = ReservationItem{r.UserID, known[r.Bits], r.Sequence, r.At.UTC()}
			x.Sequence = max(x.Sequence, r.Sequence)
			if r.At.After(x.At) {
				x.At = r.At
			}
		}
		x.Data = ReservationsData{TemplateID: e.TemplateID, Items: items}
		list = append(list, x)
	}
	return list
}

func remindersJSON(bits int64) json.RawMessage {
	type one struct {
		Channel string `json:"channel"`
		Minutes int    `json:"minutes"`
	}
	list := []one{}
	for _, r := range reminder.StoredBitmap(bits).Reminders() {
		list = append(list, one{r.Channel.String(), r.Slot.Minutes()})
	}
	b, _ := json.Marshal(list) // strings and numbers always have a JSON form
	return b
}

// OfExpired returns the events of coupons of one template that have expired.
func OfExpired(e event.ExpiredList) (list []Event) {
	for part := range slices.Chunk(e.Items, MaxItems) {
		items := make([]ExpiredItem, len(part))
		for i, c := range part {
			items[i] = ExpiredItem{c.CouponID, c.UserID, c.OperationID}
		}
		list = append(list, Event{Type: CouponExpired, Subject: Drop(e.TemplateID), TemplateID: e.TemplateID, At: e.At, Items: len(part),
			Data: ExpiredData{e.TemplateID, items}})
	}
	return list
}

// Issued is one coupon that has become known to [OfIssued].
type Issued struct {
	TemplateID int64
	IssuedItem
}

// OfIssued returns the events of coupons that were issued, in parts of one
// template and at most [MaxItems] in the order of the list.
func OfIssued(coupons []Issued, at time.Time) (list []Event) {
	byTemplate := map[int64][]IssuedItem{}
	var order []int64
	for _, c := range coupons {
		if byTemplate[c.TemplateID] == nil {
			order = append(order, c.TemplateID)
		}
		byTemplate[c.TemplateID] = append(byTemplate[c.TemplateID], c.IssuedItem)
	}
	for _, id := range order {
		for part := range slices.Chunk(byTemplate[id], MaxItems) {
			list = append(list, Event{Type: CouponIssued, Subject: Drop(id), TemplateID: id, At: at, Items: len(part), Data: IssuedData{id, part}})
		}
	}
	return list
}

// ListIssued returns the payload for the bus of an event that [OfIssued] returned.
func ListIssued(e Event) event.IssuedList {
	data := e.Data.(IssuedData)
	list := event.IssuedList{TemplateID: data.TemplateID, Items: make([]event.OwnedCoupon, len(data.Items))}
	for i, c := range data.Items {
		list.Items[i] = event.OwnedCoupon{CouponID: c.CouponID, UserID: c.UserID}
	}
	return list
}

// OfDead returns the events of a batch's recipients without success.
func OfDead(d DeadData, at time.Time) (list []Event) {
	subject := Drop(d.TemplateID)
	if d.CampaignID != 0 {
		subject = "campaign/" + strconv.FormatInt(d.CampaignID, 10)
	}
	for part := range slices.Chunk(d.Items, MaxItems) {
		data := d
		data.Items = part
		list = append(list, Event{Type: DeliveryDead, Subject: subject, TemplateID: d.TemplateID, CampaignID: d.CampaignID, At: at, Items: len(part), Data: data})
	}
	return list
}

// OfCampaign returns the event of a campaign whose recipients all have an outcome.
func OfCampaign(d CampaignData) Event {
	return Event{Type: CampaignFinished, Subject: "campaign/" + strconv.FormatInt(d.CampaignID, 10), CampaignID: d.CampaignID, At: d.FinishedAt, Items: 1, Data: d}
}
