package chaos_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"dropbell/domain/delivery"
)

// A campaignPlan is the number of campaigns, the number of their users, and the faults that are
// injected meanwhile.
type campaignPlan struct {
	size
	extras  int // users in the app's audience whom no other channel reaches
	limited int // users of the campaigns that are cut short
	twins   int // pairs of equal campaigns that are published at once
	pauses  int
	rate    int           // messages per second of the webhook campaign, so that the storm meets it
	window  time.Duration // of the campaign whose end comes too early
	short   int           // messages per second of a channel on which reminders meet a campaign, 0 = they do not
}

var shortSeason = campaignPlan{
	size: size{
		users: 2400, storm: 8 * time.Second, webKills: 1, workerKills: 2,
		whileSending: []trouble{emptyRedis},
		hook:         [2]time.Duration{50 * time.Millisecond, 400 * time.Millisecond},
		mail:         [2]time.Duration{time.Millisecond, 4 * time.Millisecond},
		hooks:        map[fault]int{refuse: 1, throttle: 1, dropBefore: 1, dropAfter: 1},
		mails:        map[fault]int{refuse: 2, throttle: 2, dropBefore: 2, dropAfter: 2},
		patience:     30 * time.Second,
	},
	extras: 150_000, limited: 1000, twins: 2, pauses: 10, rate: 200, window: 8 * time.Second,
}

func TestCampaignsShort(t *testing.T) {
	t.Parallel()
	spoil(t, shortSeason)
}

// A campaignRun is the campaigns of one test under faults.
type campaignRun struct {
	*system
	plan    campaignPlan
	started []*promo
	paused  int // pauses that were acknowledged
	silent  int // after which it was checked that nothing more was sent
	looks   int // at balance sheets while everything moved
	// overtook counts messages of a campaign that were sent while reminders waited.
	overtook int
}

// spoil sends campaigns under faults, and then accounts for each user in their audiences.
func spoil(t *testing.T, s campaignPlan) {
	w := &system{size: &s.size, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	w.build()
	p := &campaignRun{system: w, plan: s}
	users := p.populate()
	w.sink.hooks.open.Store(true)
	w.sink.mails.open.Store(true)
	mails, hooks := p.audiences(users)
	p.twinsAtOnce(users)
	limited := func(name string, v expectation, from int) promo {
		return promo{name: name, channel: delivery.Webhook, audience: named(users[from:][:s.limited]), rate: s.limited / 20, verdict: v}
	}
	p.cancel(p.publish(limited("Cancelled", mayBeSkipped, 0)))
	early := limited("Ends early", mayExpire, s.limited)
	early.lasting = s.window
	slow := limited("Cancelled in the storm", mayBeSkipped, s.limited/2)
	slow.rate = s.limited / 100
	ending, cancelled := p.publish(early), p.publish(slow)
	// Its end does not wait for a busy machine, nor for leases of the killed.
	p.until(ending, s.window, "going out", goingOut(ending))
	webhook := p.publish(promo{name: "Webhook", channel: delivery.Webhook, audience: hooks, rate: s.rate})
	p.publish(promo{name: "Mail", channel: delivery.Email, audience: mails, rate: s.rate})
	app := p.cutInTwo(users)
	end := w.begin(s.storm, w.webTroubles, w.workerTroubles, w.troubles(w.whileSending, 6), w.sameBatchTwice, p.pauseStorm(webhook),
		p.cancelWithin(cancelled), p.balances)
	end()
	w.say("the storm is over")
	for _, x := range p.started {
		p.settle(x, 4*time.Minute)
		p.account(x)
	}
	p.short(ending)
	p.short(cancelled)
	p.sampleCampaign(app)
	if s.short > 0 {
		p.remindersFirst(users)
	}
	p.print()
}

// A user whose id is a multiple of addressless has no mail address. A user whose id is a
// multiple of optedOut has opted out of webhooks.
const (
	addressless = 89
	optedOut    = 97
)

// populate inserts users. All but a few have a mail address, a few have opted out of webhooks,
// and very many can be reached only in the app.
func (p *campaignRun) populate() []int64 {
	rng := p.random(4)
	users := make([]int64, 0, p.users)
	for id := int64(1000); len(users) < cap(users); id += 1 + rng.Int64N(9) {
		users = append(users, id)
	}
	p.crowd.tell(p.ctx, users)
	p.exec(`update users set email = '' where id % $1 = 0`, addressless)
	p.exec(`update users set opt_outs = opt_outs | $1::smallint where id % $2 = 0`, delivery.Webhook.Bit(), optedOut)
	p.exec(`insert into users (id) select $1 + i from generate_series(1, $2::bigint) as i`, users[len(users)-1], p.plan.extras)
	p.exec(`vacuum analyze users`)
	return users
}

func (p *campaignRun) exec(sql string, args ...any) {
	p.t.Helper()
	if _, err := p.stack.SQL.Exec(p.ctx, sql, args...); err != nil {
		p.t.Fatal(err)
	}
}

// audiences returns two audiences of all users with contacts: the users that have reserved a
// template, and a segment.
func (p *campaignRun) audiences(users []int64) (reserved, segment audience) {
	d := p.crowd.publish(p.ctx, "Campaigns", 48*time.Hour)
	p.exec(`insert into reservations (template_id, user_id, slots) select $1, i, 1 from unnest($2::bigint[]) as i`, d.id, users)
	p.fleet.shop.unannounced(p.ctx, d.id)
	var s struct {
		ID string `json:"id"`
	}
	rule := map[string]any{"field": "created", "op": "within_days", "values": []string{"1"}}
	known := map[string]any{"any": []any{map[string]any{"field": "contact", "op": "has", "values": []string{"email"}},
		map[string]any{"field": "opted_out", "op": "is", "values": []string{"webhook"}}}}
	p.crowd.must(p.ctx, call{method: "POST", path: "/admin/segments", body: map[string]any{"name": "With an address",
		"rule": map[string]any{"all": []any{rule, known}}}}, &s)
	var members []int64
	for _, u := range users {
		if u%addressless != 0 || u%optedOut == 0 {
			members = append(members, u)
		}
	}
	return audience{map[string]any{"reserved_template_id": fmt.Sprint(d.id)}, users},
		audience{map[string]any{"segment_id": s.ID}, members}
}

// named means users one by one.
func named(users []int64) audience {
	ids := make([]string, len(users))
	for i, u := range users {
		ids[i] = fmt.Sprint(u)
	}
	return audience{map[string]any{"user_ids": ids}, users}
}

// twinsAtOnce publishes pairs of equal campaigns. Each campaign of a pair is published through
// both web processes at the same moment. Exactly one of the four requests succeeds. Further
// requests for the other campaign are refused even after Redis, which gives the quick refusal,
// has lost its data, and even if a web process is killed meanwhile.
func (p *campaignRun) twinsAtOnce(users []int64) {
	for i := range p.plan.twins {
		kill := i%2 == 1
		x := promo{name: fmt.Sprintf("Twins %d", i+1), channel: delivery.Webhook, audience: named(users[i*50:][:50]), startsAt: time.Now()}
		pair := []*promo{p.draft(x), p.draft(x)}
		replies := make([]reply, 4)
		var all sync.WaitGroup
		for n := range replies {
			all.Go(func() {
				replies[n], _ = p.crowd.send(p.ctx, call{method: "POST", path: pair[n/2].path("publish"), at: p.crowd.webs[n%2], body: map[string]any{}})
			})
		}
		if kill {
			p.killAny(p.fleet.webs, []time.Time{time.Now()}, p.random(uint64(20+i)))
		}
		all.Wait()
		p.oneOf(pair, replies, kill)
	}
	p.say("of %d pairs of equal campaigns, published four times at once, one each went out", p.plan.twins)
}

// oneOf checks that exactly one of two equal campaigns was published, by one request, and that
// publishing the other campaign is still refused after Redis lost its data. If a process was
// killed, a second request for the winner may also report success: a request whose first attempt
// was killed may find that another request has published the campaign.
func (p *campaignRun) oneOf(pair []*promo, replies []reply, killed bool) {
	winner := -1
	for n, r := range replies {
		switch {
		case r.ok() && winner >= 0 && (winner != n/2 || !killed):
			p.t.Errorf("%s was published twice", pair[0].name)
		case r.ok():
			winner = n / 2
		case r.code != "already_published" && r.code != "invalid_transition":
			p.t.Errorf("%s: answer %d %s", pair[0].name, r.status, r.body)
		}
	}
	if winner < 0 {
		p.t.Fatalf("none of the twins was published: %d %s", replies[0].status, replies[0].body)
	}
	if err := p.stack.Redis.Restart(p.ctx, true); err != nil {
		p.t.Fatal(err)
	}
	loser := pair[1-winner]
	if r, _ := p.crowd.send(p.ctx, call{method: "POST", path: loser.path("publish"), body: map[string]any{}}); r.code != "already_published" {
		p.t.Errorf("%s, again after Redis was emptied: answer %d %s", loser.name, r.status, r.body)
	}
	p.started = append(p.started, pair[winner])
}
