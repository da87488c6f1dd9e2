package main

import (
	"context"
	"errors"
	"os"
	"time"

	"dropbell/lab/tools/dev/demo"
)

// offer is the drop of the printed examples.
type offer struct {
	drop  demo.Drop
	token string // of user demo.FirstUser, empty when tokens are issued elsewhere
}

// seed loads the demo data into a new database and makes sure that there is a
// drop for the examples.
func (s *stack) seed(ctx context.Context) (offer, error) {
	if s.settings.get("DEMO") == "0" {
		return offer{}, nil
	}
	client := demo.NewClient(s.settings.url(), s.settings.get("ADMIN_API_KEY"))
	empty, err := client.IsNew(ctx)
	if err != nil {
		return offer{}, err
	}
	var o offer
	if empty {
		o.drop, err = seedAll(ctx, client)
	} else {
		o.drop, err = seedSoon(ctx, client)
	}
	return o, errors.Join(err, o.sign(s.settings.issuer()))
}

func (o *offer) sign(by demo.Issuer) (err error) {
	if by.Secret == "" {
		return nil
	}
	o.token, err = by.Token(demo.FirstUser, time.Now(), 24*time.Hour)
	return err
}

// seedAll fills a new database. The drop that opens first is made first, because its time is
// already running.
func seedAll(ctx context.Context, client *demo.Client) (demo.Drop, error) {
	say("new database: loading demo data (DEMO=0 leaves it empty) …")
	users, err := client.LoadUsers(ctx)
	if err != nil {
		return demo.Drop{}, err
	}
	say("  %d users", users)
	if err := client.NameShop(ctx); err != nil {
		return demo.Drop{}, err
	}
	soon, err := addSoon(ctx, client)
	if err != nil {
		return soon, err
	}
	for _, next := range []struct {
		add   func(context.Context, time.Time) (demo.Drop, error)
		users int
	}{{client.AddTomorrow, 4000}, {client.AddLater, 1500}} {
		d, err := next.add(ctx, time.Now())
		if err == nil {
			err = reserve(ctx, client, d, demo.Spread{Users: next.users})
		}
		if err != nil {
			return soon, err
		}
	}
	_, err = client.AddDraft(ctx, time.Now())
	return soon, err
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
	return d, reserve(ctx, client, d, demo.Spread{Users: 3000, FiveMinutes: true})
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
