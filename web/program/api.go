package program

import (
	"context"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
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
	p.OnClose(func() error { keys.Close(); return nil })
	return api.New(api.Deps{
		Deps: pipeline.Deps{Keys: p.Stores.Staff, Tokens: tokens, Idempotency: keys, Security: p.security,
			Now: app.Clock, Log: p.Log, RequestTimeout: p.Config.RequestTimeout,
			Budget: middleware.NewBudget(p.Config.InFlight(), "users", p.budgets), StaffBudget: middleware.NewBudget(staffInFlight, "staff", p.budgets),
			UserLimit: p.Config.RatePerUser, KeyLimit: p.Config.RatePerKey, PublicURL: p.Config.PublicURL},
		Audience:  audience.Deps{Users: p.users, Segments: p.segments, Uploads: uploads, Phones: p.newPhones()},
		Campaigns: campaigns.Deps{Campaigns: p.campaigns},
		Coupons: coupons.Deps{Claims: p.claiming, Coupons: p.coupons, CouponAdmin: p.couponAdmin, Codes: p.codes, Redeemer: p.redeemer, Grants: p.grants,
			Templates: p.templates, Uploads: uploads, Passes: p.passes},
		Delivery: apidelivery.Deps{Inbox: p.inbox, Hub: p.hub, DeadLetters: p.deadLetters, Suppressions: p.suppressions()},
		Drops: drops.Deps{Templates: p.templates, Shops: templates, Messages: p.messages, Pictures: p.pictures, Board: p.Stores.Boards, Cockpits: p.Stores.Cockpits, Forecaster: p.Forecaster(),
			Stock:     drops.Stock{Accounts: p.accounts, Ledgers: gateLedgers{p.Stores.StockLedgers, templates, p.accounts}, Tallies: p.Stores.CouponTallies, Figures: p.Stores.Figures()},
			Reminders: p.reminders, Explainer: p.explainer, Channels: &p.channels, LiveChannel: p.liveChannels()},
		Work: work.Deps{Jobs: p.jobs, Hooks: p.hooks, Closing: p.hub.Closed},
	}), nil
}
