package past

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// storeSlots stores the slots, their deliveries and the links that were followed.
func (d *made) storeSlots(ctx context.Context) error {
	if d.Failing != nil && *d.Failing == delivery.SMS {
		if err := d.tx.QueryRow(ctx, `select id from providers where request_key = $1`, providerKey).Scan(&d.failing); err != nil {
			return err
		}
	}
	ids, err := nextIDs(ctx, d.tx, "slots", template.Slots)
	if err != nil {
		return err
	}
	slots := &table{name: "slots", columns: []string{"id", "template_id", "slot", "opens_at", "due_at", "state", "fired_at", "cut_at", "finished_at"}}
	results := &table{name: "slot_results", columns: []string{"slot_id", "channel", "reserved", "sent", "skipped", "expired", "dead", "late", "done_at", "expected"}}
	forecasts := &table{name: "slot_forecasts", columns: []string{"slot_id", "channel", "opens_at", "made_at", "booked", "messages", "missed", "per_second", "finish_at"}}
	rates := &table{name: "channel_rates", columns: []string{"channel", "at", "per_second", "messages"}}
	o := d.outbound()
	parts := int64(0)
	for k := template.Slot(template.Slots); k >= 1; k-- {
		id, due := ids[template.Slots-k], d.OpensAt.Add(-time.Duration(k)*5*time.Minute)
		end := due.Add(200 * time.Millisecond)
		for c := delivery.Channel(0); int(c) < delivery.Channels; c++ {
			line := d.sendSlot(o, id, k, c, due)
			end = later(end, line.finished)
			results.add(id, int16(c), line.Reserved, line.Sent, line.Skipped, line.Expired, line.Dead, line.late(), line.done(), pace[c].rate)
			if line.Reserved == 0 {
				continue
			}
			messages := line.Reserved - line.Skipped
			forecasts.add(id, int16(c), d.OpensAt, due.Add(-time.Minute), line.Reserved, messages, int64(0), pace[c].rate,
				due.Add(pace[c].first+time.Duration(float64(messages)/pace[c].rate*float64(time.Second))))
			if took := line.finished.Sub(due); line.Sent >= 20 {
				rates.add(int16(c), line.finished, float64(line.Sent)/took.Seconds(), line.Sent)
			}
			if c == delivery.SMS {
				parts += line.Sent
			}
		}
		slots.add(id, d.id, int16(k), d.OpensAt, due, "finished", due.Add(8*time.Millisecond), due.Add(60*time.Millisecond), end.Add(50*time.Millisecond))
	}
	if err := store(ctx, d.tx, slots, results, forecasts, rates); err != nil {
		return err
	}
	if err := o.store(ctx); err != nil {
		return err
	}
	if _, err := d.tx.Exec(ctx, `insert into sms_spent_drops (template_id, parts) values ($1, $2)`, d.id, parts); err != nil {
		return err
	}
	if err := d.storeParts(ctx, "sms_drop_costs (template_id,", d.id, parts, d.OpensAt); err != nil {
		return err
	}
	return d.storeOpenings(ctx)
}

// slotLine is the result of a slot on a channel.
type slotLine struct {
	delivery.Counts
	finished time.Time
	spans    map[string]int64
}

// late is the stored form of the lateness; nothing if nothing was sent.
func (l slotLine) late() any {
	if len(l.spans) == 0 {
		return nil
	}
	return l.spans
}

func (l slotLine) done() any {
	if l.Reserved == 0 {
		return nil
	}
	return l.finished
}

// sendSlot delivers the reminders of a slot on a channel.
func (d *made) sendSlot(o *outbound, id int64, k template.Slot, c delivery.Channel, due time.Time) slotLine {
	known := map[int64]*booker{}
	var users []int64
	for i := range d.bookers {
		if d.bookers[i].slots.Has(reminder.Reminder{Channel: c, Slot: k}) {
			users = append(users, d.bookers[i].id)
			known[d.bookers[i].id] = &d.bookers[i]
		}
	}
	line := slotLine{spans: map[string]int64{}}
	for _, b := range o.send(sending{kind: delivery.KindReminder, owner: id, channel: c, due: due, deadline: d.OpensAt, users: users,
		outcome: func(u int64) outcome { return d.outcomeOf(c, k, known[u].person) }}) {
		line.Counts, line.finished = line.Plus(b.counts), later(line.finished, b.finished)
		if b.counts.Sent > 0 {
			line.spans[idText(int64(b.step))] += b.counts.Sent
		}
		for it := b.sent.Iterator(); c.Tracks() && it.HasNext(); {
			u := known[int64(it.Next())]
			if u.heard == nil && d.r.Float64() < follows[c] {
				u.heard = &heard{k, c, b.finished.Add(time.Duration(20+d.r.ExpFloat64()*140) * time.Second)}
			}
		}
	}
	return line
}

// storeOpenings stores the followed links and their counts.
func (d *made) storeOpenings(ctx context.Context) error {
	rows := &table{name: "drop_openings", columns: []string{"template_id", "user_id", "slot", "channel", "opened_at"}}
	counts := &table{name: "drop_opening_counts", columns: []string{"template_id", "channel", "opened"}}
	var sums [delivery.Channels]int64
	for _, b := range d.bookers {
		if b.heard != nil {
			rows.add(d.id, b.id, int16(b.heard.slot), int16(b.heard.channel), b.heard.at)
			sums[b.heard.channel]++
		}
	}
	for c, n := range sums {
		if n > 0 {
			counts.add(d.id, int16(c), n)
		}
	}
	return store(ctx, d.tx, rows, counts)
}

// storeParts stores how many parts of text messages were handed over at an instant for an owner, and
// their cost. costs begins the list of columns of the owner's table.
func (d *made) storeParts(ctx context.Context, costs string, owner, parts int64, at time.Time) error {
	if parts == 0 {
		return nil
	}
	if _, err := d.tx.Exec(ctx, `insert into `+costs+` hour, currency, parts, micros) values ($1, date_trunc('hour', $2::timestamptz, 'utc'), 'CNY', $3, $3 * $4::bigint)`, owner, at, parts, partMicros); err != nil {
		return err
	}
	_, err := d.tx.Exec(ctx, `insert into sms_spent as s (day, parts, micros) values ($1, $2, $2 * $3::bigint)
		on conflict (day) do update set parts = s.parts + excluded.parts, micros = s.micros + excluded.micros`, at.UTC().Format(time.DateOnly), parts, partMicros)
	return err
}

// partMicros is the price of a part of a text message, as SMSPrices has it, in millionths.
const partMicros = 45_000

// SMSPrices is the price list of the demo, in the form of SMS_PRICES.
const SMSPrices = "*=0.045 CNY"
