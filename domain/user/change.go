package user

// A Change is what shall be known about one user from now on. A nil field
// stays as it is; a pointer to the zero value clears it.
type Change struct {
	ID       ID
	Name     *string
	Email    *string
	Phone    *string
	Locale   *string
	Timezone *string
	Push     *[]PushSubscription
	// OptOuts is a bit per channel (1<<channel).
	OptOuts *uint8
	Quiet   *QuietHours
	// Attributes are whatever the shop wants to tell users apart by: names
	// with a string, a finite number, a bool or nil.
	Attributes *map[string]any
}

// then returns the change that has the effect of c followed by later.
func (c Change) then(later Change) Change {
	overlay(&c.Name, later.Name)
	overlay(&c.Email, later.Email)
	overlay(&c.Phone, later.Phone)
	overlay(&c.Locale, later.Locale)
	overlay(&c.Timezone, later.Timezone)
	overlay(&c.Push, later.Push)
	overlay(&c.OptOuts, later.OptOuts)
	overlay(&c.Quiet, later.Quiet)
	overlay(&c.Attributes, later.Attributes)
	return c
}

func overlay[T any](old **T, later *T) {
	if later != nil {
		*old = later
	}
}
