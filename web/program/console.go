package program

import (
	"context"
	"time"

	"dropbell/adapters/asynq"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/cell"
	"dropbell/domain/staff/alert"
	"dropbell/domain/testmessage"
	"dropbell/web/api"
	"dropbell/web/console"
	"dropbell/web/console/access"
	"dropbell/web/console/shell"
	"dropbell/web/program/wiring"
)

// newConsole makes the console. Lists of the console of home have the rows of all cells, and forms their
// shops.
func (p *program) newConsole(described *api.API) *console.Console {
	d := p.consoleDeps(described)
	if len(p.others) > 0 {
		d.ShopCell = func(shop int64) (int, bool) {
			m := p.places.Map()
			n, ok := m.Shops[shop]
			return int(n), ok || m.Known
		}
		d.Settle = func(ctx context.Context, shop int64, do func(int)) error {
			return p.places.Settle(ctx, shop, func(n cell.Number) { do(int(n)) })
		}
	}
	for i, one := range p.others {
		further := one.consoleDeps(described)
		d.Others = append(d.Others, shell.Another{Name: one.Config.CellName(), Shops: one.Stores.Templates, Answers: p.places.answers(i + 1), Unread: further.Unread})
		d.Join(further)
	}
	return console.New(d)
}

// consoleDeps gives the console what it needs besides use cases and stores.
func (p *program) consoleDeps(described *api.API) console.Deps {
	return wiring.Console{UseCases: p.useCases, Surroundings: p.surroundings,
		Shell: shell.Deps{Staff: p.staff, Replica: p.replica(), Security: p.security, PublicURL: p.Config.PublicURL, DefaultZone: time.UTC, Log: p.Log, Cells: p.Config.CellNames(), Cell: p.Config.CellName()},
		Access: access.Deps{SingleSignOn: p.singleSignOn(),
			Throttle: shell.NewThrottle(signInBurst, signInEvery, app.Clock), Guesses: shell.NewThrottle(guessesBurst, guessesEvery, app.Clock),
			AllGuesses: shell.NewThrottle(allBurst, allEvery, app.Clock)},
		API: described.Pipeline, Hooks: p.hooks, Monitor: p.monitor.Handler, Queues: asynq.NewInspector(p.Redis),
		Alerts:   &alert.Service{Store: workdb.NewAlerts(p.DB, p.addresses)},
		Browsers: alert.Browsers{Store: p.Stores.Alerts, PublicKey: p.Config.VAPIDPublicKey},
		Tests:    &testmessage.ChannelTests{Store: p.Stores.ChannelTests, Configured: &p.channels, Patience: 3 * time.Second},
		Pictures: p.pictures, PicturesURL: p.Config.PublicURL, Providers: p.consoleProviders(), Mail: p.mailCheck(), TextCosts: p.textCosts(), Circuits: p.circuits(), Complete: p.completeSMS,
		Paces: redisgate.NewShards(p.Redis), VerifiedOnly: p.Config.SMS.VerifiedOnly, Patience: 3 * time.Second,
		CampaignLink: p.campaignLinks().Example(p.Config.PublicURL), DropLink: p.linkExample}.Deps()
}
