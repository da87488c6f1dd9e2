// Package drops holds the part of the API about drops: templates and their steps,
// reservations with their outcomes, forecasts, and the shops that templates belong to.
package drops

import (
	"context"

	"dropbell/domain/budget"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/flight"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
	"dropbell/domain/picture"
	"dropbell/domain/rehearsal"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
	"dropbell/web/api/pipeline"
)

// Shops keeps the shops that templates belong to.
type Shops interface {
	// NameShop creates the shop or changes its name and time zone. The audit entry e gets the
	// values before and after. The claim address stays.
	NameShop(ctx context.Context, shop template.Shop, e staff.Entry) error
	Shops(ctx context.Context) ([]template.Shop, error)
}

// Stock are the use cases about the coupons of a template.
type Stock struct {
	// Accounts sums up where coupons are.
	Accounts gate.Accounts
	Ledgers  Ledgers
	Tallies  Tallies
	Figures  Figures
}

// Ledgers accounts for stock.
type Ledgers interface {
	// Ledger recounts the template's coupons.
	Ledger(ctx context.Context, templateID int64) (claim.Ledger, error)
	// WaitsCounted counts the users of a waitlist from their rows. off is how far its stored counters
	// differ from the rows.
	WaitsCounted(ctx context.Context, templateID int64) (sheet waitlist.Sheet, off int64, err error)
}

// Tallies counts the coupons of a template by state.
type Tallies interface {
	// Tally counts the states of the template's coupons, as far as events have arrived.
	Tally(ctx context.Context, templateID int64) (coupon.Tally, error)
}

// Figures compare sums that events keep with the rows.
type Figures interface {
	// Off returns by how much the sums of the template differ from its rows.
	Off(ctx context.Context, templateID int64) (int64, error)
}

// Deps are the use cases of this package. All are required unless stated otherwise.
type Deps struct {
	Templates *template.Service
	Shops     Shops
	// Messages keeps the senders of the shops' mails, Pictures their libraries of pictures.
	Messages   *message.Service
	Pictures   *picture.Service
	Board      reminder.BoardStore
	Cockpits   reminder.CockpitStore
	Forecaster *forecast.Forecaster
	Capacities *forecast.Capacities
	Earnings   Earnings
	Budgets    *budget.Service
	Stock
	Reminders *reminder.Service
	// Standing are the standing reservations of series.
	Standing   *series.Reservations
	Series     *series.Service
	Explainer  *reminder.Explainer
	Channels   delivery.Available
	Doors      *door.Service
	Flight     *flight.Service
	Rehearsals *rehearsal.Service
	// DoorMembers tells users about their own doors.
	DoorMembers claim.Members
	Draws       Draws
	DrawDesk    DrawDesk
	// LiveChannel returns the drop's broadcast channel at Apple, "" = none; nil = no drop has one.
	LiveChannel func(ctx context.Context, templateID int64) (string, error)
}

type handlers struct {
	*pipeline.Pipeline
	Deps
}

// Routes registers the operations.
func Routes(pl *pipeline.Pipeline, d Deps) {
	h := &handlers{pl, d}
	h.reservationRoutes()
	h.seriesRoutes()
	h.seriesStaffRoutes()
	h.dropRoutes()
	h.consentRoutes()
	h.calendarRoutes()
	h.templateRoutes()
	h.forecastRoute()
	h.flightRoute()
	h.rehearsalRoutes()
	h.capacityRoute()
	h.moneyRoutes()
	h.budgetRoutes()
	h.shopRoutes()
	h.senderRoutes()
	h.pictureRoutes()
	h.explainRoutes()
	h.doorRoutes()
	h.drawRoutes()
	h.drawStaffRoutes()
}
