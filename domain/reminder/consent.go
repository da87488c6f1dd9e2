package reminder

import (
	"context"

	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Consents are a user's consents to single messages about one drop, which services such as WeChat
// demand. Bit k-1 is the consent to the push reminder of slot k. A consent is used up when the
// message was taken, and is deleted with its reminder.
type Consents uint16

// StoredConsents returns the consents stored as n.
func StoredConsents(n int64) Consents { return Consents(n & (1<<template.Slots - 1)) }

// Has reports whether the message of the slot's reminder is consented to.
func (c Consents) Has(s template.Slot) bool { return s >= 1 && c&(1<<(s-1)) != 0 }

// Minutes returns, for each consented reminder, the minutes before the opening at which it is
// sent, the farthest first.
func (c Consents) Minutes() []int {
	list := []int{}
	for s := template.Slot(template.Slots); s >= 1; s-- {
		if c.Has(s) {
			list = append(list, s.Minutes())
		}
	}
	return list
}

// SetConsent stores that the user has consented to the one message of the push reminder, or has
// withdrawn the consent. It returns the consents after the change. It may be repeated: a reminder
// has one consent at most. It returns [ErrNoSuchReminder], [template.ErrNotFound],
// [ErrNotReserved] if the reminder is not reserved, or [ErrAlreadyDue] in a [Refusal].
func (s *Service) SetConsent(ctx context.Context, by user.ID, templateID int64, minutes int, given bool) (Consents, error) {
	r, err := NewReminder(delivery.WebPush, minutes)
	if err != nil {
		return 0, err
	}
	if _, err := s.Templates.Template(ctx, templateID); err != nil {
		return 0, err
	}
	storing, cancel := detach.Context(ctx)
	defer cancel()
	left, err := s.Store.SetConsent(storing, templateID, by, r.Slot, given)
	return left.Consents, err
}

// Consents returns the user's consents about the drop that are not used up. It returns
// [template.ErrNotFound] or [ErrNotReserved].
func (s *Service) Consents(ctx context.Context, by user.ID, templateID int64) (Consents, error) {
	if _, err := s.Templates.Template(ctx, templateID); err != nil {
		return 0, err
	}
	r, err := s.Store.Reservation(ctx, templateID, by)
	return r.Consents, err
}
