package past

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// made is a drop that is being stored.
type made struct {
	plan
	*history
	tx        pgx.Tx
	r         *rand.Rand
	id        int64
	published time.Time
	closes    time.Time
	known     []person // at the publication
	bookers   []booker
	coupons   []owned
	campaign  *madeCampaign
	failing   int64 // the provider that fails; 0 = the environment's
}

// booker is a user with a reservation of the drop.
type booker struct {
	person
	slots reminder.Bitmap
	at    time.Time
	// heard is how the user was first told of the drop: the message whose link was followed.
	heard *heard
}

// heard is a link that was followed.
type heard struct {
	slot    template.Slot
	channel delivery.Channel
	at      time.Time
}

const insertTemplate = `
insert into templates (shop_number, name, kind, amount_off, threshold, percent_off, max_off, currency, target, stock, per_user_limit, opens_at, closes_at,
    valid_hours, obtain, claim_mode, state, version, request_key, created_at, updated_at, published_at, ended_at, notify_days)
values (@shop, @name, @kind, @amount, @threshold, @percent, @max, @currency, @target, @stock, 1, @opens, @closes,
    @valid, 'claim', 'durable', @state, @version, 'demo: ' || @key, @created, @updated, @published, @ended, @notify)
returning id`

// storeDrop stores a drop with its reservations, deliveries, coupons, orders and campaign.
func (h *history) storeDrop(ctx context.Context, tx pgx.Tx, p plan) error {
	d := &made{plan: p, history: h, tx: tx, r: random(p.Key)}
	y, m, day := h.now.In(h.zone).AddDate(0, 0, -p.Days).Date()
	d.OpensAt = time.Date(y, m, day, p.Hour, 0, 0, 0, h.zone)
	d.published = d.OpensAt.Add(-time.Duration(3+d.r.IntN(3))*24*time.Hour - time.Duration(d.r.IntN(600))*time.Minute)
	d.closes = d.OpensAt.Add(p.Open)
	for _, one := range h.people {
		if one.since.Before(d.published) {
			d.known = append(d.known, one)
		}
	}
	if err := d.storeTemplate(ctx); err != nil {
		return err
	}
	d.book()
	for _, part := range []func(context.Context) error{d.storeReservations, d.storeSlots, d.beginCampaign, d.storeCoupons, d.storeOrders, d.endCampaign, d.storeAudit} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *made) storeTemplate(ctx context.Context) error {
	state, version, updated, ended := template.Closed, 3, d.closes, &d.closes
	if d.Selling {
		state, version, updated, ended = template.Published, 2, d.published, nil
	}
	if d.Paused[1] > 0 {
		version += 2
		updated = later(updated, d.OpensAt.Add(d.Paused[1]))
	}
	notify := 0
	if d.OpensAt.Add(time.Duration(d.ValidHours) * time.Hour).After(d.now) {
		notify = 1<<1 | 1<<3
	}
	return d.tx.QueryRow(ctx, insertTemplate, pgx.StrictNamedArgs{"shop": d.ShopNumber, "name": d.Name, "kind": d.Kind, "amount": d.AmountOff,
		"threshold": d.Threshold, "percent": d.PercentOff, "max": d.MaxOff, "currency": d.Currency, "target": d.Target, "stock": d.Stock,
		"opens": d.OpensAt, "closes": d.closes, "valid": d.ValidHours, "state": state, "version": version, "key": d.Key,
		"created": d.published.Add(-time.Hour), "updated": updated, "published": d.published, "ended": ended, "notify": notify}).Scan(&d.id)
}

// How often a channel, a slot and a number of reminders is chosen.
var (
	channelShares = [delivery.Channels]int{delivery.App: 46, delivery.Email: 28, delivery.SMS: 14, delivery.Webhook: 3, delivery.WebPush: 9}
	slotShares    = [template.Slots]int{34, 24, 12, 6, 2, 12, 1, 2, 4, 1, 1, 7}
	amountShares  = [3]int{58, 30, 12}
)

// choose returns an index of shares, each as often as its share.
func choose(r *rand.Rand, shares []int) int {
	sum := 0
	for _, n := range shares {
		sum += n
	}
	at := r.IntN(sum)
	for i, n := range shares {
		if at -= n; at < 0 {
			return i
		}
	}
	return len(shares) - 1
}

// book draws the users who reserve, and their reminders. Most reserve soon after the publication
// or in the last hours.
func (d *made) book() {
	for _, i := range d.r.Perm(len(d.known))[:min(d.Bookers, len(d.known))] {
		b := booker{person: d.known[i]}
		first := template.Slots
		for range choose(d.r, amountShares[:]) + 1 {
			next := reminder.Reminder{Channel: delivery.Channel(choose(d.r, channelShares[:])), Slot: template.Slot(choose(d.r, slotShares[:]) + 1)}
			if next.Channel == delivery.WebPush && !b.devices {
				next.Channel = delivery.App
			}
			b.slots = b.slots.Union(reminder.BitmapOf(next))
			first = min(first, template.Slots-int(next.Slot))
		}
		last := d.OpensAt.Add(-62 * time.Minute)
		span := float64(last.Sub(d.published))
		share := math.Pow(d.r.Float64(), 2.2) // soon after the publication
		if d.r.Float64() < .45 {
			share = 1 - math.Pow(d.r.Float64(), 3)*.4 // towards the end
		}
		b.at = d.published.Add(time.Duration(share * span)).Truncate(time.Microsecond)
		d.bookers = append(d.bookers, b)
	}
	slices.SortFunc(d.bookers, func(a, b booker) int { return a.at.Compare(b.at) })
}

// storeReservations stores the reservations and the counters that event handlers keep of them.
func (d *made) storeReservations(ctx context.Context) error {
	rows := &table{name: "reservations", columns: []string{"template_id", "user_id", "slots", "created_at", "updated_at"}}
	booked := &table{name: "bookings", columns: []string{"template_id", "slot", "channel", "booked"}}
	growth := &table{name: "booking_growth", columns: []string{"template_id", "minute", "delta"}}
	var sums [template.Slots][delivery.Channels]int64
	var minutes []time.Time
	deltas := map[time.Time]int64{}
	for _, b := range d.bookers {
		rows.add(d.id, b.id, b.slots.Int64(), b.at, b.at)
		for _, one := range b.slots.Reminders() {
			sums[one.Slot-1][one.Channel]++
		}
		minute := b.at.Truncate(time.Minute)
		if deltas[minute] == 0 {
			minutes = append(minutes, minute)
		}
		deltas[minute] += int64(b.slots.Len())
	}
	for s := range sums {
		for c, n := range sums[s] {
			booked.add(d.id, int16(s+1), int16(c), n)
		}
	}
	for _, minute := range minutes {
		growth.add(d.id, minute, deltas[minute])
	}
	return store(ctx, d.tx, rows, booked, growth)
}

// storeAudit stores what staff did.
func (d *made) storeAudit(ctx context.Context) error {
	who := d.member()
	rows := &table{name: "audit", columns: []string{"at", "actor", "action", "object_kind", "object_id", "shop_number", "reason", "before", "after"}}
	id := idText(d.id)
	rows.add(d.published.Add(-time.Hour), who, "template.create", "template", id, d.ShopNumber, "", nil, `{"state": "draft"}`)
	rows.add(d.published, who, "template.publish", "template", id, d.ShopNumber, "", `{"state": "draft"}`, `{"state": "published"}`)
	if d.Paused[1] > 0 {
		rows.add(d.OpensAt.Add(d.Paused[0]), who, "template.pause", "template", id, d.ShopNumber, "the till shows the wrong price / 收银台价格有误", `"published"`, `"paused"`)
		rows.add(d.OpensAt.Add(d.Paused[1]), who, "template.resume", "template", id, d.ShopNumber, "the price is right again / 价格已更正", `"paused"`, `"published"`)
	}
	if c := d.campaign; c != nil {
		object := idText(c.ID)
		rows.add(c.StartsAt.Add(-3*time.Hour), who, "campaign.create", "campaign", object, d.ShopNumber, "", nil, `{"state": "draft"}`)
		rows.add(c.StartsAt.Add(-2*time.Hour), who, "campaign.publish", "campaign", object, d.ShopNumber, "", `{"state": "draft"}`, `{"state": "scheduled"}`)
	}
	if !d.Selling {
		rows.add(d.closes, "system Dropbell", "template.close", "template", id, d.ShopNumber, staff.ReasonClosesAt, `{"state": "published"}`, `{"state": "closed"}`)
	}
	return store(ctx, d.tx, rows)
}
