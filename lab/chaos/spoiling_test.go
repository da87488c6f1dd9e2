package chaos_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/delivery"
)

// takesEffectWithin is how soon no message of a paused or cancelled campaign may be sent any
// more.
const takesEffectWithin = 2 * time.Second

// cancel waits until some users have the message, cancels the campaign, and checks that soon no
// further call begins.
func (p *campaignRun) cancel(x *promo) {
	p.until(x, time.Minute, "going out", goingOut(x))
	p.crowd.must(p.ctx, call{method: "POST", path: x.path("cancel"), body: map[string]any{"reason": "chaos"}}, nil)
	at := time.Now()
	wait(takesEffectWithin+time.Second, p.ctx.Done())
	p.silence(x, at, time.Now())
	p.short(x)
	p.say("a campaign was cancelled in its middle")
}

// cancelWithin cancels the campaign at a random moment of the first half of the
// faults, or later if no recipient has the message by then.
func (p *campaignRun) cancelWithin(x *promo) lane {
	return func(span time.Duration, over <-chan struct{}) {
		wait(time.Duration(p.random(16).Int64N(int64(span/2))), over)
		p.until(x, time.Minute, "going out", goingOut(x))
		p.crowd.must(p.ctx, call{method: "POST", path: x.path("cancel"), body: map[string]any{"reason": "chaos"}}, nil)
		p.say("a campaign was cancelled in the storm")
	}
}

// goingOut reports when a part of the campaign's audience has its outcome.
func goingOut(x *promo) func(string, int64) bool {
	return func(_ string, settled int64) bool { return settled > int64(len(x.audience.users)/20) }
}

// silence checks that no message of the campaign arrived between shortly after since and until.
func (p *campaignRun) silence(x *promo, since, until time.Time) {
	if p.away(since, since.Add(takesEffectWithin)) > 0 {
		return // a process that cannot ask goes on as before, and cannot record it
	}
	p.silent++
	about := &delivery.Subject{Kind: delivery.KindCampaign, OwnerID: x.id}
	for _, a := range p.sink.all() {
		if a.at.After(since.Add(takesEffectWithin)) && a.at.Before(until) && a.channel == x.channel && !p.fleet.wasHalted(a.worker) &&
			a.key == keyAbout(about, a.user, x.channel) {
			p.t.Errorf("%s: user %d was reached %v after it was stopped", x.sending().what, a.user, a.at.Sub(since))
			return
		}
	}
}

// pauseStorm pauses and resumes the campaign at random. Some pauses are so long that messages
// may no longer be sent during them.
func (p *campaignRun) pauseStorm(x *promo) lane {
	return func(span time.Duration, over <-chan struct{}) {
		rng := p.random(15)
		for n := range p.plan.pauses {
			r, final := p.crowd.send(p.ctx, call{method: "POST", path: x.path("pause"), body: map[string]any{}})
			if r.code == "invalid_transition" {
				p.t.Errorf("%s could not be paused the %d. time: %s", x.sending().what, n+1, r.body)
				return
			}
			at := time.Now()
			if final && r.ok() {
				p.count(&p.paused)
			}
			if n%10 == 4 && r.ok() {
				wait(takesEffectWithin+time.Second/2, over)
				p.silence(x, at, time.Now())
			} else {
				wait(time.Duration(rng.Int64N(int64(300*time.Millisecond))), p.ctx.Done())
			}
			p.crowd.must(p.ctx, call{method: "POST", path: x.path("resume"), body: map[string]any{}}, nil)
			wait(time.Duration(rng.Int64N(int64(300*time.Millisecond))), p.ctx.Done())
		}
	}
}

// count counts something that several lanes do.
func (p *campaignRun) count(n *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
}

// balances reads the balance sheets of the campaigns in turn during the faults. Each balance
// sheet must add up at every moment.
func (p *campaignRun) balances(_ time.Duration, over <-chan struct{}) {
	n := 0
	repeatedly(p.ctx, 200*time.Millisecond, over, func() {
		n++
		x := p.started[n%len(p.started)]
		var sheet struct {
			Balanced          bool
			Difference, Twice int64
		}
		p.crowd.must(p.ctx, call{method: "GET", path: x.path("balance")}, &sheet)
		if !sheet.Balanced || sheet.Difference != 0 || sheet.Twice != 0 {
			p.t.Errorf("%s does not balance on its way: %+v", x.sending().what, sheet)
		}
		p.count(&p.looks)
	})
}

// cutInTwo starts cutting the audience of the app's campaign. When the first page is stored and
// the second page is not, it empties Redis and kills every worker. Two queued locks let exactly
// one page pass.
func (p *campaignRun) cutInTwo(users []int64) *promo {
	everybody := make([]int64, 0, len(users)+p.plan.extras)
	everybody = append(everybody, users...)
	for i := range p.plan.extras {
		everybody = append(everybody, users[len(users)-1]+int64(i)+1)
	}
	p.stored()
	first, err := p.stack.SQL.Begin(p.ctx)
	p.must(err)
	defer func() { _ = first.Rollback(context.WithoutCancel(p.ctx)) }()
	_, err = first.Exec(p.ctx, `lock table campaign_messages in share mode`)
	p.must(err)
	x := p.publish(promo{name: "App", channel: delivery.App, audience: audience{map[string]any{"all": true}, everybody}})
	p.waiting(1)
	second, err := p.stack.SQL.Begin(p.ctx)
	p.must(err)
	defer func() { _ = second.Rollback(context.WithoutCancel(p.ctx)) }()
	locked := make(chan error, 1)
	go func() {
		_, err := second.Exec(p.ctx, `lock table campaign_messages in share mode`)
		locked <- err
	}()
	p.waiting(2)
	p.must(first.Rollback(p.ctx))
	p.must(<-locked)
	var after int64
	p.must(second.QueryRow(p.ctx, `select cut_after from campaigns where id = $1 and cut_at is null`, x.id).Scan(&after))
	if after == 0 || after >= everybody[len(everybody)-1] {
		p.t.Fatalf("the audience is cut up to %d, which is not its middle", after)
	}
	p.must(p.stack.Redis.Restart(p.ctx, true))
	for _, m := range p.fleet.workers {
		if name, ok := p.fleet.kill(m); ok {
			p.say("kill -9 %s while the audience was cut up to %d", name, after)
		}
	}
	p.must(second.Rollback(p.ctx))
	for _, m := range p.fleet.workers {
		p.fleet.start(m)
	}
	return x
}

// stored returns when nothing of the campaigns so far is still to be stored.
func (p *campaignRun) stored() {
	for _, x := range p.started {
		p.until(x, time.Minute, "stored", func(string, int64) bool {
			var done bool
			err := p.stack.SQL.QueryRow(p.ctx, `select (cut_at is not null or ended_at is not null) and not exists (
				select from campaign_messages m where m.campaign_id = c.id and m.stored_at is null) from campaigns c where id = $1`, x.id).Scan(&done)
			return err == nil && done
		})
	}
}

// waiting returns when so many statements wait for the table.
func (p *campaignRun) waiting(n int) {
	for limit := time.Now().Add(20 * time.Second); ; wait(5*time.Millisecond, p.ctx.Done()) {
		var have int
		p.must(p.stack.SQL.QueryRow(p.ctx, `select count(*) from pg_locks where relation = 'campaign_messages'::regclass and not granted`).Scan(&have))
		if have >= n {
			return
		}
		if time.Now().After(limit) {
			p.t.Fatalf("%d statements wait for campaign_messages, expected %d", have, n)
		}
	}
}

func (p *campaignRun) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// noticed is how soon campaigns must have noticed that reminders are due.
const noticed = time.Second

// remindersFirst lets a slot fall due while a campaign uses the whole capacity of a channel with
// a limited rate. The reminders are sent before the campaign continues.
func (p *campaignRun) remindersFirst(users []int64) {
	rate := p.plan.short
	p.exec(`update channel_settings set rate_per_second = $1 where channel = $2`, rate, delivery.Webhook)
	d, n := p.crowd.publish(p.ctx, "Before campaigns", 24*time.Hour), 4*rate
	willing := slices.DeleteFunc(slices.Clone(users), func(u int64) bool { return u%optedOut == 0 })
	for chunk := range slices.Chunk(willing[:n], callers) {
		var all sync.WaitGroup
		for _, u := range chunk {
			all.Go(func() { p.crowd.reserve(p.ctx, d, u, delivery.Webhook) })
		}
		all.Wait()
	}
	x := p.publish(promo{name: "Steps aside", channel: delivery.Webhook, audience: named(willing[n:][:20*rate])})
	p.until(x, time.Minute, "going out", func(_ string, settled int64) bool { return settled > 0 })
	p.crowd.move(p.ctx, d, time.Now().Add(3*time.Second).Truncate(time.Second))
	p.settled(d, 2*time.Minute)
	p.exec(`update channel_settings set rate_per_second = 0 where channel = $1`, delivery.Webhook)
	last, about := d.dueAt, &delivery.Subject{Kind: delivery.KindCampaign, OwnerID: x.id}
	all, keys := p.sink.all(), p.expected(d)
	for _, a := range all {
		if _, ours := keys[a.key]; ours && a.at.After(last) {
			last = a.at
		}
	}
	p.system.account(d, everybodySent)
	for _, a := range all {
		if a.at.After(d.dueAt.Add(noticed)) && a.at.Before(last) && a.key == keyAbout(about, a.user, delivery.Webhook) {
			p.overtook++
		}
	}
	p.say("%d reminders fell due while a campaign used all of a channel with %d messages a second: the last was sent after %.1f s, %d messages of the campaign meanwhile",
		n, rate, last.Sub(d.dueAt).Seconds(), p.overtook)
	if p.overtook > 0 {
		p.t.Errorf("%d messages of a campaign were sent while reminders waited", p.overtook)
	}
	p.settle(x, time.Minute)
	p.account(x)
}

// print checks the sums of the whole run and prints them.
func (p *campaignRun) print() {
	r, all := &p.report, p.sink.all()
	if int64(len(all)) != r.arrivals {
		p.t.Errorf("%d messages arrived that belong to no campaign that was published", int64(len(all))-r.arrivals)
	}
	p.happened()
	if p.paused < p.plan.pauses || p.silent == 0 || p.looks == 0 {
		p.t.Errorf("only %d pauses, %d silences, %d balance sheets", p.paused, p.silent, p.looks)
	}
	p.say("seed %d\n%s", p.seed, table(
		"campaigns", len(p.started), "recipients accounted for", r.reminders, "  sent", r.sent, "    of them after a retry", r.recovered,
		"  expired, with their cause", r.expired, "  skipped, with their reason", r.reminders-r.sent-r.expired, "missed", r.missed,
		"pairs of equal campaigns published at once", p.plan.twins, "pauses and resumptions", p.paused, "  looked at for silence", p.silent,
		"balance sheets while everything moved", p.looks, "kill -9 of workers", p.fleet.kills("worker"), "kill -9 of web", p.fleet.kills("web"),
		"batches queued twice", r.twice.Load(), "messages turned away by providers", p.sink.refused.Load(), "messages at the sinks", r.arrivals,
		"  repeated: provider concealed its yes", r.concealed, "  repeated: in flight at a kill or halt", r.cutOff,
		"    most mails at one of them", r.largest[delivery.Email], "    most webhook calls at one of them", r.largest[delivery.Webhook], "  at or after the campaign's end", r.after,
		"accounts and balance sheet lines, all with difference 0", r.lines))
}
