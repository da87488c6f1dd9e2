package drops

import (
	"context"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// Delivered returns what became of the user's fired reminders.
func (r *Reservations) Delivered(ctx context.Context, by user.ID, templateIDs []int64) ([]reminder.Delivered, error) {
	return pg.UserOutcomes(ctx, r.DB, by, templateIDs, delivery.AllChannels(), delivery.KindReminder)
}

// Announced returns what became of everything else the user was told about the
// templates: corrections, cancellations, notices before a coupon expires.
func (r *Reservations) Announced(ctx context.Context, by user.ID, templateIDs []int64) ([]reminder.Delivered, error) {
	return pg.UserOutcomes(ctx, r.DB, by, templateIDs, delivery.AllChannels(), delivery.KindCorrection, delivery.KindCancelled, delivery.KindNotice)
}
