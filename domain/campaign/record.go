package campaign

import (
	"strconv"

	"dropbell/domain/staff"
)

// Audited returns s for the audit log. Of a named audience it contains the number of users, not
// their ids.
func Audited(s Spec) map[string]any {
	return map[string]any{"name": s.Name, "channel": s.Channel.String(), "content": s.Content, "audience": s.Audience.Kind,
		"audience_id": s.Audience.ID, "audience_users": len(s.Audience.Users), "grant_template_id": s.GrantTemplate,
		"starts_at": s.StartsAt, "ends_at": s.EndsAt, "rate_per_second": s.RatePerSecond}
}

func entry(by staff.Actor, action string, c Campaign, reason string, before, after any) staff.Entry {
	id := ""
	if c.ID != 0 {
		id = strconv.FormatInt(c.ID, 10)
	}
	return staff.Entry{Actor: by, Action: action, ObjectKind: "campaign", ObjectID: id,
		ShopNumber: c.Shop, Reason: reason, Before: before, After: after}
}
