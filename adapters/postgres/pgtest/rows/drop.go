package rows

import (
	"cmp"
	"testing"
	"time"

	"dropbell/domain/template"
)

// Drop is a drop as it is stored. A zero field means the default that the field's comment names.
type Drop struct {
	ID       int64 // the next one
	Shop     int64 // 10; inserted if it is missing
	Name     string
	State    template.State // published
	Stock    int64          // 10
	Issued   int64
	OpensAt  time.Time // in an hour
	ClosesAt time.Time // an hour after the opening
	// ValidUntil is the fixed end of the drop's coupons; zero = coupons are valid for 48 hours.
	ValidUntil time.Time
}

// Add inserts the drop and returns its id. It makes no transition: a published drop has no
// slots, and no event was published. For drops with slots and events use Published of
// pgtest.Fixture.
func (d Drop) Add(t testing.TB, db DB) int64 {
	t.Helper()
	row := Row{}
	set(row, "id", d.ID)
	set(row, "shop_number", d.Shop)
	set(row, "name", d.Name)
	set(row, "state", d.State)
	set(row, "stock", d.Stock)
	set(row, "issued", d.Issued)
	set(row, "valid_until", d.ValidUntil)
	if !d.OpensAt.IsZero() {
		row["opens_at"], row["closes_at"] = d.OpensAt.Truncate(time.Second), d.OpensAt.Truncate(time.Second).Add(time.Hour)
	}
	set(row, "closes_at", d.ClosesAt)
	Shops(t, db, cmp.Or(d.Shop, 10))
	return ID(t, db, "templates", row)
}

// set names the column unless the value is zero.
func set[T comparable](row Row, column string, value T) {
	var zero T
	if value != zero {
		row[column] = value
	}
}
