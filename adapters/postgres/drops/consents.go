package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// consentSQL stores or removes the consent if the push reminder of the slot is reserved and
// the slot waits. The slot is locked as in reserveRows, so a slot that fires first accepts no
// further consent. The statement returns a row if the change was stored.
const consentSQL = `
with waiting as (
    select from slots where template_id = @template and slot = @slot and state = 'waiting' and due_at > clock_timestamp() for share
)
update reservations r
set consents = case when @given then coalesce(r.consents, 0) | (1 << (@slot::int - 1)) else nullif(r.consents & ~(1 << (@slot::int - 1)), 0) end::smallint
where r.template_id = @template and r.user_id = @user and r.slots & (@bit::bigint) <> 0 and exists (select from waiting)
returning `

// SetConsent stores a consent; see [reminder.Store].
func (r *Reservations) SetConsent(ctx context.Context, templateID int64, by user.ID, slot template.Slot, given bool) (reminder.Reservation, error) {
	wanted := reminder.Reminder{Channel: delivery.WebPush, Slot: slot}
	before, err := r.Reservation(ctx, templateID, by)
	if err != nil {
		return before, err
	}
	bit := reminder.BitmapOf(wanted)
	if before.Slots.Intersect(bit).IsEmpty() {
		return before, reminder.ErrNotReserved.Because("the reminder that the consent is for is not reserved")
	}
	if before.Consents.Has(slot) == given {
		return before, nil
	}
	var after reminder.Reservation
	args := []any{pgx.StrictNamedArgs{"template": templateID, "user": by, "slot": slot, "given": given, "bit": bit.Int64()}}
	err = r.Briefly(ctx, consentSQL+reservationColumns, args, func(rows pgx.Rows) (err error) {
		after, err = pgx.CollectExactlyOneRow(rows, scanReservation)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return before, &reminder.Refusal{Fault: reminder.ErrAlreadyDue, Offending: []reminder.Reminder{wanted}}
	}
	return after, pg.Translate(err)
}
