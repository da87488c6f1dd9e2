package audience

import (
	"context"
	"fmt"
	"strconv"

	"dropbell/domain/inbox"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/views/ui"
)

// ownShops chooses the text own for staff who see some shops only: an empty result of their shops
// says nothing about other shops.
func ownShops(ctx context.Context, all, own string) string {
	if len(ui.From(ctx).Member.Shops) > 0 {
		return own
	}
	return all
}

// gridLabel names the reminders of one drop: names alone may repeat.
func gridLabel(ctx context.Context, v reminder.View) string {
	return ui.T(ctx, "user.grid", v.TemplateName, "#"+strconv.FormatInt(v.TemplateID, 10))
}

// A DueReminder is a waiting reminder with its drop.
type DueReminder struct {
	reminder.Item
	Drop string
}

// FirstDue returns the waiting reminder of the reservations that is due first; nil = none waits.
func FirstDue(reservations []reminder.View) (first *DueReminder) {
	for _, v := range reservations {
		for _, it := range v.Items {
			if it.State == string(reminder.Waiting) && (first == nil || it.DueAt.Before(first.DueAt)) {
				first = &DueReminder{it, v.TemplateName}
			}
		}
	}
	return first
}

// many writes how many entries a part of the page has; more is set if there are further ones.
func many(ctx context.Context, n int, more bool) string {
	if more {
		return ui.Num(ctx, int64(n)) + "+"
	}
	return ui.Num(ctx, int64(n))
}

func quietText(ctx context.Context, q user.QuietHours) string {
	if q.From == q.To {
		return ui.T(ctx, "user.quiet_none")
	}
	return fmt.Sprintf("%02d:%02d – %02d:%02d", q.From/60, q.From%60, q.To/60, q.To%60)
}

// unread is a number of unread messages, which are counted up to a limit.
func unread(n int) string {
	if n >= inbox.MaxUnread {
		return strconv.Itoa(inbox.MaxUnread-1) + "+"
	}
	return strconv.Itoa(n)
}
