package stories

import (
	"math"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/testmessage"
	deliverypages "dropbell/views/pages/delivery"
	droppages "dropbell/views/pages/drops"
)

// cockpits are the pages about a drop while it takes place.
func cockpits() []Story {
	var all []Story
	for _, group := range [][]Story{liveTabs(), channels(), channelTests()} {
		all = append(all, group...)
	}
	return all
}

// status is every channel as it is on a good day, or on a bad one.
func status(trouble bool) [delivery.Channels]delivery.ChannelStatus {
	var all [delivery.Channels]delivery.ChannelStatus
	for i, c := range delivery.AllChannels() {
		all[i] = delivery.ChannelStatus{Setting: delivery.Setting{Channel: c}, Configured: c != delivery.Webhook, CircuitKnown: true,
			Circuit: delivery.Circuit{State: delivery.CircuitClosed}, Backlog: delivery.Backlog{Channel: c}}
	}
	all[delivery.SMS].RatePerSecond, all[delivery.SMS].Service = 500, "Tencent Cloud"
	all[delivery.SMS].Budget = delivery.ChannelBudget{PerDay: 20_000, Spent: 4_812, MicrosPerDay: 900_000_000, MicrosSpent: 216_540_000, Currency: "CNY"}
	all[delivery.Email].Provider = delivery.ProviderHealth{Calls: 4_120, Messages: 41_200, Mean: 84 * time.Millisecond, Slowest: 1240 * time.Millisecond}
	if trouble {
		all[delivery.Email].Paused, all[delivery.Email].PausedReason = true, "The mail provider announced maintenance until a quarter past eight"
		all[delivery.Email].PausedBy, all[delivery.Email].PausedAt = "Ada Okafor", Now().Add(-4*time.Minute)
		all[delivery.Email].Backlog = delivery.Backlog{Channel: delivery.Email, Batches: 42, People: 41_220, Oldest: 3 * time.Minute}
		all[delivery.SMS].Circuit = delivery.Circuit{State: delivery.CircuitOpen, Failures: 12, Until: Now().Add(9 * time.Second), Detail: "the provider answered HTTP 503"}
		all[delivery.SMS].Budget = delivery.ChannelBudget{PerDay: 20_000, Spent: 20_000, UsedUp: true}
		all[delivery.SMS].Provider = delivery.ProviderHealth{Calls: 120, Messages: 12_000, Failed: 9_400, Mean: 2300 * time.Millisecond, Slowest: 9800 * time.Millisecond, Error: "the provider answered HTTP 503"}
		all[delivery.Webhook].Configured, all[delivery.Webhook].Circuit.HeldUntil = true, Now().Add(40*time.Second)
		all[delivery.WebPush].CircuitKnown = false
	}
	return all
}

// lateness is a made-up one with so many messages.
func lateness(n int64) delivery.Lateness {
	l := delivery.Lateness{}
	for i, share := range []int64{0, 0, 1, 3, 9, 22, 30, 18, 9, 4, 2, 1, 1} {
		if v := n * share / 100; v > 0 {
			l[i] = v
		}
	}
	return l
}

// snapshotOf gives a board the details of a cockpit.
func snapshotOf(b reminder.Board, trouble bool) reminder.Cockpit {
	c := reminder.Cockpit{At: Now()}
	for _, r := range b.Rows {
		row := reminder.CockpitRow{Slot: r.Slot}
		for i, cell := range r.Cells {
			lane := reminder.Lane{Cell: cell}
			if r.FiredAt != nil {
				lane.Late, lane.Expected = lateness(cell.Sent), []float64{40_000, 900, 500, 700, 0}[i]
				if cell.InFlight == 0 {
					done := r.DueAt.Add(time.Duration(float64(cell.Reserved) / max(1, lane.Expected) * 1.1 * float64(time.Second)))
					lane.DoneAt = &done
				} else if trouble {
					lane.Failed = cell.InFlight / 2
				}
			}
			row.Lanes[i] = lane
		}
		c.Rows = append(c.Rows, row)
	}
	c.DeadLetters = b.DeadLetters
	if trouble {
		c.Sampled = true
		c.Causes = []reminder.Cause{
			{Channel: delivery.SMS, Outcome: delivery.Failed, Reason: delivery.ReasonProvider, Fingerprint: "the provider answered HTTP #", Sample: "the provider answered HTTP 503", People: 1533},
			{Channel: delivery.SMS, Outcome: delivery.Dead, Reason: delivery.ReasonRefused, Fingerprint: "unknown subscriber", Sample: "unknown subscriber: the number has not been in service since the spring, and this answer goes on for a while", People: 41},
			{Channel: delivery.Email, Outcome: delivery.Expired, Reason: delivery.ReasonDeadline, People: 7},
		}
	}
	return c
}

func pulse() reminder.Pulse {
	p := reminder.Pulse{}.Until(Now())
	for i := range 40 {
		to := Now().Add(-time.Duration(i) * reminder.PulseStep)
		for c, most := range []float64{42_000, 900, 480, 60} {
			n := int64(most * (0.6 + 0.4*math.Sin(float64(i)/3+float64(c))))
			p = p.Plus(reminder.Span{Channel: delivery.Channel(c), From: to.Add(-reminder.PulseStep), To: to, Sent: n})
		}
	}
	return p
}

func cockpit(t template.Template, users int64, trouble bool) droppages.Cockpit {
	b := board(t, users)
	b = deliver(b, trouble)
	p := droppages.Cockpit{Template: t, At: Now(), Sum: "a1b2c3", Snapshot: snapshotOf(b, trouble), Channels: status(trouble)}
	if p.Snapshot.Progress().InFlight > 0 { // messages sent long ago are no pulse any more
		p.Pulse = pulse()
	}
	return p
}

// watched is the live tab with a cockpit.
func watched(c droppages.Cockpit) droppages.Template {
	p := droppages.Template{Drop: droppages.Drop{Template: c.Template}, Tab: droppages.TabLive, Before: lastMonth(), Cockpit: &c}
	for _, r := range c.Snapshot.Rows {
		row := reminder.Row{Slot: r.Slot}
		for i, lane := range r.Lanes {
			row.Cells[i] = lane.Cell
		}
		p.Board.Rows = append(p.Board.Rows, row)
	}
	p.Wave = waveOf(p.Board)
	return p
}

// waveOf is the wave of the board's last slot.
func waveOf(b reminder.Board) *droppages.WaveCard {
	c := &droppages.WaveCard{Template: 1, Zone: shanghai()}
	var spans []reminder.Span
	for _, r := range b.Rows {
		if r.FiredAt == nil {
			continue
		}
		c.Slots, c.Chosen, spans = append(c.Slots, r), r, nil
		for i, rate := range []float64{9_000, 900, 480, 700, 0} {
			for left, at := r.Cells[i].Sent, r.DueAt; left > 0; at = at.Add(time.Second) {
				n := min(left, int64(rate*(0.7+0.3*math.Sin(at.Sub(r.DueAt).Seconds()/3))))
				spans = append(spans, reminder.Span{Channel: delivery.Channel(i), From: at, To: at.Add(time.Second), Sent: n})
				left -= n
			}
		}
	}
	c.Wave = reminder.WaveOf(spans)
	c.Minute, c.Later = reminder.MinuteOf(spans, c.Chosen.DueAt)
	return c
}

func liveTabs() []Story {
	quiet := cockpit(coupon(1, "Moon cake night", 9*time.Hour), 41_203, false)
	soon := cockpit(coupon(1, "Moon cake night: ¥20 off everything at Harbour Tea House", 9*time.Minute), 184_220, false)
	trouble := cockpit(coupon(1, "Moon cake night", 4*time.Minute), 184_220, true)
	trouble.Ahead = []forecast.Prognosis{{Job: forecast.Job{TemplateID: 1, Channel: delivery.SMS, Slot: 1, DueAt: Now().Add(-time.Minute), Messages: 8000},
		FinishAt: Now().Add(2 * time.Minute), Missed: 712}}
	open := cockpit(coupon(1, "Moon cake night", -20*time.Minute), 22_000, false)
	over := cockpit(coupon(1, "Moon cake night", -9*time.Hour), 22_000, false)
	over.Stored = template.Closed
	past := cockpit(coupon(1, "Afterthought", 9*time.Minute), 22_000, false)
	past.Snapshot = snapshotOf(late(deliver(board(past.Template, 22_000), false), 10), false)
	unused := cockpit(coupon(1, "Moon cake night", 61*time.Minute), 0, false)
	replayed, forgotten, unsold := watched(open), watched(over), watched(past)
	selling := watched(open)
	selling.Sales = salesOf(open.Template, 31_400, 0, 20).Sales
	unsold.Sales = salesOf(past.Template, 0, 0, 0).Sales
	replayed.Wave.Replay, forgotten.Wave.Wave = true, reminder.Wave{}
	return []Story{
		{Name: "cockpit/quiet", Page: watched(quiet).Page(), Role: staff.Viewer},
		{Name: "cockpit/soon", Page: watched(soon).Page(), Role: staff.Operator},
		{Name: "cockpit/trouble", Page: watched(trouble).Page(), Role: staff.Operator},
		{Name: "cockpit/open", Page: selling.Page(), Role: staff.Viewer},
		{Name: "cockpit/replay", Page: replayed.Page()},
		{Name: "cockpit/forgotten", Page: forgotten.Page()},
		{Name: "cockpit/over", Page: watched(over).Page()},
		{Name: "cockpit/past", Page: unsold.Page()},
		{Name: "cockpit/unused", Page: watched(unused).Page()},
	}
}

func channels() []Story {
	var none [delivery.Channels]delivery.ChannelStatus
	for i, c := range delivery.AllChannels() {
		none[i].Channel = c
	}
	return []Story{
		{Name: "channels/none", Page: deliverypages.Channels{Status: none}.Page()},
		{Name: "channels/good", Page: deliverypages.Channels{Status: status(false)}.Page(), Role: staff.Viewer},
		{Name: "channels/trouble", Page: deliverypages.Channels{Status: status(true)}.Page(), Role: staff.Operator},
		{Name: "channels/limited", Page: deliverypages.Channels{Status: status(true)}.Page(), Role: staff.Operator, Shops: []int64{10}},
	}
}

func channelTests() []Story {
	made := func(id int64, r testmessage.TestResult, detail string) testmessage.ChannelTest {
		return testmessage.ChannelTest{ID: id, Channel: delivery.Email, State: testmessage.TestDone, Result: r, Detail: detail, ByUser: id%2 == 0,
			Took: 340 * time.Millisecond, CreatedBy: "staff:2 Ada Okafor", CreatedAt: Now().Add(-time.Duration(9-id) * time.Minute)}
	}
	waiting := made(9, "", "")
	waiting.State, waiting.Took = testmessage.TestWaiting, 0
	list := []testmessage.ChannelTest{waiting, made(8, testmessage.TestDelivered, ""), made(7, testmessage.TestPermanent, "550 5.1.1 mailbox unavailable: the recipient’s server rejected this address"),
		made(6, testmessage.TestTransient, "timed out"), made(5, testmessage.TestThrottled, ""), made(4, testmessage.TestUnknown, "")}
	return []Story{
		{Name: "channel-test/empty", Page: deliverypages.ChannelTests{Channel: delivery.SMS, Configured: true}.Page()},
		{Name: "channel-test/many", Page: deliverypages.ChannelTests{Channel: delivery.Email, Configured: true, List: list}.Page(), Role: staff.Operator},
		{Name: "channel-test/refused", Page: deliverypages.ChannelTests{Channel: delivery.Email, Configured: true, Recipient: "lin@", Template: "77",
			Errors: []fault.Field{{Name: "recipient", Key: "rule.test_email", Message: "must be an e-mail address or the number of a customer"}, {Name: "template", Key: "rule.unknown_template", Message: "there is no such template"}}}.Page()},
		{Name: "channel-test/too-many", Page: deliverypages.ChannelTests{Channel: delivery.Webhook, Configured: true, Recipient: "1001", Error: "Too many test messages. Wait a moment."}.Page()},
		{Name: "channel-test/app", Page: deliverypages.ChannelTests{Channel: delivery.App, Configured: true}.Page()},
		{Name: "channel-test/none", Page: deliverypages.ChannelTests{Channel: delivery.WebPush}.Page()},
	}
}
