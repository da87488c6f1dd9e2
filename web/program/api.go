package program

import (
	"context"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/web/api"
	"dropbell/web/api/audience"
	"dropbell/web/api/campaigns"
	"dropbell/web/api/coupons"
	apidelivery "dropbell/web/api/delivery"
	"dropbell/web/api/drops"
	"dropbell/web/api/pipeline"
	"dropbell/web/api/work"
	"dropbell/web/middleware"
)

// newAPI gives each subject of the API its use cases.
func (p *program) newAPI(ctx context.Context) (*api.API, error) {
	var tokens *pipeline.Tokens
	if p.Config.JWTSecret != "" || p.Config.JWKSURL != "" {
		var err error
		if tokens, err = pipeline.NewTokens(ctx, pipeline.TokenOptions{Secret: p.Config.JWTSecret, JWKSURL: p.Config.JWKSURL,
			Issuer: p.Config.JWTIssuer, Audience: p.Config.JWTAud, MaxAge: p.Config.JWTMaxAge, Now: app.Clock, Log: p.Log}); err != nil {
			return nil, err
		}
	}
	keys, templates, uploads := workdb.NewIdempotency(p.DB), p.Stores.Templates, p.Stores.Uploads
	carts := couponsdb.NewCarts(p.DB, postgres.Grouping{Timeout: p.Config.RequestTimeout})
	p.OnClose(func() error { keys.Close(); carts.Close(); return nil })
	return api.New(api.Deps{
		Deps: pipeline.Deps{Keys: p.Stores.Staff, Tokens: tokens, Idempotency: keys, Security: p.security,
			Now: app.Clock, Log: p.Log, RequestTimeout: p.Config.RequestTimeout,
			Budget: middleware.NewBudget(p.Config.InFlight(), "users", p.budgets), StaffBudget: middleware.NewBudget(staffInFlight, "staff", p.budgets),
			UserLimit: p.Config.RatePerUser, KeyLimit: p.Config.RatePerKey, PublicURL: p.Config.PublicURL},
		Audience:  audience.Deps{Users: p.useCases.Users, Segments: p.useCases.Segments, Uploads: uploads, Phones: p.newPhones(), PushKey: p.Config.VAPIDPublicKey},
		Campaigns: campaigns.Deps{Campaigns: p.useCases.Campaigns, Approvals: p.useCases.Approvals, Recipes: p.useCases.Recipes},
		Coupons: coupons.Deps{Claims: p.claiming, Coupons: p.coupons, CouponAdmin: p.useCases.Coupons, Codes: p.useCases.Codes, Redeemer: p.redeemer, Access: p.accessCodes(), Grants: p.useCases.Grants,
			Templates: p.useCases.Templates, Uploads: uploads, Passes: p.passes, Orders: &coupon.Orders{Store: p.Stores.Orders, Now: app.Clock},
			Carts: &cart.Service{Store: carts, Templates: p.lookup}, CartOrders: p.cartOrders,
			ClaimPasses: p.newClaimPasses(), Signs: p.signs, Reviews: p.useCases.Reviews, Waitlist: p.waitlist},
		Delivery: apidelivery.Deps{Inbox: p.useCases.Inbox, Hub: p.hub, DeadLetters: p.useCases.DeadLetters, Suppressions: p.suppressions()},
		Drops: drops.Deps{Templates: p.useCases.Templates, Shops: templates, Messages: p.useCases.Messages, Pictures: p.pictures, Board: p.Stores.Boards, Cockpits: p.Stores.Cockpits, Forecaster: p.Forecaster(), Capacities: p.Capacities(), Earnings: p.useCases.Reports, Budgets: p.useCases.Budgets,
			Stock:     drops.Stock{Accounts: p.accounts, Ledgers: gateLedgers{p.Stores.StockLedgers, templates, p.accounts}, Tallies: p.Stores.CouponTallies, Figures: p.Stores.Figures()},
			Reminders: p.useCases.Reminders, Standing: p.standing(), Series: p.useCases.Series, Explainer: p.useCases.Explainer, Channels: &p.channels, Doors: p.useCases.Doors, Flight: p.useCases.Flight, Rehearsals: p.useCases.Rehearsals, DoorMembers: p.useCases.DoorMembers, LiveChannel: p.liveChannels(), Draws: p.draws(), DrawDesk: p.useCases.Draws},
		Work: work.Deps{Jobs: p.useCases.Jobs, Hooks: p.hooks, Closing: p.hub.Closed},
	}), nil
}
