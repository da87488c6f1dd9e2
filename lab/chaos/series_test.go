package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/recipe"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/staff"
)

// repeat creates a series for which users have standing reservations, of which one ends. Then the time of day is changed for
// all drops to come, and a day is skipped. Whatever fails, each day has one drop at the time of the series, each user has
// the reminders of each drop, and the sums agree with the rows.
func (k *walk) repeat(users []int64) {
	name := fmt.Sprint("Series ", k.evening)
	from := k.c.publishDrop(name, "durable", "claim", forSale, 1, time.Hour)
	at := time.Now().UTC().Add(12 * time.Hour)
	var made struct {
		ID int64 `json:"id,string"`
	}
	k.crowd.must(k.ctx, call{method: "POST", path: "/admin/series", body: map[string]any{"name": name, "template_id": fmt.Sprint(from), "rrule": "FREQ=DAILY", "publish": true,
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
	k.repeated(made.ID, name, series.Ahead, users)
	step("DELETE", users[0], nil, http.StatusOK, http.StatusNotFound)
	users = users[1:]

	store := dropsdb.NewSeries(k.stack.DB)
	service := &series.Service{Store: store, Now: time.Now}
	now, err := store.Series(k.ctx, made.ID)
	if err == nil {
		next := now.Spec
		if next.Clock += 3600; next.Clock >= 24*3600 { // on the same day
			next.Clock -= 2 * 3600
		}
		next.Skips = []series.Day{now.Upcoming(time.Now(), 2)[1]}
		_, err = service.Edit(k.ctx, staff.System(), now.ID, series.Edition{Version: now.Version, Spec: next})
	}
	if err != nil {
		k.t.Errorf("the change of the series: %v", err)
		return
	}
	k.repeated(made.ID, name, series.Ahead+1, users) // the published drop of the skipped day stays
}

// repeated waits until the series has so many drops to come, of which those of its days open at its time of day, and checks that
// there is no other drop of the name, and that the users, and they alone, have the reminders of each drop.
func (k *walk) repeated(id int64, name string, drops int, users []int64) {
	var state string
	want := fmt.Sprintf("%d drops at the time of day; %d copied; %d with the name; %d reservations of %d users; sums differ by 0", series.Ahead, drops, drops+1, drops*len(users), len(users))
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
			from series s join shops h on h.number = s.shop_number where s.id = $1`, id, name, reminder.BitmapOf(reminder.Reminder{Channel: delivery.App, Slot: 2}).Int64(), users).Scan(&state)
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
