package campaigns_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// tested makes a campaign of two versions about tpl, a fifth of whose recipients are in a test.
func tested(by string, early bool, tpl int64) func(*campaign.Spec) {
	return func(sp *campaign.Spec) {
		sp.Name, sp.Content = "Test "+by, delivery.Copy{Variants: []delivery.Variant{
			{Percent: 50, Texts: map[string]delivery.Text{"": {Title: "A", Body: "First https://shop.example/a"}}},
			{Percent: 50, Texts: map[string]delivery.Text{"": {Title: "B", Body: "Second https://shop.example/b"}}}},
			Test: &delivery.Test{Share: 20, By: by, Minutes: 60, Early: early}}
		if sp.EndsAt = sp.StartsAt.Add(5 * time.Hour); tpl != 0 {
			sp.Audience = campaign.Audience{Kind: campaign.Everybody}
			sp.Shop = 0
		}
	}
}

// later lets so much of the test's time pass.
func (s *campaignFixture) later(c campaign.Campaign, passed time.Duration) {
	s.Helper()
	s.Exec(`update campaigns set started_at = clock_timestamp() - $2::interval where id = $1`, c.ID, passed)
}

// sentTo returns the users whom the sink reached, by the title they read.
type titles struct {
	mu   sync.Mutex
	read map[user.ID]string
}

func (x *titles) sink() *pgtest.Sink {
	k := pgtest.NewSink(delivery.Webhook, 50)
	k.Answer = func(m delivery.Message, _ int) delivery.Result {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.read[m.To.ID] = m.Content.Title
		return delivery.Result{Status: delivery.Delivered}
	}
	return k
}

// The test goes to its share at first. After its time the version with more clicks goes to all
// other recipients, each once, although two workers decide at once, the process ends between the
// decision and the release, and every step is repeated.
func TestTheWinnerGoesToTheOthers(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(1000, 1)
	c := s.running(tested(delivery.ByOpened, false, 0))
	x := &titles{read: map[user.ID]string{}}
	sink := x.sink()
	s.Must(s.deliverer(sink).Drain(t.Context(), delivery.Webhook))
	group := func(id user.ID) int { return c.Content.Group(c.ID, id) }
	var waiting int
	for id := user.ID(1); id <= 1000; id++ {
		want := map[int]string{0: "A", 1: "B", delivery.Remaining: ""}[group(id)]
		if waiting += map[bool]int{true: 1}[want == ""]; x.read[id] != want {
			t.Fatalf("user %d of group %d reads %q", id, group(id), x.read[id])
		}
		if want == "B" && id%2 == 0 || want == "A" && id%20 == 0 { // not one by one: B is opened more often
			_, err := s.campaigns.Open(t.Context(), campaign.Reader{CampaignID: c.ID, UserID: id, Variant: group(id), Target: campaign.TargetMark("https://shop.example/b")})
			s.Must(err)
		}
	}
	if b := s.books(c); b.Counted.InFlight != int64(waiting) || waiting < 700 {
		t.Fatalf("%d wait: %+v", waiting, b.Counted)
	}
	if decided, err := s.campaigns.DecideNext(t.Context()); decided || err != nil {
		t.Fatalf("decided too early: %v", err)
	}
	if channels, err := s.campaigns.ReleaseDecided(t.Context()); len(channels) != 0 || err != nil {
		t.Fatalf("released before the decision: %v", err)
	}
	s.later(c, time.Hour+time.Second)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := s.campaigns.DecideNext(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	looks, err := s.campaigns.Decisions(t.Context(), c.ID)
	s.Must(err)
	if len(looks) != 1 || looks[0].Look != campaign.AtEnd || looks[0].Winner == nil || *looks[0].Winner != 1 || !looks[0].Beyond(delivery.ByOpened) {
		t.Fatalf("decided %+v", looks)
	}
	for i, a := range looks[0].Arms {
		opened := s.Number(`select count(*) from campaign_openings where campaign_id = $1 and variant = $2`, c.ID, i)
		if a.Variant != i || a.Did != opened || a.Sent != a.Assigned || a.Sent == 0 {
			t.Errorf("%+v, opened by %d", a, opened)
		}
	}
	if n := s.Number(`select count(*) from audit where action = 'campaign.decide'`); n != 1 {
		t.Errorf("%d entries in the audit log", n)
	}
	// The process ends here; another finds the decision and releases the recipients.
	for range 2 {
		_, err := s.campaigns.ReleaseDecided(t.Context())
		s.Must(err)
	}
	s.Must(s.deliverer(sink).Drain(t.Context(), delivery.Webhook))
	for range 2 {
		decided, err := s.campaigns.DecideNext(t.Context())
		if decided || err != nil {
			t.Errorf("decided again: %v", err)
		}
		if channels, err := s.campaigns.ReleaseDecided(t.Context()); len(channels) != 0 || err != nil {
			t.Errorf("released again: %v", err)
		}
	}
	s.reached(sink, 1000)
	for id := user.ID(1); id <= 1000; id++ {
		if want := map[int]string{0: "A", 1: "B", delivery.Remaining: "B"}[group(id)]; x.read[id] != want {
			t.Fatalf("user %d of group %d reads %q", id, group(id), x.read[id])
		}
	}
	if got := s.settled(c); got.Sent != 1000 {
		t.Errorf("sent %+v", got)
	}
	s.countNow(c)
	r := s.counted(c)
	rest, _ := r.Group(delivery.Remaining)
	if len(r.Groups) != 3 || rest.Assigned != int64(waiting) || rest.Sent != int64(waiting) || !r.Agree(campaign.Progress{Counts: s.books(c).Counted}) {
		t.Errorf("groups %+v", r.Groups)
	}
	series, err := s.campaigns.Series(t.Context(), c.ID)
	s.Must(err)
	if sum := series.Total(); sum.Sent != 1000 || sum.Opened != looks[0].Arms[0].Did+looks[0].Arms[1].Did || sum.Claimed != 0 {
		t.Errorf("series %+v", series)
	}
}

// The look halfway ends a test only beyond the stated bound, and is made once. A campaign that was
// cancelled is not decided.
func TestALookHalfway(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(600, 1)
	clear, even, late := s.running(tested(delivery.ByOpened, true, 0)), s.published(tested(delivery.ByOpened, true, 0)), s.published(tested(delivery.ByOpened, false, 0))
	for _, c := range []campaign.Campaign{even, late} {
		s.Exec(`update campaigns set name = name || id where id = $1`, c.ID)
		s.Must(s.launcher.Start(t.Context(), c.ID))
		s.Must(s.launcher.Cut(t.Context(), c.ID))
	}
	s.Must(s.deliverer((&titles{read: map[user.ID]string{}}).sink()).Drain(t.Context(), delivery.Webhook))
	for id := user.ID(1); id <= 600; id++ {
		if clear.Content.Group(clear.ID, id) == 0 {
			s.Exec(`insert into campaign_openings values ($1, $2, 0, $3)`, clear.ID, id, clear.StartedAt.Add(time.Second))
		}
	}
	for _, c := range []campaign.Campaign{clear, even, late} {
		s.later(c, 31*time.Minute)
	}
	s.Exec(`update campaign_openings set opened_at = clock_timestamp() - interval '1 minute'`)
	for decided := true; decided; {
		var err error
		decided, err = s.campaigns.DecideNext(t.Context())
		s.Must(err)
	}
	winners := func(c campaign.Campaign) (list []int) {
		looks, err := s.campaigns.Decisions(t.Context(), c.ID)
		s.Must(err)
		for _, d := range looks {
			w := -1
			if d.Winner != nil {
				w = *d.Winner
			}
			list = append(list, int(d.Look), w)
		}
		return list
	}
	for name, x := range map[string]struct {
		c    campaign.Campaign
		want []int
	}{"clear": {clear, []int{1, 0}}, "even": {even, []int{1, -1}}, "without the rule": {late, nil}} {
		if got := winners(x.c); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
	s.later(even, 61*time.Minute)
	s.later(late, 61*time.Minute)
	s.Exec(`update campaigns set state = 'cancelled', ended_at = clock_timestamp() where id = $1`, late.ID)
	for decided := true; decided; {
		var err error
		decided, err = s.campaigns.DecideNext(t.Context())
		s.Must(err)
	}
	if got := winners(even); !slices.Equal(got, []int{1, -1, 2, 0}) || len(winners(late)) != 0 {
		t.Errorf("at the end %v, cancelled %v", got, winners(late))
	}
}
