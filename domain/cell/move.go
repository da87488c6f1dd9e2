package cell

import "dropbell/domain/fault"

// ErrMoved is the refusal of changes for a shop that has moved to another database.
var ErrMoved = fault.New(fault.Conflict, "shop_moved", "the shop has moved to another installation; call that one").Told("fault.shop_moved")

// ErrNotMovable is the refusal of a move while something of the shop is under way, or of a shop or
// a database that cannot take part in a move. Its text says why.
var ErrNotMovable = fault.New(fault.Conflict, "shop_not_movable", "the shop cannot be moved now; move it once that is over")
