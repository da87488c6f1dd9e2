package drops

import (
	"context"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// Delivered returns the outcomes of the user's fired reminders.
func (r *Reservations) Delivered(ctx context.Context, by user.ID, templateIDs []int64) ([]reminder.Delivered, error) {
	return pg.UserOutcomes(ctx, r.DB, by, templateIDs, delivery.AllChannels(), delivery.KindReminder)
}

// Announced returns the outcomes of all other messages to the user about the
// templates: corrections, cancellations, and notices before a coupon expires.
func (r *Reservations) Announced(ctx context.Context, by user.ID, templateIDs []int64) ([]reminder.Delivered, error) {
	return pg.UserOutcomes(ctx, r.DB, by, templateIDs, delivery.AllChannels(), append(delivery.Announced(), delivery.KindNotice)...)
}
