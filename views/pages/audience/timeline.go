package audience

import (
	"context"
	"slices"
	"strings"
	"time"

	"dropbell/domain/timeline"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// A lifeDay is one day of a timeline in the user's zone; it has no name if its lines follow lines of the same day.
type lifeDay struct {
	name  string
	lines []lifeLine
}

// A lifeLine is one line. Reservations of drops of one name, such as a series has, are one line; drops are their ids.
type lifeLine struct {
	timeline.Line
	drops []int64
}

func (p User) days(ctx context.Context) (list []lifeDay) {
	day := func(at time.Time) string { return ui.From(ctx).Locale.Date(at, p.User.Zone()) }
	shown := ""
	if !p.History.Before.IsZero() {
		shown = day(p.History.Before)
		list = append(list, lifeDay{})
	}
	for _, l := range p.History.Lines {
		if name := day(l.At); name != shown {
			list, shown = append(list, lifeDay{name: name}), name
		}
		last := &list[len(list)-1]
		if n := len(last.lines) - 1; n >= 0 && l.Kind == timeline.Reserved && last.lines[n].Kind == l.Kind && last.lines[n].Drop == l.Drop {
			last.lines[n].drops = append(last.lines[n].drops, l.TemplateID)
			continue
		}
		last.lines = append(last.lines, lifeLine{l, []int64{l.TemplateID}})
	}
	return slices.DeleteFunc(list, func(d lifeDay) bool { return len(d.lines) == 0 })
}

func lineTone(l timeline.Line) ui.Tone {
	switch l.Kind {
	case timeline.Message:
		if l.Outcome.Sleeping(l.Reason) {
			return ui.Neutral
		}
		return ui.OutcomeTone(string(l.Outcome))
	case timeline.Claimed, timeline.ByCode, timeline.Given, timeline.ByCampaign, timeline.ByDraw, timeline.Used, timeline.Ordered, timeline.Restored:
		return ui.Good
	case timeline.Refunded, timeline.PartRefunded, timeline.Expired, timeline.TimedOut, timeline.Suspended, timeline.OptedOut:
		return ui.Warn
	case timeline.Revoked:
		return ui.Bad
	case timeline.Reserved, timeline.Opened, timeline.Locked:
		return ui.Info
	}
	return ui.Neutral
}

func lineIcon(l timeline.Line) string {
	switch l.Kind {
	case timeline.Message:
		return "send"
	case timeline.Reserved:
		return "bell-ringing"
	case timeline.Opened:
		return "eye"
	case timeline.Claimed, timeline.ByCode:
		return "tag"
	case timeline.Given, timeline.ByCampaign, timeline.ByDraw:
		return "gift"
	case timeline.Locked:
		return "lock"
	case timeline.Used, timeline.Ordered:
		return "check"
	case timeline.Released, timeline.Refunded, timeline.PartRefunded, timeline.Restored:
		return "refresh"
	case timeline.Expired, timeline.TimedOut:
		return "clock"
	case timeline.OptedIn:
		return "bell"
	case timeline.EmailChange, timeline.PhoneChange:
		return "pencil"
	}
	return "ban"
}

// lineText says what happened.
func lineText(ctx context.Context, l timeline.Line) string {
	if l.Kind != timeline.Message {
		return ui.T(ctx, "timeline."+string(l.Kind))
	}
	name := ui.T(ctx, "timeline.message.other")
	if key := "deliveries.kind." + string(l.Message); ui.From(ctx).Locale.Has(key) {
		name = ui.T(ctx, key)
	}
	if l.Slot > 0 {
		return ui.T(ctx, "timeline.slot", name, l.Slot*5)
	}
	return name
}

// lineNote adds the order, amounts and the member to what happened.
func lineNote(ctx context.Context, l timeline.Line) string {
	var notes []string
	if l.OrderID != "" {
		notes = append(notes, ui.T(ctx, "coupon.order")+" "+l.OrderID)
	}
	loc := ui.From(ctx).Locale
	if l.Amount > 0 {
		notes = append(notes, ui.T(ctx, "timeline.amount", loc.Money(l.Amount, l.Currency)))
	}
	if l.Discount > 0 {
		notes = append(notes, ui.T(ctx, "timeline.off", loc.Money(l.Discount, l.Currency)))
	}
	if l.Refunded > 0 {
		notes = append(notes, ui.T(ctx, "timeline.paid_back", loc.Money(l.Refunded, l.Currency)))
	}
	if l.Reason != "" {
		notes = append(notes, parts.ReasonText(ctx, l.Reason))
	}
	if l.By != "" && strings.HasPrefix(l.By, "staff:") {
		notes = append(notes, ui.T(ctx, "timeline.by", parts.ActorName(ctx, l.By)))
	}
	return strings.Join(notes, ui.T(ctx, "ui.list_join"))
}
