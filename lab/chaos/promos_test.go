package chaos_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/domain/delivery"
)

// An audience is the form of it for the API, and the users that are meant.
type audience struct {
	wish  map[string]any
	users []int64
}

// An expectation of a campaign is the set of outcomes allowed for the users of its audience that
// can be reached and have not opted out.
type expectation uint8

const (
	mustBeSent   expectation = iota
	mayExpire                // its end came too early
	mayBeSkipped             // it was cancelled
)

// A promo is one campaign and what is known about it.
type promo struct {
	id       int64
	name     string
	channel  delivery.Channel
	audience audience
	rate     int
	startsAt time.Time
	endsAt   time.Time
	lasting  time.Duration // until its end, 0 = long
	verdict  expectation
}

func (x *promo) path(step string) string { return fmt.Sprintf("/admin/campaigns/%d/%s", x.id, step) }

func (x *promo) sending() sending {
	return sending{fmt.Sprintf("campaign %d (%s)", x.id, x.name), delivery.KindCampaign, x.id, x.endsAt}
}

// draft creates the campaign.
func (p *campaignRun) draft(x promo) *promo {
	x.startsAt = cmp.Or(x.startsAt, time.Now()).UTC().Truncate(time.Microsecond)
	x.endsAt = x.startsAt.Add(cmp.Or(x.lasting, time.Hour))
	var made struct {
		ID int64 `json:"id,string"`
	}
	p.crowd.must(p.ctx, call{method: "POST", path: "/admin/campaigns", body: map[string]any{"shop_number": fmt.Sprint(shopNumber), "name": x.name, "title": "Spring, {{name|friend}}",
		"body": "Everything must go: {{link}}", "link": "https://shop.example/spring", "channel": x.channel.String(), "audience": x.audience.wish, "starts_at": x.startsAt, "ends_at": x.endsAt,
		"rate_per_second": x.rate}}, &made)
	x.id = made.ID
	return &x
}

// publish creates and publishes the campaign.
func (p *campaignRun) publish(x promo) *promo {
	made := p.draft(x)
	p.crowd.must(p.ctx, call{method: "POST", path: made.path("publish"), body: map[string]any{"reason": "chaos"}}, nil)
	p.started = append(p.started, made)
	return made
}

// state returns the campaign's state and how many have an outcome.
func (p *campaignRun) state(ctx context.Context, x *promo) (state string, settled int64, err error) {
	err = p.stack.SQL.QueryRow(ctx, `select state, coalesce((select sum(sent_count + skipped_count + expired_count + dead_count) from batches b
		where b.kind = 'campaign' and b.owner_id = c.id), 0)::bigint from campaigns c where id = $1`, x.id).Scan(&state, &settled)
	return state, settled, err
}

// until waits for something of the campaign.
func (p *campaignRun) until(x *promo, within time.Duration, what string, done func(state string, settled int64) bool) {
	p.t.Helper()
	for limit := time.Now().Add(within); ; wait(50*time.Millisecond, p.ctx.Done()) {
		state, settled, err := p.state(p.ctx, x)
		if err == nil && done(state, settled) {
			return
		}
		if time.Now().After(limit) {
			p.t.Fatalf("%s is not %s after %v: %s, %d settled, %v\n%s", x.sending().what, what, within, state, settled, err, p.stuck(x))
		}
	}
}

// stuck describes why a campaign has not ended.
func (p *campaignRun) stuck(x *promo) string {
	var text string
	err := p.stack.SQL.QueryRow(p.ctx, `select concat('cut ', c.cut_at, ' after ', c.cut_after, ' lease ', c.cut_lease_until - clock_timestamp(), E'\n',
		(select string_agg(format('message %s: published %s stored %s', seq, published_at, stored_at), E'\n') from campaign_messages m where m.campaign_id = c.id and stored_at is null), E'\n',
		(select string_agg(format('batch %s %s held %s: due %s sent %s failed %s runs %s next %s lease %s', id, b.state, held, due_count, sent_count, failed_count, runs,
			next_run_at - clock_timestamp(), lease_until - clock_timestamp()), E'\n') from batches b where b.kind = 'campaign' and b.owner_id = c.id and b.state <> 'done'))
		from campaigns c where c.id = $1`, x.id).Scan(&text)
	if err != nil {
		return err.Error()
	}
	return text
}

func (p *campaignRun) settle(x *promo, within time.Duration) {
	p.t.Helper()
	p.until(x, within, "settled", func(state string, _ int64) bool {
		if state != "finished" && state != "cancelled" {
			return false
		}
		var books bool
		err := p.stack.SQL.QueryRow(p.ctx, `select settled_at is not null from campaigns where id = $1`, x.id).Scan(&books)
		return err == nil && books
	})
}

// account checks one campaign. Its batches hold its audience, each user once, and each user has
// the one expected outcome. The sinks have received exactly the messages that are recorded as
// sent, and none at or after the campaign's end. The product's own balance sheet agrees.
func (p *campaignRun) account(x *promo) {
	p.t.Helper()
	s, l := x.sending(), p.read(x.sending(), x.channel)
	p.completeAudience(x, l)
	p.fates(x, l)
	if x.channel != delivery.App {
		keys := map[string]recipient{}
		about := &delivery.Subject{Kind: delivery.KindCampaign, OwnerID: x.id}
		for _, u := range x.audience.users {
			keys[keyAbout(about, u, x.channel)] = recipient{x.channel, u}
		}
		seen := p.seen(keys)
		p.compare(s, x.channel, l, seen)
		p.repetitions(s, seen)
	}
	r := &p.report
	r.reminders += int64(l.due.GetCardinality())
	r.sent += int64(l.sent.GetCardinality())
	r.expired += int64(len(l.cause))
	r.recovered += l.recovered
	b, err := campaignsdb.NewCampaigns(p.stack.DB, audiencedb.NewSegments(p.stack.DB)).Balance(p.ctx, x.id)
	r.lines++
	if err != nil || b.Difference() != 0 || b.Twice != 0 || b.Counted.InFlight != 0 || !b.Final || b.Counted.Reserved != int64(l.due.GetCardinality()) {
		p.t.Errorf("%s does not balance: %+v %v", s.what, b, err)
	}
}

// completeAudience checks that exactly the users of the audience are in a batch. [system.read]
// reports a user in two batches.
func (p *campaignRun) completeAudience(x *promo, l line) {
	meant := roaring64.New()
	for _, u := range x.audience.users {
		meant.Add(uint64(u))
	}
	missed, ghosts := roaring64.AndNot(meant, l.due), roaring64.AndNot(l.due, meant)
	p.report.missed += int64(missed.GetCardinality())
	if missed.GetCardinality()+ghosts.GetCardinality() > 0 {
		p.t.Errorf("%s: %d of %d in its audience were missed, %d others are in it", x.sending().what, missed.GetCardinality(), meant.GetCardinality(), ghosts.GetCardinality())
	}
}

// fates checks that each recipient has exactly one outcome, and that it is an allowed outcome.
func (p *campaignRun) fates(x *promo, l line) {
	var wrong complaints
	for it := l.due.Iterator(); it.HasNext(); {
		u := int64(it.Next())
		sent, cause, other := l.sent.Contains(uint64(u)), l.cause[u], l.other[u]
		_, expired := l.cause[u]
		told := 0
		for _, yes := range []bool{sent, expired, other != ""} {
			if yes {
				told++
			}
		}
		want := p.unreachable(x, u)
		switch {
		case told != 1:
			wrong.add("user %d has %d outcomes: sent %v, expired %q, %s", u, told, sent, cause, other)
		case want != "" && strings.HasPrefix(other, want):
		case other != "" && x.verdict == mayBeSkipped && strings.HasPrefix(other, "skipped (campaign_cancelled"):
		case expired && cause != "" && x.verdict == mayExpire:
		case !sent, want != "":
			p.report.missed++
			wrong.add("user %d: sent %v, expired %q, %s; expected %q", u, sent, cause, other, cmp.Or(want, "sent"))
		}
	}
	stray := roaring64.AndNot(l.sent, l.due)
	if n := stray.GetCardinality(); n > 0 {
		wrong.add("%d are recorded as sent who were not due", n)
	}
	wrong.report(p.t, x.sending(), x.channel)
}

// unreachable returns the beginning of the outcome of a user that must be left out, or "" for a
// user that can be reached. A user that is cancelled or expires first has that outcome instead.
func (p *campaignRun) unreachable(x *promo, u int64) string {
	switch {
	case x.channel == delivery.Webhook && u%optedOut == 0:
		return "skipped (opted_out"
	case x.channel == delivery.Email && u%addressless == 0:
		return "skipped (no_contact"
	}
	return ""
}

// short checks that the campaign that was cut short really was, in the middle.
func (p *campaignRun) short(x *promo) {
	l := p.read(x.sending(), x.channel)
	rest := len(x.audience.users) - int(l.sent.GetCardinality())
	if l.sent.IsEmpty() || rest < len(x.audience.users)/20 {
		p.t.Errorf("%s was not cut short in its middle: %d sent, %d not", x.sending().what, l.sent.GetCardinality(), rest)
	}
}

// sampleCampaign reads the outcomes of some users of the campaign from the API and checks that
// they were sent to.
func (p *campaignRun) sampleCampaign(x *promo) {
	for _, u := range x.audience.users[:min(20, len(x.audience.users))] {
		var one struct{ Outcome string }
		p.crowd.must(p.ctx, call{method: "GET", path: x.path("recipients/" + strconv.FormatInt(u, 10))}, &one)
		if !slices.Contains([]string{"sent", "recovered"}, one.Outcome) {
			p.t.Errorf("user %d of %s: the API says %q", u, x.sending().what, one.Outcome)
		}
	}
}
