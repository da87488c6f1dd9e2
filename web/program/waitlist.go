package program

import (
	"context"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/app"
	"dropbell/domain/series"
	"dropbell/domain/waitlist"
)

// newWaitlist returns the waitlists of users, which store users who join at the same time together.
func (p *program) newWaitlist() *waitlist.Service {
	store := couponsdb.NewWaitlists(p.DB, postgres.Grouping{Timeout: p.Config.RequestTimeout})
	p.OnClose(func() error { store.Close(); return nil })
	return &waitlist.Service{Store: store, Templates: p.lookup, Members: p.useCases.DoorMembers, Channels: &p.channels, Erased: p.Erased.Has, Now: app.Clock}
}

// standing returns the standing reservations of users.
func (p *program) standing() *series.Reservations {
	return &series.Reservations{Store: p.Stores.Series, Channels: &p.channels, Erased: p.Erased.Has}
}

// waits reports whether the refusal of a claim for lack of stock is to tell of the waitlist.
func (p *program) waits(ctx context.Context, templateID int64) bool {
	t, err := p.lookup.Shared(ctx, templateID)
	return err == nil && waitlist.Open(*t, app.Clock())
}
