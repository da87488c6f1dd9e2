package demo

import (
	"context"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"time"

	"dropbell/domain/pause"
)

// menu are the drops that open one after another while the demo runs: the first by
// [Client.AddSoon], and the others by [Client.AddNext] in turn.
var menu = []coupon{
	{Name: "满 100 减 30 · Lunch rush", Kind: "threshold_off", AmountOff: 3000, Threshold: 10000, Stock: 1200, Group: "lunch", With: "breakfast"},
	{Name: "下午茶 8 折 · Afternoon break, 20 % off", Kind: "percent_off", PercentOff: 20, MaxOff: 3000, Stock: 300, ClaimMode: "gate"},
	{Name: "夜宵立减 15 元 · Late bites, ¥15 off", Kind: "amount_off", AmountOff: 1500, Stock: 240},
	{Name: "满 60 减 12 · Second cup", Kind: "threshold_off", AmountOff: 1200, Threshold: 6000, Stock: 360},
}

const (
	// every is the time between the openings of the drops that follow the first.
	every = 20 * time.Minute
	// notice is the least time from the publication of such a drop to its opening: enough for the
	// reminders of five minutes.
	notice = 8 * time.Minute
	// remindedLive is how many users have a reminder of such a drop.
	remindedLive = 450
)

// SoonSpread is how the reservations of the first drop fall.
var SoonSpread = Spread{Users: 3000, FiveMinutes: true}

// nextOpening returns the first opening of the timetable that leaves time for reminders.
func nextOpening(now time.Time) time.Time { return now.Add(notice + every - 1).Truncate(every) }

// AddNext makes the next drop of the timetable.
func (c *Client) AddNext(ctx context.Context, now time.Time) (Drop, error) {
	opens := nextOpening(now)
	k := menu[1+opens.Unix()/int64(every/time.Second)%int64(len(menu)-1)]
	k.OpensAt, k.Open = opens, 2*time.Hour
	return c.publish(ctx, k)
}

// Live keeps the demo alive while it runs: crowds come to its drops as they open, and a drop
// follows when no other is ahead.
type Live struct {
	Crowd
	// Moderately is the name of drops to which a moderate crowd comes.
	Moderately string
	// CampaignLink returns the address in a campaign's message to a user; nil = no links of campaigns are followed.
	CampaignLink func(campaign, user int64, variant int) string
	// Say is called with what happens.
	Say func(format string, args ...any)

	followed, came map[string]bool // by the drop's id
	tested         test
}

// lookEvery is the time between two looks for drops that open.
const lookEvery = 3 * time.Second

// Run returns when ctx has ended and no shopper is under way. A failure is told and tried again.
func (l *Live) Run(ctx context.Context) {
	l.followed, l.came = map[string]bool{}, map[string]bool{}
	var crowds sync.WaitGroup
	defer crowds.Wait()
	for n := 0; ; n++ {
		if err := l.look(ctx, time.Now(), &crowds); err != nil && ctx.Err() == nil {
			l.Say("the demo's crowd: %v", err)
		}
		if n%20 == 0 {
			if err := l.ahead(ctx, time.Now()); err != nil && ctx.Err() == nil {
				l.Say("the demo's next drop: %v", err)
			}
		}
		if n%4 == 0 {
			if err := l.read(ctx, time.Now()); err != nil && ctx.Err() == nil {
				l.Say("the readers of the demo's campaign: %v", err)
			}
		}
		if !pause.For(ctx, lookEvery) {
			return
		}
	}
}

// look begins the crowds of the drops that are about to open.
func (l *Live) look(ctx context.Context, now time.Time, crowds *sync.WaitGroup) error {
	drops, err := l.Client.drops(ctx, url.Values{"from": {now.Add(-8 * time.Minute).UTC().Format(time.RFC3339)},
		"to": {now.Add(5 * time.Minute).UTC().Format(time.RFC3339)}, "order": {"asc"}, "limit": {"100"}})
	if err != nil {
		return err
	}
	for _, d := range drops {
		k, spread, ok := l.kind(d)
		if !ok || d.State == "draft" || d.State == "cancelled" {
			continue
		}
		booked := spread.bookings(d.ID)
		if left := d.OpensAt.Sub(now); left > 20*time.Second && l.Link != nil && !l.followed[d.ID] && len(booked) > 0 {
			l.followed[d.ID] = true
			crowds.Go(func() { l.Follow(ctx, d, k, booked) })
		} else if left < lookEvery+time.Second && !l.came[d.ID] {
			l.came[d.ID] = true
			crowds.Go(func() {
				if came := l.Come(ctx, d, k, booked); ctx.Err() == nil {
					l.Say("%q: %v", d.Name, came)
				}
			})
		}
	}
	return nil
}

// kind returns which crowd comes to a drop, and the reservations of the demo; ok is false for a
// drop that is not the demo's.
func (l *Live) kind(d Drop) (k Kind, s Spread, ok bool) {
	if d.Name == l.Moderately {
		return Moderate, Spread{}, true
	}
	for i, one := range menu {
		if d.Name != one.Name || d.Shop != shop {
			continue
		}
		if i == 0 {
			return Rush, SoonSpread, true
		}
		return Rush, nextSpread, true
	}
	return Kind{}, Spread{}, false
}

var nextSpread = Spread{Users: remindedLive, FiveMinutes: true}

// ahead adds a drop if none of the demo's opens within the next half hour.
func (l *Live) ahead(ctx context.Context, now time.Time) error {
	drops, err := l.Client.drops(ctx, url.Values{"state": {"scheduled"}, "shop": {shop}, "limit": {"100"},
		"from": {now.UTC().Format(time.RFC3339)}, "to": {now.Add(30 * time.Minute).UTC().Format(time.RFC3339)}})
	if err != nil {
		return err
	}
	for _, d := range drops {
		if _, _, ours := l.kind(d); ours && d.Shop == shop {
			return nil
		}
	}
	d, err := l.Client.AddNext(ctx, now)
	if err != nil {
		return err
	}
	l.Say("%q opens %s", d.Name, d.OpensAt.Local().Format("15:04:05"))
	_, err = l.Client.Reserve(ctx, d, nextSpread, func(int) {})
	return err
}

// bookings draws the reservations of a drop: the same for the same drop each time.
func (s Spread) bookings(drop string) []booking {
	id, _ := strconv.ParseUint(drop, 10, 64) // an id that is no number has the seed 0
	return bookings(rand.New(rand.NewPCG(10, id)), s)
}
