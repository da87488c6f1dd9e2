package user

import "maps"

// A Change sets fields of one user. A nil field stays as it is; a pointer to the
// zero value clears it.
type Change struct {
	ID    ID
	Name  *string
	Email *string
	Phone *string
	// PhoneVerified says whether the user has proved the number. A number that changes
	// without PhoneVerified becomes unverified. Without a number it is always false.
	PhoneVerified *bool
	Locale        *string
	Timezone      *string
	Push          *[]PushSubscription
	// OptOuts is a bit per channel (1<<channel).
	OptOuts *uint8
	Quiet   *QuietHours
	// Attributes are the shop's own fields: names with a string, a finite number,
	// a bool or nil.
	Attributes *map[string]any
	// Patch changes single attributes and leaves all other attributes; nil removes an
	// attribute.
	Patch map[string]any
}

// fields returns the names of the fields that c sets.
func (c Change) fields() []string {
	list := []string{}
	for _, f := range []struct {
		name string
		told bool
	}{{"name", c.Name != nil}, {"email", c.Email != nil}, {"phone", c.Phone != nil}, {"phone_verified", c.PhoneVerified != nil}, {"locale", c.Locale != nil}, {"timezone", c.Timezone != nil},
		{"push", c.Push != nil}, {"opt_outs", c.OptOuts != nil}, {"quiet_hours", c.Quiet != nil}, {"attributes", c.Attributes != nil || c.Patch != nil}} {
		if f.told {
			list = append(list, f.name)
		}
	}
	return list
}

// then returns the change that has the effect of c followed by later.
func (c Change) then(later Change) Change {
	overlay(&c.Name, later.Name)
	overlay(&c.Email, later.Email)
	if later.Phone != nil && (c.Phone == nil || *c.Phone != *later.Phone) && later.PhoneVerified == nil {
		c.PhoneVerified = nil // was said of another number
	}
	overlay(&c.Phone, later.Phone)
	overlay(&c.PhoneVerified, later.PhoneVerified)
	overlay(&c.Locale, later.Locale)
	overlay(&c.Timezone, later.Timezone)
	overlay(&c.Push, later.Push)
	overlay(&c.OptOuts, later.OptOuts)
	overlay(&c.Quiet, later.Quiet)
	if later.Attributes != nil {
		c.Attributes, c.Patch = later.Attributes, nil
	}
	if later.Patch != nil {
		all := maps.Clone(c.Patch)
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, later.Patch)
		c.Patch = all
	}
	return c
}

func overlay[T any](old **T, later *T) {
	if later != nil {
		*old = later
	}
}
