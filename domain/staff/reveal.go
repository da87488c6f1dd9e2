package staff

import (
	"time"

	"dropbell/domain/fault"
)

// How many customers' contacts are shown one by one within [RevealedWithin], to a member
// of the staff and to all members together who are limited to the same shop. A member
// who needs more contacts uses an export, which is recorded as an export.
const (
	MaxRevealed       = 30
	MaxRevealedOfShop = 60
	RevealedWithin    = time.Hour
)

// ErrRevealed is the refusal to show further contacts.
var ErrRevealed = fault.New(fault.Throttled, "too_many_contacts_shown", "the contacts of 30 customers an hour are shown to one member, and of 60 to all members of a shop; try again later or ask an admin for an export")
