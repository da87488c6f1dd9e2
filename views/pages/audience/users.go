package audience

import (
	"context"
	"fmt"
	"strconv"

	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/views/ui"
)

// ownShops chooses the words for staff who see some shops only: that nothing is
// found is no statement about the others.
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

// messageOf is what the user reads: what staff wrote, or the product's own words.
func messageOf(it inbox.Message, u user.User) delivery.Content {
	if it.Title != "" {
		return delivery.Content{Title: it.Title, Text: it.Text}
	}
	return delivery.Render(subjectOf(it), u.Locale, u.Zone())
}

func subjectOf(it inbox.Message) delivery.Subject {
	return delivery.Subject{Kind: it.Kind, TemplateID: it.TemplateID, TemplateName: it.Name,
		ShopNumber: strconv.FormatInt(it.ShopNumber, 10), Slot: int(it.Slot), DueAt: it.DueAt, OpensAt: it.OpensAt, ClaimURL: it.ClaimURL}
}
