package campaigns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/recipe"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// kitchen is a shop with recipes, and what keeps them.
type kitchen struct {
	*pgtest.Fixture
	store     campaignsdb.Recipes
	campaigns campaignsdb.Campaigns
	keeper    *recipe.Keeper
	service   *recipe.Service
}

// free is a lock that each campaign gets.
type free struct{}

func (free) Take(context.Context, [32]byte, int64, time.Duration) (bool, error) { return true, nil }
func (free) Release(context.Context, [32]byte, int64) error                     { return nil }

func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	g := &kitchen{Fixture: pgtest.New(t)}
	g.store, g.campaigns = campaignsdb.NewRecipes(g.DB), campaignsdb.NewCampaigns(g.DB, g.Segments)
	g.keeper = g.keeps(g.store, g.campaigns)
	g.service = &recipe.Service{Store: g.store}
	g.Shops(10)
	return g
}

// keeps returns a keeper that works on the stores.
func (g *kitchen) keeps(store recipe.KeeperStore, campaigns interface {
	campaign.Store
	approval.Store
}) *recipe.Keeper {
	channels := delivery.ChannelSetOf(delivery.App, delivery.Email)
	approvals := &approval.Service{Store: campaigns, Publisher: campaign.Publisher{Store: campaigns, Lock: free{}, Templates: g.Templates, Channels: channels, Now: pgtest.Clock}}
	return &recipe.Keeper{Store: store, Templates: g.Templates, Campaigns: &campaign.Service{Store: campaigns, Approvals: approvals, Templates: g.Templates, Channels: channels,
		Audiences: g.campaigns.Audiences(), Now: pgtest.Clock}}
}

// on turns a recipe on, as if it had been on for an hour.
func (g *kitchen) on(f recipe.Form, change func(*recipe.Settings)) {
	g.Helper()
	set := recipe.Settings{On: true, AfterMinutes: 10, Days: 30, EveryDays: 20, Texts: map[string]delivery.Text{"": {Title: "Hello", Body: "Come"}}}
	if f.AboutDrop() {
		set.Texts[""] = delivery.Text{Title: "About {{drop}}", Body: "Come"}
	}
	if change != nil {
		change(&set)
	}
	g.Must(g.service.Save(g.Context(), staff.System(), 10, f, 0, set))
	g.Exec(`update recipes set since = now() - interval '3 hours'`)
}

// opened returns a drop that opened an hour ago, for which these users reserved.
func (g *kitchen) opened(stock int, reserved ...user.ID) template.Template {
	g.Helper()
	t := g.Published(2 * time.Hour)
	for _, id := range reserved {
		g.Reserve(t, id, pgtest.Reminders(delivery.App, 10)...)
	}
	g.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 hour', closes_at = date_trunc('second', now()) + interval '5 hours', stock = $2, issued = 0 where id = $1`, t.ID, stock)
	return t
}

func (g *kitchen) claimed(t template.Template, ids ...user.ID) {
	g.Helper()
	for _, id := range ids {
		g.Exec(`insert into claim_counts (template_id, user_id, issued) values ($1, $2, 1)`, t.ID, id)
		g.Exec(`update templates set issued = issued + 1 where id = $1`, t.ID)
	}
}

func (g *kitchen) sweep() {
	g.Helper()
	g.Must(g.keeper.Sweep(g.Context()))
}

// rounds are the rounds of the form, and their users.
func (g *kitchen) rounds(f recipe.Form) (list []recipe.Listed, users [][]user.ID) {
	g.Helper()
	p, err := g.service.Page(g.Context(), staff.System(), 10)
	g.Must(err)
	for _, l := range p.Rounds {
		if l.Form != f {
			continue
		}
		var ids []user.ID
		if l.SegmentID != 0 {
			ids, err = g.Segments.Members(g.Context(), l.SegmentID, 0, 100)
			g.Must(err)
		}
		list, users = append(list, l), append(users, ids)
	}
	return list, users
}

// TestMissed: users who reserved and did not claim get one campaign for a drop, however many workers look and however
// often; a drop without stock, a draft and a drop that opened before the recipe was on get none.
func TestMissed(t *testing.T) {
	g := newKitchen(t)
	drop := g.opened(5, 1, 2, 3, 4)
	g.claimed(drop, 2)
	full := g.opened(1, 1, 2)
	g.claimed(full, 1)
	g.on(recipe.Missed, func(s *recipe.Settings) { s.HoldOut = 10 })
	for _, err := range pgtest.Together(4, func(int) error { return g.keeper.Sweep(t.Context()) }) {
		g.Must(err)
	}
	g.Exec(`update recipes set due_at = now()`)
	g.sweep()
	list, users := g.rounds(recipe.Missed)
	if len(list) != 1 || !slices.Equal(users[0], []user.ID{1, 3, 4}) || list[0].Drop != drop.ID || list[0].State != recipe.Done || list[0].Why != nil {
		t.Fatalf("%+v: %v", list, users)
	}
	c, err := g.campaigns.Campaign(t.Context(), list[0].CampaignID)
	if g.Must(err); c.State != campaign.Scheduled && c.State != campaign.Running || c.Content.HoldOut != 10 || c.Content.Variants[0].Texts[""].Title != "About "+drop.Name || c.EndsAt.After(pgtest.Clock().Add(5*time.Hour+time.Minute)) {
		t.Errorf("%+v", c)
	}
	if n := g.Number(`select count(*) from campaigns`); n != 1 {
		t.Errorf("%d campaigns", n)
	}
	// Right before sending: who has claimed since, and all once the stock is gone.
	gone := func() map[user.ID]bool {
		t.Helper()
		f, err := g.campaigns.Facts(t.Context(), &delivery.Batch{ID: 1, Owner: c.ID, Left: []user.ID{1, 3, 4}})
		g.Must(err)
		return f.Gone
	}
	g.claimed(drop, 3)
	if list := gone(); len(list) != 1 || !list[3] {
		t.Errorf("gone: %v", list)
	}
	g.Exec(`update templates set stock = issued where id = $1`, drop.ID)
	if list := gone(); len(list) != 3 {
		t.Errorf("gone: %v", list)
	}
	if found, _ := g.service.Page(t.Context(), staff.System(), 10); found.Drops != 2 {
		t.Errorf("%+v", found)
	}
}

// TestLost: users without a coupon of a drop that sold out, and the entries of a draw that did not win. They are told the next drops; without one they get nothing.
func TestLost(t *testing.T) {
	g := newKitchen(t)
	full := g.opened(1, 1, 2)
	g.claimed(full, 1)
	drawn := g.opened(2, 5)
	g.Exec(`update templates set opening_mode = 'draw' where id = $1`, drawn.ID)
	g.Exec(`insert into draws (template_id, template_version, state, key, source, cards, opens_at, closes_at, seal, sealed_at, round, evidence, result, drawn_at, won)
		values ($1, 1, 'done', 'k', 'drand', '{c}', now() - interval '1 hour', now(), 'seal', now(), 40000000, 'ab', 'result', now(), 1)`, drawn.ID)
	for i, state := range []string{"won", "entered", "struck"} {
		g.Exec(fmt.Sprintf(`insert into draw_entries (template_id, user_id, ticket, salt, entered_at, state) values (%d, %d, gen_random_uuid(), gen_random_uuid(), now(), '%s')`, drawn.ID, 10+i, state))
	}
	g.claimed(drawn, 10)
	next := g.Published(48 * time.Hour)
	g.on(recipe.Lost, func(s *recipe.Settings) {
		s.Texts[""] = delivery.Text{Title: "{{drop}} is gone", Body: "Next: {{drops}}"}
	})
	g.sweep()
	list, users := g.rounds(recipe.Lost)
	found := map[int64][]user.ID{}
	for i, l := range list {
		found[l.Drop] = users[i]
		c, err := g.campaigns.Campaign(t.Context(), l.CampaignID)
		if g.Must(err); l.DropName == "" || c.Content.Variants[0].Texts[""].Title != l.DropName+" is gone" || c.Content.Variants[0].Texts[""].Body != "Next: "+next.OpensAt.UTC().Format("Mon 2 Jan, 15:04")+" · "+next.Name+"\nUTC" {
			t.Errorf("%s: %+v", l.DropName, c.Content)
		}
	}
	if !slices.Equal(found[full.ID], []user.ID{2}) || !slices.Equal(found[drawn.ID], []user.ID{5, 11}) || len(found) != 2 {
		t.Errorf("%v", found)
	}
	g.Exec(`update templates set state = 'cancelled' where id = $1`, next.ID)
	again := g.opened(1, 1, 2)
	g.claimed(again, 1)
	g.Exec(`update recipes set due_at = now()`)
	g.sweep()
	if list, _ := g.rounds(recipe.Lost); list[0].Drop != again.ID || list[0].State != recipe.Done || list[0].CampaignID != 0 || list[0].Users != 1 || list[0].Why != nil {
		t.Errorf("no drop ahead: %+v", list[0])
	}
}

// TestWinBackAndCalendar: a win back finds users once in so many days; a calendar names the drops of the week.
func TestWinBackAndCalendar(t *testing.T) {
	g := newKitchen(t)
	old := g.opened(100)
	for id, days := range map[user.ID]int{1: 60, 2: 60, 3: 5} {
		g.Insert("coupons", pgtest.Row{"template_id": old.ID, "user_id": id, "issued_at": pgtest.Clock().AddDate(0, 0, -days)})
	}
	ahead := g.Published(48 * time.Hour)
	g.on(recipe.WinBack, func(s *recipe.Settings) { s.GrantTemplate = ahead.ID })
	g.on(recipe.Calendar, func(s *recipe.Settings) { s.Texts[""] = delivery.Text{Title: "Hello", Body: "See {{drops}}"} })
	begin := func(day string) {
		for _, f := range []recipe.Form{recipe.WinBack, recipe.Calendar} {
			r := g.Number(`select id from recipes where form = $1`, string(f))
			stored, err := g.store.Recipe(t.Context(), r)
			g.Must(err)
			g.Must(g.store.Begin(t.Context(), recipe.Round{RecipeID: r, Form: f, Key: "day:" + day, Until: pgtest.Clock().Add(time.Hour), Settings: stored.Settings}))
		}
		g.Exec(`update recipes set due_at = now() + interval '1 day'`)
		g.sweep()
	}
	begin("2027-01-01")
	list, users := g.rounds(recipe.WinBack)
	if len(list) != 1 || !slices.Equal(users[0], []user.ID{1, 2}) || list[0].Why != nil {
		t.Errorf("%+v: %v", list, users)
	}
	calendars, users := g.rounds(recipe.Calendar)
	if len(calendars) != 1 || !slices.Equal(users[0], []user.ID{1, 2, 3}) || calendars[0].CampaignID == 0 {
		t.Fatalf("%+v: %v", calendars, users)
	}
	c, err := g.campaigns.Campaign(t.Context(), calendars[0].CampaignID)
	if g.Must(err); c.Content.Variants[0].Texts[""].Body != "See "+ahead.OpensAt.UTC().Format("Mon 2 Jan, 15:04")+" · "+ahead.Name+"\nUTC" {
		t.Errorf("%+v", c.Content)
	}
	begin("2027-01-02") // the users of the day before are left out
	if list, users := g.rounds(recipe.WinBack); len(list) != 2 || len(users[0]) != 0 || list[0].State != recipe.Done || list[0].CampaignID != 0 {
		t.Errorf("%+v: %v", list, users)
	}
	g.Exec(`update recipe_rounds set at = at - interval '21 days' where key = 'day:2027-01-01'`)
	begin("2027-01-03")
	if _, users := g.rounds(recipe.WinBack); !slices.Equal(users[0], []user.ID{1, 2}) {
		t.Errorf("after the days: %v", users)
	}
}

// TestRecipesThatAreRefused: broken settings are refused, a stale form is, and a round whose campaign cannot be published
// says why; a shop that demands approval has its rounds wait for it.
func TestRecipesThatAreRefused(t *testing.T) {
	g := newKitchen(t)
	if err := g.service.Save(t.Context(), staff.System(), 10, recipe.Missed, 0, recipe.Settings{On: true}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("no text: %v", err)
	}
	other := staff.Actor{Label: "staff:7", Role: staff.Marketer, Shops: []int64{11}}
	if err := g.service.Save(t.Context(), other, 10, recipe.Missed, 0, recipe.Settings{}); fault.KindOf(err) != fault.Denied {
		t.Errorf("another shop: %v", err)
	}
	g.on(recipe.Missed, func(s *recipe.Settings) { s.Channel = delivery.SMS })
	if err := g.service.Save(t.Context(), staff.System(), 10, recipe.Missed, 0, recipe.Settings{AfterMinutes: 5}); err != fault.ErrStale {
		t.Errorf("a stale form: %v", err)
	}
	g.opened(5, 1, 2)
	g.sweep()
	list, _ := g.rounds(recipe.Missed)
	if len(list) != 1 || list[0].Why == nil || list[0].State != recipe.Done {
		t.Errorf("%+v", list)
	}
	p, err := g.service.Page(t.Context(), staff.System(), 10)
	g.Must(err)
	set := p.Recipes[0].Settings
	set.Channel = delivery.App
	g.Must(g.service.Save(t.Context(), staff.System(), 10, recipe.Missed, p.Recipes[0].Version, set))
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (10, 1)`)
	g.opened(5, 1, 2)
	g.sweep()
	if list, _ = g.rounds(recipe.Missed); len(list) != 2 || !list[0].Asked || list[0].Why != nil || list[0].Users != 2 {
		t.Errorf("%+v", list)
	}
}

// campaignRows is [campaignsdb.Campaigns] under another name than its method.
type campaignRows = campaignsdb.Campaigns

// mortalRecipes and mortalCampaigns are the stores of a keeper whose process dies.
type mortalRecipes struct {
	campaignsdb.Recipes
	*pgtest.Death
}

func (m mortalRecipes) Claim(ctx context.Context, lease time.Duration) (c recipe.Claim, found bool, err error) {
	err = m.Around(func() error { c, found, err = m.Recipes.Claim(ctx, lease); return err })
	return c, found, err
}

func (m mortalRecipes) Begin(ctx context.Context, r recipe.Round) error {
	return m.Around(func() error { return m.Recipes.Begin(ctx, r) })
}

func (m mortalRecipes) Find(ctx context.Context, r recipe.Round) (found recipe.Round, err error) {
	err = m.Around(func() error { found, err = m.Recipes.Find(ctx, r); return err })
	return found, err
}

func (m mortalRecipes) Note(ctx context.Context, r recipe.Round) error {
	return m.Around(func() error { return m.Recipes.Note(ctx, r) })
}

func (m mortalRecipes) Settle(ctx context.Context, c recipe.Claim, next time.Time) error {
	return m.Around(func() error { return m.Recipes.Settle(ctx, c, next) })
}

type mortalCampaigns struct {
	campaignRows
	*pgtest.Death
}

func (m mortalCampaigns) Insert(ctx context.Context, c campaign.Change) (made campaign.Campaign, err error) {
	err = m.Around(func() error { made, err = m.campaignRows.Insert(ctx, c); return err })
	return made, err
}

func (m mortalCampaigns) Save(ctx context.Context, c campaign.Change) (saved campaign.Campaign, err error) {
	err = m.Around(func() error { saved, err = m.campaignRows.Save(ctx, c); return err })
	return saved, err
}

// TestRoundsOfWorkersThatDie lets a worker die before and after each of its writes about a round, at another one for each drop. The next
// worker goes on: each drop has one round with one list and one campaign, which was published once and is about each user once.
func TestRoundsOfWorkersThatDie(t *testing.T) {
	g := newKitchen(t)
	g.on(recipe.Missed, nil)
	for at := 1; ; at++ {
		drop := g.opened(5, 1, 2, 3)
		g.claimed(drop, 2)
		g.Exec(`update recipes set due_at = now()`)
		d := &pgtest.Death{At: at}
		if err := g.keeps(mortalRecipes{g.store, d}, mortalCampaigns{g.campaigns, d}).Sweep(t.Context()); errors.Is(err, pgtest.ErrDied) != d.Died() {
			t.Fatalf("instant %d: %v", at, err)
		}
		g.Exec(`update recipes set due_at = now()`)
		g.sweep()
		list, users := g.rounds(recipe.Missed)
		if len(list) == 0 || list[0].Drop != drop.ID || !slices.Equal(users[0], []user.ID{1, 3}) || list[0].Users != 2 || list[0].State != recipe.Done || list[0].Why != nil {
			t.Fatalf("instant %d: %+v: %v", at, list, users)
		}
		for what, n := range map[string]int64{
			"rounds": g.Number(`select count(*) from recipe_rounds`), "lists": g.Number(`select count(*) from segments where hidden`), "campaigns": g.Number(`select count(*) from campaigns where state = 'scheduled'`),
			"publications": g.Number(`select count(*) from audit where action = 'campaign.publish'`),
		} {
			if n != int64(at) {
				t.Errorf("instant %d: %d %s", at, n, what)
			}
		}
		if !d.Died() {
			if at < 12 {
				t.Errorf("a round has only %d instants", at)
			}
			return
		}
	}
}
