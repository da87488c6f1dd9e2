package user

import (
	"maps"

	"dropbell/domain/field"
)

// A Change sets fields of one user. A nil field stays as it is; a pointer to the
// zero value clears it. The tags are the names of fields in the audit log.
type Change struct {
	ID    ID      `field:"-"`
	Name  *string `field:"name"`
	Email *string `field:"email"`
	Phone *string `field:"phone"`
	// PhoneVerified says whether the user has proved the number. A number that changes
	// without PhoneVerified becomes unverified. Without a number it is always false.
	PhoneVerified *bool               `field:"phone_verified"`
	Locale        *string             `field:"locale"`
	Timezone      *string             `field:"timezone"`
	Household     *string             `field:"household"`
	Push          *[]PushSubscription `field:"push"`
	// OptOuts is a bit per channel (1<<channel).
	OptOuts *uint8      `field:"opt_outs"`
	Quiet   *QuietHours `field:"quiet_hours"`
	// Attributes are the shop's own fields: names with a string, a finite number,
	// a bool or nil.
	Attributes *map[string]any `field:"attributes"`
	// Patch changes single attributes and leaves all other attributes; nil removes an
	// attribute.
	Patch map[string]any `field:"-"`
}

var changes = field.Of[Change]()

// fields returns the names of the fields that c sets.
func (c Change) fields() []string {
	list := []string{}
	for _, f := range changes {
		if !f.Of(&c).IsNil() || f.Name == "attributes" && c.Patch != nil {
			list = append(list, f.Name)
		}
	}
	return list
}

// then returns the change that has the effect of c followed by later.
func (c Change) then(later Change) Change {
	if later.Phone != nil && (c.Phone == nil || *c.Phone != *later.Phone) && later.PhoneVerified == nil {
		c.PhoneVerified = nil // was said of another number
	}
	for _, f := range changes {
		if v := f.Of(&later); !v.IsNil() {
			f.Of(&c).Set(v)
		}
	}
	if later.Attributes != nil {
		c.Patch = nil
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
