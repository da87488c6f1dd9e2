package chaos_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"dropbell/domain/delivery"
)

// takenOverWithin is the promised time within which the batches of a killed worker are taken
// over. slack is a margin for a busy machine.
const (
	takenOverWithin = 15 * time.Second
	slack           = 10 * time.Second
)

// reserveAll makes every user reserve every channel of a new drop in peace.
func (w *system) reserveAll(name string, users []int64) *drop {
	d := w.crowd.publish(w.ctx, name, 24*time.Hour)
	var plan []visit
	for _, u := range users {
		plan = append(plan, visit{time.Now(), d, u, allAtOnce})
	}
	w.crowd.carryOut(w.ctx, plan)
	return d
}

// takeover kills a worker in the middle of a call, without any other fault, and measures the
// time until another worker repeats that call.
func (w *system) takeover(users []int64) {
	d := w.reserveAll("Takeover", users)
	held := make(chan struct{})
	w.sink.hold.Store(&held)
	w.crowd.move(w.ctx, d, time.Now().Add(3*time.Second).Truncate(time.Second))
	first, ok := w.sink.await(20*time.Second, func(a arrival) bool { return a.channel == delivery.Webhook })
	if !ok {
		w.t.Fatal("nothing arrived within 20 s")
	}
	m := w.fleet.memberOf(first.worker)
	killed := time.Now()
	w.fleet.kill(m)
	w.sink.hold.Store(nil)
	close(held)
	again, ok := w.sink.await(time.Minute, func(a arrival) bool { return a.key == first.key && a.worker != first.worker })
	if !ok {
		w.t.Fatal("nobody took the killed worker's batch over")
	}
	w.report.takeover = again.at.Sub(killed)
	w.say("the batch of a killed worker was taken over after %.1f s", w.report.takeover.Seconds())
	if w.report.takeover > takenOverWithin+slack {
		w.t.Errorf("the batch of a killed worker was taken over after %v", w.report.takeover)
	}
	w.fleet.start(m)
	w.settled(d, time.Minute)
	w.account(d, everybodySent)
}

// pastDeadline keeps the webhook provider down until after the opening, makes the mail server
// too slow to finish before the opening, and kills a worker meanwhile.
func (w *system) pastDeadline(users []int64) {
	d := w.reserveAll("Deadline", users)
	w.sink.hooks.down.Store(true)
	w.sink.perMail = [2]time.Duration{250 * time.Millisecond, 450 * time.Millisecond}
	w.crowd.move(w.ctx, d, time.Now().Add(3*time.Second).Truncate(time.Second))
	w.shorten(d, 12*time.Second)
	wait(time.Until(d.dueAt.Add(2*time.Second)), w.ctx.Done())
	w.killAny(w.fleet.workers, []time.Time{time.Now()}, w.random(11))
	wait(time.Until(d.opensAt.Add(time.Second/2)), w.ctx.Done())
	// Further messages would now arrive.
	w.sink.hooks.down.Store(false)
	w.settled(d, time.Minute)
	w.account(d, sentOrExpired)
}

// shorten moves the opening nearer than the five minutes between a reminder and the opening, so
// that the test is shorter. The drop differs from a drop whose five minutes have passed only in
// this time.
func (w *system) shorten(d *drop, window time.Duration) {
	d.opensAt = d.dueAt.Add(window)
	tag, err := w.stack.SQL.Exec(w.ctx, `with t as (update templates set opens_at = $2 where id = $1 returning id)
		update slots s set opens_at = $2 from t where s.template_id = t.id and s.state = 'waiting' and s.due_at = $3`, d.id, d.opensAt, d.dueAt)
	if err != nil || tag.RowsAffected() != 1 {
		w.t.Fatalf("shorten the window: %v, %d slots", err, tag.RowsAffected())
	}
}

// settled waits until the drop's slot is finished.
func (w *system) settled(d *drop, within time.Duration) {
	w.t.Helper()
	for limit := time.Now().Add(within); ; wait(200*time.Millisecond, w.ctx.Done()) {
		var state string
		err := w.stack.SQL.QueryRow(w.ctx, `select id, state from slots where template_id = $1 and slot = 1 and due_at = $2`,
			d.id, d.dueAt).Scan(&d.slot, &state)
		if err == nil && state == "finished" {
			return
		}
		if time.Now().After(limit) {
			w.t.Fatalf("drop %d is not finished after %v: %s %v\n%s", d.id, within, state, err, w.unfinished(d))
		}
	}
}

// unfinished describes why a drop is not finished.
func (w *system) unfinished(d *drop) string {
	rows, err := w.stack.SQL.Query(w.ctx, `select format('batch %s channel %s %s: due %s sent %s failed %s runs %s next %s lease %s', id, channel, state,
		due_count, sent_count, failed_count, runs, next_run_at - clock_timestamp(), lease_until - clock_timestamp())
		from batches where owner_id = $1 and state <> 'done'`, d.slot)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	text, line := "", ""
	for rows.Next() && rows.Scan(&line) == nil {
		text += line + "\n"
	}
	return text
}

// sample reads the states of some users' reminders from the API.
func (w *system) sample(drops []*drop, users []int64) {
	asked := 0
	for i, u := range users {
		d := drops[i%len(drops)]
		want := map[string]string{}
		for _, c := range channels {
			if w.crowd.ledger.fates[reservation{d.id, u, c}] == accepted {
				want[c.String()] = "sent"
			}
		}
		if asked == 50 || len(want) < len(channels) {
			continue
		}
		asked++
		if got := w.shown(d, u); !maps.Equal(got, want) {
			w.t.Errorf("user %d, drop %d: the API says %v, want %v", u, d.id, got, want)
		}
	}
}

// shown returns the states of a user's reminders in the API.
func (w *system) shown(d *drop, user int64) map[string]string {
	r, final := w.crowd.send(w.ctx, call{method: "GET", path: fmt.Sprintf("/reservations/%d", d.id), user: user})
	var view struct {
		Reminders []struct{ Channel, State string }
	}
	if !final || !r.ok() || json.Unmarshal(r.body, &view) != nil {
		w.t.Errorf("GET reservation of user %d: answer %d %s", user, r.status, r.body)
	}
	states := map[string]string{}
	for _, x := range view.Reminders {
		states[x.Channel] = x.State
	}
	return states
}
