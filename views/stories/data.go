package stories

import (
	"fmt"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
)

func coupon(id int64, name string, opensIn time.Duration) template.Template {
	opens := Now().Add(opensIn)
	published := Now().Add(-72 * time.Hour)
	return template.Template{
		ID: id, ShopName: "Harbour Tea House", ShopTimezone: "Asia/Shanghai", Stored: template.Published, Version: 3,
		CreatedAt: published, UpdatedAt: published, PublishedAt: &published,
		Spec: template.Spec{ShopNumber: 10, Name: name, Description: "For the autumn festival.\nOne per person.",
			Kind: template.ThresholdOff, AmountOff: 2000, Threshold: 10000, Currency: "CNY", Target: template.WholeShop,
			Stock: 50_000, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(4 * time.Hour), ValidHours: 72,
			Obtain: template.ByClaim, ClaimMode: template.Durable, ClaimURL: "https://shop.example/claim/" + fmt.Sprint(id)},
	}
}

// board returns a board with realistic weights: most users choose few slots and the app. Doors with openings of
// their own have as many users each.
func board(t template.Template, users int64) reminder.Board {
	var b reminder.Board
	slotShare := [template.Slots + 1]float64{0, .62, .18, .21, .08, .05, .19, .02, .02, .01, .03, .01, .11}
	channelShare := [delivery.Channels]float64{.71, .34, .22, .09, 0}
	openings := t.Openings()
	for i, o := range openings {
		for s := template.Slot(template.Slots); s >= 1; s-- {
			r := reminder.Row{Slot: reminder.Slot{ID: int64(100*i + int(s)), TemplateID: t.ID, Slot: s, OpensAt: o.At, DueAt: s.DueAt(o.At), State: reminder.Waiting, Doors: o.Doors}}
			for c := range r.Cells {
				r.Cells[c] = reminder.Cell{Channel: delivery.Channel(c), Booked: int64(float64(users) * slotShare[s] * channelShare[c] / float64(len(openings)))}
			}
			b.Rows = append(b.Rows, r)
		}
	}
	slices.SortStableFunc(b.Rows, func(x, y reminder.Row) int { return x.DueAt.Compare(y.DueAt) })
	return b
}

// deliver lets every slot fire that is due.
func deliver(b reminder.Board, trouble bool) reminder.Board {
	for i := range b.Rows {
		r := &b.Rows[i]
		since := Now().Sub(r.DueAt)
		if since < 0 {
			continue
		}
		fired := r.DueAt.Add(40 * time.Millisecond)
		r.FiredAt, r.State = &fired, reminder.Finished
		if since < 3*time.Minute {
			r.State = reminder.Sending
		}
		for c := range r.Cells {
			cell := &r.Cells[c]
			cell.Counts = outcome(cell.Booked, r.State == reminder.Sending, trouble && c == int(delivery.SMS))
			b.DeadLetters += cell.Dead
			b.Opened += cell.Sent * 2 / 5
		}
	}
	return b
}

// late is a board that was published when its first slots were past.
func late(b reminder.Board, slots int) reminder.Board {
	for i := range b.Rows[:slots] {
		b.Rows[i].State, b.Rows[i].FiredAt = reminder.Passed, nil
		b.Rows[i].Cells = [delivery.Channels]reminder.Cell{}
		for c := range b.Rows[i].Cells {
			b.Rows[i].Cells[c].Channel = delivery.Channel(c)
		}
	}
	b.Opened = 0
	for _, c := range b.Totals() {
		b.Opened += c.Sent * 2 / 5
	}
	return b
}

func outcome(n int64, sending, trouble bool) delivery.Counts {
	c := delivery.Counts{Reserved: n, Skipped: n / 90}
	if trouble {
		c.Dead, c.Expired = n/12, n/20
	}
	if sending {
		c.InFlight = n / 3
	}
	c.Sent = n - c.Skipped - c.Dead - c.Expired - c.InFlight
	return c
}

func drop(id int64, name string, opensIn time.Duration, users int64) droppages.Drop {
	t := coupon(id, name, opensIn)
	return droppages.Drop{Template: t, Board: board(t, users)}
}

func growth(n int64) []reminder.Growth {
	var list []reminder.Growth
	for i := range int64(73) {
		share := float64(i) / 72
		list = append(list, reminder.Growth{At: Now().Add(-72*time.Hour + time.Duration(i)*time.Hour), Booked: int64(float64(n) * share * share * (3 - 2*share))})
	}
	return list
}

func records() []staff.Record {
	at := func(ago time.Duration) time.Time { return Now().Add(-ago) }
	return []staff.Record{
		{ID: 9, At: at(4 * time.Minute), Actor: "staff:2 Ada Okafor", Action: "template.move", ObjectKind: "template", ObjectID: "1", ShopNumber: 10,
			Before: []byte(`{"Name":"Moon cake night","OpensAt":"2026-11-20T11:30:00Z","Stock":50000}`), After: []byte(`{"Name":"Moon cake night","OpensAt":"2026-11-20T12:00:00Z","Stock":50000}`)},
		{ID: 8, At: at(3 * time.Hour), Actor: "staff:1 Lin Mei", Action: "template.publish", ObjectKind: "template", ObjectID: "1", Reason: "approved by the shop", Before: []byte(`"draft"`), After: []byte(`"published"`)},
		{ID: 7, At: at(5 * time.Hour), Actor: "key:3 checkout", Action: "template.create", ObjectKind: "template", ObjectID: "1", After: []byte(`{"Name":"Moon cake night","Stock":50000,"ClaimURL":""}`)},
		{ID: 6, At: at(26 * time.Hour), Actor: "system Dropbell", Action: "template.close", ObjectKind: "template", ObjectID: "12", Reason: staff.ReasonClosesAt},
		{ID: 5, At: at(50 * time.Hour), Actor: "staff:1 Lin Mei", Action: "key.create", ObjectKind: "key", ObjectID: "3", After: []byte(`{"name":"checkout","scopes":["payment"]}`)},
	}
}

func person(id user.ID) user.User {
	return user.User{ID: id, Name: "陈晓雨", Email: "xiaoyu@example.com", Phone: "+8613800138000", Locale: "zh-CN", Timezone: "Asia/Shanghai",
		OptOuts: delivery.WebPush.Bit(), Quiet: user.QuietHours{From: 22 * 60, To: 8 * 60}, Push: make([]user.PushSubscription, 2),
		Devices: []user.Device{{Platform: user.IOS, AppVersion: "5.2.1"}}}
}

func reservation(t template.Template, states map[reminder.Reminder]string) reminder.View {
	v := reminder.View{ShopNumber: t.ShopNumber, TemplateName: t.Name, OpensAt: t.OpensAt}
	v.TemplateID = t.ID
	for r, state := range states {
		v.Slots = v.Slots.Union(reminder.BitmapOf(r))
		_ = state
	}
	for _, r := range v.Slots.Reminders() {
		it := reminder.Item{Reminder: r, DueAt: r.DueAt(t.OpensAt), State: states[r]}
		switch delivery.Outcome(it.State) {
		case delivery.Skipped:
			it.Reason = delivery.ReasonOptedOut
		case delivery.Dead:
			it.Reason = delivery.ReasonTooManyTries
		}
		v.Items = append(v.Items, it)
	}
	return v
}

func views() []reminder.View {
	r := func(c delivery.Channel, minutes int) reminder.Reminder {
		s, _ := template.SlotOfMinutes(minutes)
		return reminder.Reminder{Channel: c, Slot: s}
	}
	soon := coupon(1, "Moon cake night", time.Minute)
	later := coupon(2, "Winter warm-up", 26*time.Hour)
	again := coupon(3, soon.Name, 25*time.Hour) // names may repeat
	return []reminder.View{
		reservation(again, map[reminder.Reminder]string{r(delivery.App, 10): "waiting"}),
		reservation(later, map[reminder.Reminder]string{r(delivery.App, 5): "waiting", r(delivery.Email, 60): "waiting"}),
		reservation(soon, map[reminder.Reminder]string{r(delivery.App, 60): "sent", r(delivery.App, 5): "sent", r(delivery.Email, 30): "recovered",
			r(delivery.SMS, 15): "dead", r(delivery.WebPush, 15): "skipped", r(delivery.SMS, 5): "due"}),
	}
}

func inboxPage() inbox.Page {
	soon := coupon(1, "Moon cake night", time.Minute)
	item := func(id string, minutes int, ago time.Duration, read bool) inbox.Message {
		s, _ := template.SlotOfMinutes(minutes)
		return inbox.Message{ID: id, TemplateID: 1, ShopNumber: 10, Kind: delivery.KindReminder, Slot: s, OpensAt: soon.OpensAt,
			DueAt: s.DueAt(soon.OpensAt), At: Now().Add(-ago), Name: soon.Name, ClaimURL: soon.ClaimURL, Read: read,
			Title: soon.Name, Text: fmt.Sprintf("Opens in %d minutes at Harbour Tea House: ¥20 off everything.", minutes)}
	}
	box := inbox.Page{UserID: 1001, Unread: 1, Items: []inbox.Message{item("b", 5, 4*time.Minute, false), item("a", 60, 59*time.Minute, true)}}
	for i := range 8 { // more than there is room for
		box.Items = append(box.Items, item(fmt.Sprint("c", i), 60, time.Duration(i+1)*24*time.Hour, true))
	}
	return box
}

// refusals are security events.
func refusals() []staff.Record {
	at := Now()
	return []staff.Record{
		{ID: 9, At: at, Actor: "unknown", Action: "security.sign_in_refused", ObjectKind: "address", ObjectID: "198.51.100.66", After: []byte(`{"count": 412, "since": "2026-11-20T11:59:50Z"}`), Address: "198.51.100.66", RequestID: "7Q2K9ZD4"},
		{ID: 8, At: at, Actor: "staff:2 Ada Okafor", Action: "security.access_denied", ObjectKind: "address", ObjectID: "2001:db8::7", After: []byte(`{"count": 1, "detail": "POST /staff", "since": "2026-11-20T11:59:50Z"}`), Address: "2001:db8::7", RequestID: "7Q2K9ZD5"},
		{ID: 7, At: at, Actor: "key:3 app backend", Action: "security.acted_as_user", ObjectKind: "address", ObjectID: "203.0.113.20", After: []byte(`{"count": 18230, "detail": "POST /reservations", "since": "2026-11-20T11:59:50Z"}`), Address: "203.0.113.20", RequestID: "7Q2K9ZD6"},
		{ID: 6, At: at, Actor: "staff:4 Noor Haddad", Action: "queue.pause", ObjectKind: "queue", ObjectID: "email", After: []byte(`{"request": "POST queues/email:pause"}`), Address: "203.0.113.21", RequestID: "7Q2K9ZD7"},
	}
}
