package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/lab/tools/dev/demo"
	"dropbell/lab/tools/dev/demo/past"
)

// offer is the drop of the printed examples.
type offer struct {
	drop  demo.Drop
	token string // of user demo.FirstUser, empty when tokens are issued elsewhere
	ours  bool   // the database has demo data only, and all of it
}

// seed loads the demo data into a new database, completes it if the start before was killed, and
// makes sure that there is a drop for the examples.
func (s *stack) seed(ctx context.Context) (o offer, err error) {
	if s.settings.get("DEMO") == "0" {
		return o, nil
	}
	client := demo.NewClient(s.settings.url(), s.settings.get("ADMIN_API_KEY"))
	steps, err := demo.OpenSteps(ctx, s.settings.get("DATABASE_URL"))
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, steps.Close(context.WithoutCancel(ctx))) }()
	begun, ours, err := steps.Begun(ctx)
	if err == nil && !ours {
		var empty bool
		if empty, err = client.IsNew(ctx); err == nil && empty {
			say("new database: loading demo data (DEMO=0 leaves it empty, -past=false leaves out its history) …")
			begun, err = steps.Begin(ctx)
			ours = true
		}
	}
	if err == nil && ours {
		o.drop, err = s.seedAll(ctx, steps, begun, client)
	}
	if err == nil && o.drop.ID == "" {
		o.drop, err = seedSoon(ctx, client)
	}
	o.ours = ours && err == nil
	return o, errors.Join(err, o.sign(s.settings.issuer()))
}

func (o *offer) sign(by demo.Issuer) (err error) {
	if by.Secret == "" {
		return nil
	}
	o.token, err = by.Token(demo.FirstUser, time.Now(), 24*time.Hour)
	return err
}

// seedAll carries out the steps that were not completed before, and returns the drop that opens
// soon if it was made now. That drop is made first, because its time is already running.
func (s *stack) seedAll(ctx context.Context, steps *demo.Steps, begun time.Time, client *demo.Client) (soon demo.Drop, err error) {
	type step struct {
		name string
		do   func(context.Context) error
	}
	list := []step{
		{"users", func(ctx context.Context) error {
			users, err := client.LoadUsers(ctx)
			if err == nil {
				say("  %d users", users)
			}
			return errors.Join(err, client.NameShop(ctx))
		}},
		{"soon", func(ctx context.Context) (err error) {
			soon, err = addSoon(ctx, client)
			return err
		}},
		{"tomorrow", func(ctx context.Context) error { return seedDrop(ctx, client, client.AddTomorrow, begun, 4000) }},
		{"later", func(ctx context.Context) error { return seedDrop(ctx, client, client.AddLater, begun, 1500) }},
		{"draft", func(ctx context.Context) error { return seedDrop(ctx, client, client.AddDraft, begun, 0) }},
	}
	if s.settings.past {
		list = append(list,
			step{"past", func(ctx context.Context) error { return s.seedPast(ctx, begun) }},
			step{"sold out opens", func(ctx context.Context) error { return client.OpenSoldOut(ctx, time.Now()) }},
			step{"members first", func(ctx context.Context) error { return seedDrop(ctx, client, client.AddMembersFirst, begun, 600) }},
			step{"campaigns", func(ctx context.Context) error { return client.AddCampaigns(ctx, begun) }},
			step{"series", func(ctx context.Context) error { return client.AddSeries(ctx, begun) }},
			step{"recipe", func(ctx context.Context) error { return client.AddRecipe(ctx, time.Now()) }},
			step{"codes", func(ctx context.Context) error { return client.AddCodes(ctx, begun) }},
			step{"shop", s.seedShop},
			step{"draw", s.seedDraw},
			step{"sold out", func(ctx context.Context) error { return client.SellOut(ctx, begun) }})
	}
	for _, next := range list {
		if err := steps.Once(ctx, next.name, func(ctx context.Context, _ pgx.Tx) error { return next.do(ctx) }); err != nil {
			return soon, err
		}
	}
	if !s.settings.past {
		return soon, nil
	}
	return soon, steps.Once(ctx, "orders", func(ctx context.Context, tx pgx.Tx) error {
		drop, coupons, err := past.OnSale(ctx, tx)
		if err != nil {
			return err
		}
		return errors.Join(client.AddOrders(ctx, drop, coupons), client.SetBudget(ctx, strconv.FormatInt(drop, 10), onSaleBudget))
	})
}

// onSaleBudget is the budget of the history's drop that is on sale, in minor units: its 3,000 coupons
// take off at most ¥20 each.
const onSaleBudget = 6_500_000

// seedShop lets the demo shop open its first drop, in time for a reminder.
func (s *stack) seedShop(ctx context.Context) error {
	if s.shop == nil {
		return nil
	}
	return s.shop.AddDrop(ctx, 7*time.Minute)
}

// drawEntries is how many made-up users enter the demo's draw.
const drawEntries = 100_000

// seedDraw lets the demo shop open a draw that can be entered and checked within the first five minutes.
func (s *stack) seedDraw(ctx context.Context) error {
	if s.shop == nil || s.settings.get("DRAW_LOCAL_BEACON") != "on" {
		return nil
	}
	began := time.Now()
	id, err := s.shop.AddDraw(ctx, 150*time.Second)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.settings.get("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := demo.FillDraw(ctx, conn, id, drawEntries); err != nil {
		return err
	}
	say("  a draw with %d entries: %.1f s", drawEntries, time.Since(began).Seconds())
	return nil
}

// seedDrop adds a drop and lets users reserve. A drop that a killed start has left is completed.
func seedDrop(ctx context.Context, client *demo.Client, add func(context.Context, time.Time) (demo.Drop, error), begun time.Time, users int) error {
	d, err := add(ctx, begun)
	if err != nil || users == 0 || d.OpensAt.Before(time.Now().Add(time.Hour)) {
		return err
	}
	return reserve(ctx, client, d, demo.Spread{Users: users})
}

// seedPast stores the history of the demo data.
func (s *stack) seedPast(ctx context.Context, begun time.Time) error {
	say("  drops and campaigns of the last eight weeks …")
	began := time.Now()
	steps, err := demo.OpenSteps(ctx, s.settings.get("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { _ = steps.Close(context.WithoutCancel(ctx)) }()
	if err := past.Make(ctx, steps, begun, past.Config{DatabaseURL: s.settings.get("DATABASE_URL"), ProvidersKeys: strings.Split(s.settings.get("PROVIDERS_KEY"), ","),
		First: demo.FirstUser, Last: demo.LastUser}); err != nil {
		return err
	}
	say("    %.1f s", time.Since(began).Seconds())
	return nil
}

// seedSoon adds a drop to an old database that has none to wait for.
func seedSoon(ctx context.Context, client *demo.Client) (demo.Drop, error) {
	d, ok, err := client.Soon(ctx, time.Now())
	if err != nil || ok {
		return d, err
	}
	say("no drop opens in the next minutes: adding one …")
	return addSoon(ctx, client)
}

func addSoon(ctx context.Context, client *demo.Client) (demo.Drop, error) {
	d, err := client.AddSoon(ctx, time.Now())
	if err != nil {
		return demo.Drop{}, err
	}
	return d, reserve(ctx, client, d, demo.SoonSpread)
}

func reserve(ctx context.Context, client *demo.Client, d demo.Drop, spread demo.Spread) error {
	say("  %q opens %s, reserving …", d.Name, d.OpensAt.Local().Format("2006-01-02 15:04:05"))
	began := time.Now()
	n, err := client.Reserve(ctx, d, spread, func(users int) { say("    %d of %d users", users, spread.Users) })
	if err != nil {
		return err
	}
	say("    %d reminders in %.1f s", n, time.Since(began).Seconds())
	return nil
}

// addDrop is the command `up drop`. It calls the API of the Dropbell that runs in another
// terminal.
func addDrop(ctx context.Context) error {
	state, err := readEnv(stateFile())
	if err != nil {
		return err
	}
	if _, err := running(state["PID"], binary("up")); err != nil {
		return err
	}
	client := demo.NewClient(state["URL"], state["ADMIN_API_KEY"])
	o := offer{}
	if o.drop, err = addSoon(ctx, client); err != nil {
		return err
	}
	by := demo.Issuer{Secret: state["AUTH_JWT_SECRET"], Name: state["AUTH_JWT_ISSUER"], Audience: state["AUTH_JWT_AUDIENCE"]}
	if err := o.sign(by); err != nil {
		return err
	}
	printOffer(os.Stdout, state["URL"], o)
	return nil
}

var errNotRunning = errors.New("nothing runs here: start it with `go tool task up`")
