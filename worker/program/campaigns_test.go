package program

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/worker/commands"
)

// campaignFixture is workers on one database and one Redis.
type campaignFixture struct {
	*testing.T
	env     map[string]string // of the workers
	url     string
	sql     *pgxpool.Pool
	redis   goredis.UniversalClient
	service *campaign.Service
	stop    func()
}

// newCampaignFixture starts the given number of workers. more are names and values of
// environment variables, in addition to the variables that every worker needs.
func newCampaignFixture(t *testing.T, workers int, more ...string) *campaignFixture {
	t.Helper()
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0"}
	for pair := range slices.Chunk(more, 2) {
		env[pair[0]] = pair[1]
	}
	r := &campaignFixture{T: t, env: env, url: env["DATABASE_URL"]}
	db, err := postgres.Open(t.Context(), r.url, postgres.Options{AppName: "test"})
	r.must(err)
	t.Cleanup(db.Close)
	r.sql = db.Pool
	r.redis, err = redis.Open(env["REDIS_URL"])
	r.must(err)
	t.Cleanup(func() { _ = r.redis.Close() })
	store, templates := campaignsdb.NewCampaigns(db, audiencedb.NewSegments(db)), dropsdb.NewTemplates(db)
	publisher := campaign.Publisher{Store: store, Lock: redis.NewLock(r.redis), Templates: templates, Channels: delivery.ChannelSetOf(delivery.App, delivery.Webhook, delivery.SMS), Now: app.Clock}
	r.service = &campaign.Service{Store: store, Approvals: &approval.Service{Store: store, Publisher: publisher}, Templates: templates,
		Users: &user.Service{Store: audiencedb.NewUsers(db)}, Channels: publisher.Channels, Audiences: campaign.AudienceKinds(), Now: app.Clock}
	r.start(workers)
	return r
}

// start starts so many workers, which [campaignFixture.stop] ends.
func (r *campaignFixture) start(workers int) {
	ctx, stop := context.WithCancel(r.Context())
	ended := make(chan error, workers)
	for range workers {
		go func() { ended <- run(ctx, func(name string) string { return r.env[name] }, io.Discard) }()
	}
	r.stop = func() {
		stop()
		for range workers {
			if err := <-ended; err != nil {
				r.Error(err)
			}
		}
	}
}

func (r *campaignFixture) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *campaignFixture) exec(sql string, args ...any) {
	r.Helper()
	_, err := r.sql.Exec(r.Context(), sql, args...)
	r.must(err)
}

func (r *campaignFixture) publish(change func(*campaign.Spec)) campaign.Campaign {
	r.Helper()
	s := campaign.Spec{Name: "Spring", Channel: delivery.App, Audience: campaign.Audience{Kind: campaign.Everybody},
		Content:  delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: "t", Body: "b"}}}}},
		StartsAt: app.Clock(), EndsAt: app.Clock().Add(time.Hour)}
	if change != nil {
		change(&s)
	}
	c, err := r.service.Create(r.Context(), staff.System(), s, "")
	r.must(err)
	c, err = r.service.Do(r.Context(), staff.System(), c.ID, 0, campaign.Publishing, "")
	r.must(err)
	return c
}

// until polls the campaign.
func (r *campaignFixture) until(c campaign.Campaign, what string, done func(campaign.Status) bool) campaign.Status {
	r.Helper()
	var st campaign.Status
	for end := time.Now().Add(localstack.Patience(r.T)); time.Now().Before(end); {
		var err error
		st, err = r.service.Campaign(r.Context(), staff.System(), c.ID)
		r.must(err)
		if done(st) {
			return st
		}
		<-time.After(50 * time.Millisecond)
	}
	r.Fatalf("%s: %s %+v", what, st.State, st.Progress)
	return st
}

func finished(st campaign.Status) bool { return st.SettledAt != nil }

// audited runs the audit command on the campaign.
func (r *campaignFixture) audited(c campaign.Campaign) {
	r.Helper()
	var out strings.Builder
	getenv := func(name string) string { return map[string]string{"DATABASE_URL": r.url}[name] }
	if err := commands.Do(r.Context(), []string{"audit", "campaign", fmt.Sprint(c.ID)}, getenv, &out); err != nil || !strings.Contains(out.String(), "balances") {
		r.Errorf("audit: %v\n%s", err, &out)
	}
}

// TestCampaignThroughWorkers: a campaign starts two seconds later by its timer and is sent at
// its rate. While it is paused, nothing is sent. Redis is emptied during the campaign. In the
// end each recipient has the message.
func TestCampaignThroughWorkers(t *testing.T) {
	r := newCampaignFixture(t, 2)
	r.exec(`insert into users (id) select i * 3 from generate_series(1, 3000) as i`)
	c := r.publish(func(s *campaign.Spec) { s.StartsAt, s.RatePerSecond = app.Clock().Add(2*time.Second), 400 })
	st := r.until(c, "nothing goes out", func(st campaign.Status) bool { return st.Progress.Sent > 0 })
	if early := st.StartedAt.Before(c.StartsAt); early || st.StartedAt.Sub(c.StartsAt) > 5*time.Second {
		t.Errorf("started at %v, planned for %v", st.StartedAt, c.StartsAt)
	}
	began := time.Now()
	_, err := r.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Pausing, "")
	r.must(err)
	<-time.After(2 * time.Second) // within which a pause takes effect
	before := r.until(c, "", func(campaign.Status) bool { return true }).Progress.Sent
	r.must(r.redis.FlushAll(t.Context()).Err())
	<-time.After(1500 * time.Millisecond)
	after := r.until(c, "", func(campaign.Status) bool { return true })
	if after.Progress.Sent != before || after.Progress.InFlight == 0 {
		t.Fatalf("%d were sent while paused, %d in flight", after.Progress.Sent-before, after.Progress.InFlight)
	}
	if most := 400*time.Since(began).Seconds() + 1000; float64(before) > most {
		t.Errorf("%d sent at 400 a second", before)
	}
	_, err = r.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Resuming, "")
	r.must(err)
	resumed := time.Now()
	r.until(c, "it does not go on", func(st campaign.Status) bool { return st.Progress.Sent > before })
	t.Logf("went on %v after it was resumed", time.Since(resumed))
	_, err = r.service.Edit(t.Context(), staff.System(), c.ID, r.until(c, "", func(campaign.Status) bool { return true }).Version, unlimited(c.Spec))
	r.must(err)
	st = r.until(c, "it does not finish", finished)
	if st.State != campaign.Finished || st.Progress.Sent != 3000 || st.Progress.Reserved != 3000 {
		t.Errorf("%s %+v", st.State, st.Progress)
	}
	r.audited(c)
	r.stop()
}

func unlimited(s campaign.Spec) campaign.Spec {
	s.RatePerSecond = 0
	return s
}

// TestCampaignGrantsThroughTheGate: the stock suffices for a part of the audience. Each user
// that gets a message has a coupon, exactly once.
func TestCampaignGrantsThroughTheGate(t *testing.T) {
	r := newCampaignFixture(t, 2)
	r.exec(`insert into users (id) select i from generate_series(1, 1500) as i`)
	service := &template.Service{Store: r.service.Templates.(dropsdb.Templates), Now: app.Clock}
	opens := app.Clock().Add(2 * time.Hour).Truncate(time.Second)
	tpl, err := service.Create(t.Context(), staff.System(), template.Spec{ShopNumber: 10, Name: "Half price", Kind: template.AmountOff,
		AmountOff: 1000, Currency: "CNY", Target: template.WholeShop, Stock: 600, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour),
		ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable}, "")
	r.must(err)
	_, err = service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Publishing, "")
	r.must(err)
	c := r.publish(func(s *campaign.Spec) { s.GrantTemplate = tpl.ID })
	st := r.until(c, "it does not finish", finished)
	var coupons, owners int64
	r.must(r.sql.QueryRow(t.Context(), `select count(*), count(distinct user_id) from coupons where template_id = $1 and origin = $2`, tpl.ID, claim.ByCampaign).
		Scan(&coupons, &owners))
	if coupons != 600 || owners != 600 || st.Progress.Sent != 600 || st.Progress.Skipped != 900 {
		t.Errorf("%d coupons of %d users, %+v", coupons, owners, st.Progress)
	}
	r.audited(c)
	// A worker counts the campaign's results. A count that began before the end covers only the
	// results until then.
	want := campaign.Tally{Assigned: 1500, Sent: 600, Claimed: 600}
	r.exec(`update campaigns set count_due_at = '-infinity'`)
	var results campaign.Results
	for end := time.Now().Add(localstack.Patience(t)); results.Meant() != want && time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		_, results, err = r.service.Results(t.Context(), staff.System(), c.ID)
		r.must(err)
	}
	if results.Meant() != want || *results.AccountOff != 0 {
		t.Errorf("counted %+v", results)
	}
	r.stop()
}

// TestLatchLetsOneThrough: the quick refusal in Redis, and that it is given back.
func TestLatchLetsOneThrough(t *testing.T) {
	client, err := redis.Open(localstack.RedisServer(t).URL())
	musttest.OK(t, err)
	defer client.Close()
	l, key := redis.NewLock(client), [32]byte{1}
	take := func(id int64) bool {
		mine, err := l.Take(t.Context(), key, id, time.Minute)
		musttest.OK(t, err)
		return mine
	}
	if first, again := take(1), take(1); !first || !again || take(2) {
		t.Error("the lock does not hold for one")
	}
	if err := l.Release(t.Context(), key, 2); err != nil || take(2) {
		t.Errorf("a stranger released it: %v", err)
	}
	if err := l.Release(t.Context(), key, 1); err != nil || !take(2) {
		t.Errorf("it was not released: %v", err)
	}
}
