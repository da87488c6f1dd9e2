package forecast

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/figure"
	"dropbell/domain/template"
)

// The costs of one unit of work in time of one processor core, from the table "What each process
// carries" of docs/scale.md. A test compares them with the table. Costs that were measured for
// several processes together are used whole, so that the result is rather too high.
const (
	claimCost    = 40 * time.Microsecond         // web: a claim over HTTP
	pageCost     = 244 * time.Microsecond        // web: a page of the inbox
	gateCost     = 27 * time.Microsecond         // worker, role gate: a claim behind the gate that is written
	reminderCost = 1900 * time.Nanosecond        // worker, role delivery: a reminder over the app channel
	messageCost  = 6100 * time.Nanosecond        // worker, role delivery: a message to a provider
	planned      = 0.6                           // of a core, as in the worksheet of docs/scale.md
	leastForWork = 2                             // processes of each kind, so that one may fail
	rush         = 10 * time.Second              // in which the customers of an opening come
	taps         = 5 * time.Minute               // in which the readers of a reminder open their inbox
	recorded     = 10 * time.Second              // in which the app's messages of one instant are to be recorded
	afterOpening = time.Minute                   // for which the processes of an opening stay wanted
	mostExpected = float64(math.MaxInt64 / 1024) // bounds a product with a factor of the caller
)

// ClaimsPerSecond returns about how many claims a second the cores of one machine answer.
func ClaimsPerSecond(cores int) float64 { return float64(cores) / claimCost.Seconds() }

// CapacityAhead is how long before a load its processes are wanted. Starting a process takes less;
// a new machine of a cluster takes most of it.
const CapacityAhead = 15 * time.Minute

// A Target is a number of processes that are wanted.
type Target string

// The targets: web, and worker by role. Other roles do work whose amount does not depend on the
// number of customers.
const (
	TargetWeb      Target = "web"
	TargetDelivery Target = "delivery"
	TargetGate     Target = "gate"
)

// LoadKind says what makes a load.
type LoadKind string

// The kinds of loads.
const (
	LoadOpening  LoadKind = "opening"
	LoadReminder LoadKind = "reminder"
	LoadCampaign LoadKind = "campaign"
)

// A DropAhead is a published drop that opens soon or has just opened.
type DropAhead struct {
	TemplateID int64
	Name       string
	Timezone   string // of the drop's shop
	OpensAt    time.Time
	// Reserved is about how many customers have reserved reminders of the drop.
	Reserved int64
	// Gate says that the claim gate decides claims; Left is the stock that is not issued.
	Gate bool
	Left int64
	// Door names the doors that open at OpensAt; empty = the drop opens for all users.
	Door string
}

// Openings returns an entry for each instant from from to until at which doors of t open, with the customers who come
// through them: each is a rush of its own. d is about t as a whole; without doors the result is d alone. Doors whose part
// of the reservations is not estimated yet count with as many customers as they have members, or with all.
func (d DropAhead) Openings(t template.Template, from, until time.Time) (list []DropAhead) {
	for _, o := range t.Openings() {
		if o.At.Before(from) || o.At.After(until) {
			continue
		}
		one := d
		one.OpensAt = o.At
		if o.Doors != template.AllDoors {
			one.Reserved, one.Door = d.through(t, o.Doors)
			one.Left = min(d.Left, max(0, t.SellableAt(o.At)-t.Issued))
		}
		list = append(list, one)
	}
	return list
}

// through returns how many customers come through the doors of the set, and their names.
func (d DropAhead) through(t template.Template, set template.DoorSet) (customers int64, names string) {
	for i, door := range t.Doors {
		if !set.Has(i + 1) {
			continue
		}
		if names != "" {
			names += " / "
		}
		names += door.Name
		switch {
		case door.Booked != nil:
			customers += d.Reserved * int64(*door.Booked) / 1000
		case door.FrozenAt != nil && door.Who != template.ToAll:
			customers += min(d.Reserved, door.Members)
		default:
			customers += d.Reserved
		}
	}
	return min(customers, d.Reserved), names
}

// A SlotAhead is the app's messages of a slot that is due soon or was due just now.
type SlotAhead struct {
	TemplateID int64
	Name       string
	Timezone   string
	DueAt      time.Time
	Messages   int64
}

// A CampaignAhead is a campaign that starts soon or has just started.
type CampaignAhead struct {
	ID       int64
	Name     string
	Timezone string // of the campaign's shop; empty = it belongs to no shop
	Channel  delivery.Channel
	StartsAt time.Time
	// PerSecond is the rate that staff have set; 0 = the channel's rate.
	PerSecond int64
	// Messages is about how many users of the audience have a contact.
	Messages int64
}

// Ahead is everything that will load the programs soon.
type Ahead struct {
	Drops     []DropAhead
	Slots     []SlotAhead
	Campaigns []CampaignAhead
	Channels  []ChannelForecast
}

// Process describes the processes that are counted.
type Process struct {
	// WebCores and WorkerCores are the cores of one process.
	WebCores, WorkerCores float64
	// PerReservation is how many requests an opening brings for each customer who has reserved.
	PerReservation float64
}

// A Load is work for a target in an interval.
type Load struct {
	Kind     LoadKind
	ID       int64 // of the template or campaign
	Name     string
	Door     string // see [DropAhead]
	Timezone string
	At       time.Time // when the drop opens, the reminder is due or the campaign starts
	Until    time.Time // to which the load counts
	Channel  delivery.Channel
	Expected int64   // customers or messages
	Rate     float64 // units of work per second
	Target   Target
	Cores    float64 // that are busy by Rate
}

// Text says why the processes are wanted, such as "drop 42 opens at 20:00, 310,000 expected", with
// the time of the shop.
func (l Load) Text() string {
	zone, err := time.LoadLocation(l.Timezone)
	if err != nil {
		zone = time.UTC
	}
	at, n := l.At.In(zone).Format("15:04"), figure.Grouped(l.Expected)
	switch l.Kind {
	case LoadOpening:
		if l.Door != "" {
			return fmt.Sprintf("drop %d opens at %s for %s, %s expected", l.ID, at, l.Door, n)
		}
		return fmt.Sprintf("drop %d opens at %s, %s expected", l.ID, at, n)
	case LoadReminder:
		return fmt.Sprintf("%s reminders of drop %d by %s are due at %s", n, l.ID, l.Channel, at)
	}
	return fmt.Sprintf("campaign %d starts at %s, %s messages by %s", l.ID, at, n, l.Channel)
}

// A Capacity is how many processes are wanted now.
type Capacity struct {
	Web int
	// Worker is the number of workers with all roles. Delivery and Gate are the numbers of workers
	// with only that role.
	Worker, Delivery, Gate int
	// Until is the instant up to which loads were considered.
	Until time.Time
	// Loads are all loads until then, the greatest first; Web and the others follow from the loads
	// that coincide.
	Loads []Load
}

// CapacityFor returns the processes that are wanted at now for the loads of the next
// [CapacityAhead]. For each target it is the greatest sum of loads at one instant, not the sum of
// all loads. Without load leastForWork processes are wanted.
func CapacityFor(a Ahead, p Process, now time.Time) Capacity {
	c := Capacity{Until: now.Add(CapacityAhead)}
	for _, l := range slices.Concat(openings(a.Drops, p.PerReservation), slots(a), campaigns(a)) {
		if l.Rate > 0 && l.Until.After(now) && !l.At.After(c.Until) {
			c.Loads = append(c.Loads, l)
		}
	}
	slices.SortStableFunc(c.Loads, func(a, b Load) int {
		switch {
		case a.Cores > b.Cores:
			return -1
		case a.Cores < b.Cores:
			return 1
		}
		return a.At.Compare(b.At)
	})
	c.Web = processes(c.peak(TargetWeb), p.WebCores)
	c.Delivery = processes(c.peak(TargetDelivery), p.WorkerCores)
	c.Gate = processes(c.peak(TargetGate), p.WorkerCores)
	c.Worker = processes(c.peak(TargetDelivery, TargetGate), p.WorkerCores)
	return c
}

// peak returns the greatest number of busy cores at one instant. A sum can only be greatest where
// a load begins.
func (c Capacity) peak(targets ...Target) (most float64) {
	for _, begin := range c.Loads {
		var sum float64
		for _, l := range c.Loads {
			if slices.Contains(targets, l.Target) && !l.At.After(begin.At) && l.Until.After(begin.At) {
				sum += l.Cores
			}
		}
		most = max(most, sum)
	}
	return most
}

func processes(cores, each float64) int {
	return max(leastForWork, int(math.Ceil(min(cores/planned/each, math.MaxInt32)-1e-9)))
}

// openings are the claims at openings: the customers who reserved come within rush.
func openings(drops []DropAhead, perReservation float64) (list []Load) {
	for _, d := range drops {
		expected := int64(min(float64(d.Reserved)*perReservation+0.5, mostExpected))
		l := Load{Kind: LoadOpening, ID: d.TemplateID, Name: d.Name, Door: d.Door, Timezone: d.Timezone, At: d.OpensAt, Until: d.OpensAt.Add(afterOpening), Expected: expected}
		list = append(list, l.of(TargetWeb, float64(expected)/rush.Seconds(), claimCost))
		if d.Gate {
			list = append(list, l.of(TargetGate, float64(min(expected, d.Left))/rush.Seconds(), gateCost))
		}
	}
	return list
}

// slots are the deliveries of reminders, and the inbox pages that readers of the app's messages open.
func slots(a Ahead) (list []Load) {
	for _, s := range a.Slots {
		l := Load{Kind: LoadReminder, ID: s.TemplateID, Name: s.Name, Timezone: s.Timezone, At: s.DueAt, Channel: delivery.App, Expected: s.Messages}
		list = append(list, l.app()...)
	}
	for _, c := range a.Channels {
		for _, j := range c.Jobs {
			if c.Channel == delivery.App || j.Messages == 0 {
				continue
			}
			l := Load{Kind: LoadReminder, ID: j.TemplateID, Name: j.Name, Timezone: j.ShopTimezone, At: j.StartAt, Until: j.FinishAt.Add(time.Second), Channel: c.Channel, Expected: j.Messages}
			list = append(list, l.of(TargetDelivery, min(c.Rate.PerSecond, float64(j.Messages)), messageCost))
		}
	}
	return list
}

// campaigns are the deliveries of campaigns, and the inbox pages that readers of the app's messages open.
func campaigns(a Ahead) (list []Load) {
	for _, c := range a.Campaigns {
		l := Load{Kind: LoadCampaign, ID: c.ID, Name: c.Name, Timezone: c.Timezone, At: c.StartsAt, Channel: c.Channel, Expected: c.Messages}
		if c.Channel == delivery.App && c.PerSecond == 0 {
			list = append(list, l.app()...)
			continue
		}
		rate := AssumedRate(c.Channel).PerSecond
		if i := slices.IndexFunc(a.Channels, func(f ChannelForecast) bool { return f.Channel == c.Channel }); i >= 0 {
			rate = a.Channels[i].Rate.PerSecond
		}
		if c.PerSecond > 0 {
			rate = min(rate, float64(c.PerSecond))
		}
		rate, cost := min(rate, float64(c.Messages)), messageCost
		if c.Channel == delivery.App {
			cost = reminderCost
			l.Until = c.StartsAt.Add(taps)
			list = append(list, l.of(TargetWeb, min(rate, float64(c.Messages)/taps.Seconds()), pageCost))
		}
		if rate > 0 {
			l.Until = c.StartsAt.Add(time.Duration(min(float64(c.Messages)/rate, 1e8) * float64(time.Second)))
		}
		list = append(list, l.of(TargetDelivery, rate, cost))
	}
	return list
}

// app returns the loads of messages of the app that are due at one instant.
func (l Load) app() []Load {
	delivered, opened := l, l
	delivered.Until, opened.Until = l.At.Add(afterOpening), l.At.Add(taps)
	return []Load{delivered.of(TargetDelivery, float64(l.Expected)/recorded.Seconds(), reminderCost), opened.of(TargetWeb, float64(l.Expected)/taps.Seconds(), pageCost)}
}

// of returns the load with a rate for a target.
func (l Load) of(target Target, rate float64, cost time.Duration) Load {
	l.Target, l.Rate, l.Cores = target, rate, rate*cost.Seconds()
	return l
}

// CapacityStore reads what will load the programs.
type CapacityStore interface {
	// DropsAhead returns the openings between the instants of published drops and of their doors, and SlotsAhead the
	// slots that are due between them.
	DropsAhead(ctx context.Context, from, until time.Time) ([]DropAhead, error)
	SlotsAhead(ctx context.Context, from, until time.Time) ([]SlotAhead, error)
}

// Capacities computes how many processes are wanted.
type Capacities struct {
	Store      CapacityStore
	Forecaster *Forecaster
	// Campaigns returns the campaigns that start between the instants.
	Campaigns func(ctx context.Context, from, until time.Time) ([]CampaignAhead, error)
	Now       func() time.Time
}

// Capacity returns how many processes are wanted now.
func (s *Capacities) Capacity(ctx context.Context, p Process) (Capacity, error) {
	now := s.Now()
	from, until := now.Add(-taps), now.Add(CapacityAhead)
	var a Ahead
	var err error
	if a.Drops, err = s.Store.DropsAhead(ctx, from, until); err != nil {
		return Capacity{}, err
	}
	if a.Slots, err = s.Store.SlotsAhead(ctx, from, until); err != nil {
		return Capacity{}, err
	}
	if a.Campaigns, err = s.Campaigns(ctx, from, until); err != nil {
		return Capacity{}, err
	}
	if a.Channels, err = s.Forecaster.Forecast(ctx, CapacityAhead); err != nil {
		return Capacity{}, err
	}
	return CapacityFor(a, p, now), nil
}
