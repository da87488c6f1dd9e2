package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/recipe"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/killpoint"
)

// repeat creates a series for which users have standing reservations, of which one ends. Then the time of day is changed for
// all drops to come, and a day is skipped. Whatever fails, each day has one drop at the time of the series, each user has
// the reminders of each drop, and the sums agree with the rows. A crowd of further users, 0 for none, have standing reservations when the
// drops are published; more than 25,000 are copied in several transactions.
func (k *walk) repeat(users []int64, crowd int) {
	name := fmt.Sprint("Series ", k.evening)
	from := k.c.publishDrop(name, "durable", "claim", forSale, 1, time.Hour)
	at := time.Now().UTC().Add(12 * time.Hour)
	var made struct {
		ID int64 `json:"id,string"`
	}
	k.crowd.must(k.ctx, call{method: "POST", path: "/admin/series", body: map[string]any{"name": name, "template_id": fmt.Sprint(from), "rrule": "FREQ=DAILY", "publish": crowd == 0,
		"starts": at.AddDate(0, 0, -3).Format(time.DateOnly), "clock": at.Format("15:04")}}, &made)
	step := func(method string, user int64, body any, want ...int) {
		path := fmt.Sprintf("/series/%d/reservation", made.ID)
		if r, final := k.crowd.send(k.ctx, call{method: method, path: path, user: user, body: body}); !final || !slices.Contains(want, r.status) {
			k.t.Errorf("%s %s by user %d: answer %d %s", method, path, user, r.status, r.body)
		}
	}
	for _, u := range users {
		step("PUT", u, map[string]any{"shop_number": fmt.Sprint(shopNumber), "reminders": []map[string]any{{"minutes": 10, "channel": "app"}}}, http.StatusCreated, http.StatusOK)
	}
	store := dropsdb.NewSeries(k.stack.DB)
	service := &series.Service{Store: store, Now: time.Now}
	edit := func(change func(series.Series) series.Spec) bool {
		now, err := store.Series(k.ctx, made.ID)
		if err == nil {
			_, err = service.Edit(k.ctx, staff.System(), now.ID, series.Edition{Version: now.Version, Spec: change(now)})
		}
		if err != nil {
			k.t.Errorf("the change of the series: %v", err)
		}
		return err == nil
	}
	if crowd > 0 {
		if _, err := k.stack.SQL.Exec(k.ctx, `insert into series_reservations (series_id, user_id, slots) select $1, 100000000 + n, $3 from generate_series(1, $2::int) n`, made.ID, crowd, reminded); err != nil {
			k.t.Fatal(err)
		}
		if !edit(func(now series.Series) series.Spec { now.Publishes = true; return now.Spec }) {
			return
		}
	}
	k.repeated(made.ID, name, series.Ahead, users, crowd)
	step("DELETE", users[0], nil, http.StatusOK, http.StatusNotFound)
	users = users[1:]
	if edit(func(now series.Series) series.Spec {
		next := now.Spec
		if next.Clock += 3600; next.Clock >= 24*3600 { // on the same day
			next.Clock -= 2 * 3600
		}
		next.Skips = []series.Day{now.Upcoming(time.Now(), 2)[1]}
		return next
	}) {
		k.repeated(made.ID, name, series.Ahead+1, users, crowd) // the published drop of the skipped day stays
	}
}

// reminded is the reminder of the standing reservations, as a bitmap: in the app, ten minutes before the opening.
var reminded = reminder.BitmapOf(reminder.Reminder{Channel: delivery.App, Slot: 2}).Int64()

// repeated waits until the series has so many drops to come, of which those of its days open at its time of day, and checks that
// there is no other drop of the name, and that the users, and they alone, have the reminders of each drop.
func (k *walk) repeated(id int64, name string, drops int, users []int64, crowd int) {
	var state string
	want := fmt.Sprintf("%d drops at the time of day; %d copied; %d with the name; %d reservations of %d users; sums differ by 0", series.Ahead, drops, drops+1, drops*(len(users)+crowd), len(users))
	for limit := time.Now().Add(2 * time.Minute); ; wait(100*time.Millisecond, k.ctx.Done()) {
		err := k.stack.SQL.QueryRow(k.ctx, `with kept as (
				select t.id, t.opens_at, d.copied_at from series_drops d join templates t on t.id = d.template_id where d.series_id = $1 and d.state = 'kept' and t.state = 'published'
			), booked as (
				select r.user_id from kept join reservations r on r.template_id = kept.id where r.slots = $3 and r.standing
			)
			select format('%s drops at the time of day; %s copied; %s with the name; %s reservations of %s users; sums differ by %s',
				(select count(*) from kept where extract(epoch from (opens_at at time zone coalesce(nullif(h.timezone, ''), 'UTC'))::time)::int = s.clock), (select count(copied_at) from kept),
				(select count(*) from templates where name = $2), (select count(*) from booked), (select count(distinct user_id) from booked where user_id = any($4)),
				(select coalesce(sum(booked), 0) from kept join bookings b on b.template_id = kept.id) - (select count(*) from booked))
			from series s join shops h on h.number = s.shop_number where s.id = $1`, id, name, reminded, users).Scan(&state)
		if err == nil && state == want {
			return
		}
		if time.Now().After(limit) {
			k.t.Errorf("series %d: %s, want %s: %v", id, state, want, err)
			return
		}
	}
}

// remind turns a recipe on that tells users who reserved and did not claim, in all evenings.
func (k *walk) remind() {
	k.t.Helper()
	settings, err := json.Marshal(recipe.Settings{On: true, Channel: delivery.Webhook, Texts: map[string]delivery.Text{"": {Title: "Still there", Body: "Some coupons of {{drop}} are left."}}})
	if err == nil {
		_, err = k.stack.SQL.Exec(k.ctx, `insert into recipes (shop_number, form, settings, is_on) values ($1, $2, $3, true) on conflict do nothing`, shopNumber, recipe.Missed, settings)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// missed waits for the round of the recipe about a drop that no user claims, and checks that there is one with one campaign,
// which has told each user.
func (k *walk) missed(d *drop, users []int64) {
	var rounds, found, campaignsMade int64
	x := &promo{name: "missed", channel: delivery.Webhook, audience: named(users)}
	for limit := time.Now().Add(2 * time.Minute); ; wait(200*time.Millisecond, k.ctx.Done()) {
		if _, err := k.stack.SQL.Exec(k.ctx, `update recipes set due_at = clock_timestamp() where due_at > clock_timestamp() + interval '31 seconds'`); err != nil {
			continue
		}
		err := k.stack.SQL.QueryRow(k.ctx, `select count(*), sum(o.users), min(c.id), min(c.ends_at), (select count(*) from campaigns c where c.request_key in ('recipe:' || min(o.id)))
			from recipe_rounds o join campaigns c on c.id = o.campaign_id where o.template_id = $1 and o.state = 'done' having count(*) > 0`, d.id).Scan(&rounds, &found, &x.id, &x.endsAt, &campaignsMade)
		if err == nil {
			break
		}
		if time.Now().After(limit) {
			k.t.Errorf("drop %d has no round: %v", d.id, err)
			return
		}
	}
	if rounds != 1 || found != int64(len(users)) || campaignsMade != 1 {
		k.t.Errorf("drop %d: %d rounds with %d campaigns for %d users", d.id, rounds, campaignsMade, found)
	}
	k.p.settle(x, 2*time.Minute)
	k.campaigned(x)
}

// crowded is more users than one transaction copies.
const crowded = 26_000

// night keeps a series and sends the round of a recipe while processes are killed after each of the writes of both, one after the other. When
// half of that has happened, Redis is killed and comes back empty. The leases of killed workers end at once, so that the night does not wait for them.
func (k *walk) night() {
	k.t.Helper()
	k.evening++
	users := k.invite()
	k.remind()
	unclaimed := k.reserveAll(fmt.Sprint("Missed at night ", k.evening), users)
	k.c.open(unclaimed.id)
	wait(soon+knownWithin, k.ctx.Done())
	list := k.ownWrites()
	k.arm(list)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		k.afterKills(list, over)
	}()
	var all sync.WaitGroup
	all.Go(func() { k.repeat(users, crowded) })
	all.Go(func() { k.missed(unclaimed, users) })
	all.Wait()
	close(over)
	<-ended
	for _, f := range k.disarm(list) {
		k.t.Errorf("did not happen at night: %v", f)
	}
	k.print(list)
}

// ownWrites returns the deaths after each write of series and recipes that processes have passed so far.
func (k *walk) ownWrites() (list []failing) {
	for _, p := range reachedPoints(k.t, k.dir) {
		for _, of := range []string{"series.", "recipes.", "drops.Series.", "campaigns.Recipes."} {
			if strings.HasPrefix(p, of) {
				list = append(list, failing{p, killpoint.AfterIt, killpoint.Kill})
			}
		}
	}
	slices.SortFunc(list, func(a, b failing) int { return strings.Compare(a.point, b.point) })
	if len(list) < 8 {
		k.t.Fatalf("only %v", list)
	}
	return list
}

// afterKills ends the leases that a killed process held, and empties Redis after half of the kills.
func (k *walk) afterKills(list []failing, over <-chan struct{}) {
	killed, emptied := 0, false
	for {
		select {
		case <-over:
			if !emptied {
				k.t.Errorf("Redis was not emptied: %d of %d kills have happened", killed, len(list))
			}
			return
		default:
		}
		wait(100*time.Millisecond, k.ctx.Done())
		n := 0
		for _, f := range list {
			if _, err := os.Stat(filepath.Join(k.dir, killpoint.Hit(f.point, f.phase, f.failure))); err == nil {
				n++
			}
		}
		if n == killed {
			continue
		}
		if killed = n; !emptied && 2*n >= len(list) {
			emptied = true
			k.say("Redis comes back empty after %d of %d kills", n, len(list))
			if err := k.stack.Redis.Restart(k.ctx, true); err != nil {
				k.t.Errorf("Redis does not come back: %v", err)
			}
		}
		for _, table := range []string{"series", "recipes"} {
			if _, err := k.stack.SQL.Exec(k.ctx, `update `+table+` set due_at = clock_timestamp() where due_at between clock_timestamp() and clock_timestamp() + interval '30 seconds'`); err != nil {
				k.t.Error(err)
			}
		}
	}
}
