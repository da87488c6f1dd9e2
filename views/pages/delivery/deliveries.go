package delivery

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// A DeliveryFilter selects batches; its fields are the parameters of the
// address.
type DeliveryFilter struct {
	Kind, Template, Slot, Channel, State, Outcome, User, From, To string
}

// Active reports whether the filter selects anything.
func (f DeliveryFilter) Active() bool { return f != DeliveryFilter{} }

// A batchRun is batches that carry one message, with their sums in the row of the first.
type batchRun struct {
	delivery.BatchRow
	ids []int64
}

// runs joins neighbouring batches of one message. A row with a user or with providers stands alone.
func (p Deliveries) runs() (list []batchRun) {
	for _, b := range p.List {
		last := len(list) - 1
		if last < 0 || !list[last].Joins(b) || p.Filter.User != "" || len(b.Providers)+len(list[last].Providers) > 0 {
			list = append(list, batchRun{b, []int64{b.ID}})
			continue
		}
		r := &list[last]
		r.ids, r.Counts, r.Reported = append(r.ids, b.ID), r.Counts.Plus(b.Counts), r.Reported.Plus(b.Reported)
	}
	return list
}

// Rows is the number of rows of the list.
func (p Deliveries) Rows() int { return len(p.runs()) }

// BatchURL is the page of a batch.
func BatchURL(id int64) string { return fmt.Sprintf("/deliveries/%d", id) }

// batchTitle names the content of a batch.
func batchTitle(ctx context.Context, b delivery.BatchRow) string {
	if b.Kind == delivery.KindReminder && b.Slot > 0 {
		return ui.T(ctx, "deliveries.reminder", b.Slot*template.SlotMinutes)
	}
	return kindText(ctx, b.Kind)
}

func kindText(ctx context.Context, k delivery.Kind) string {
	if key := "deliveries.kind." + string(k); ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return string(k)
}

// ownerURL returns the page of the object that the batch was sent for, if there is a page.
func ownerURL(b delivery.BatchRow) string {
	switch {
	case b.Kind == delivery.KindCampaign:
		return parts.CampaignURL(b.OwnerID, "")
	case b.TemplateID == 0:
		return ""
	case b.Slot > 0:
		return fmt.Sprintf("/templates/%d#slot-%d", b.TemplateID, b.Slot)
	}
	return fmt.Sprintf("/templates/%d", b.TemplateID)
}

func ownerText(ctx context.Context, b delivery.BatchRow) string {
	switch {
	case b.Kind == delivery.KindCampaign:
		return campaignText(ctx, b.CampaignName, b.OwnerID)
	case b.TemplateName != "":
		return b.TemplateName
	}
	return parts.OrDash("")
}

// campaignText names a campaign; the name of a deleted campaign is unknown.
func campaignText(ctx context.Context, name string, id int64) string {
	if name == "" {
		return ui.T(ctx, "deliveries.campaign", id)
	}
	return name
}

func batchZone(ctx context.Context, b delivery.BatchRow) *time.Location {
	if b.ShopTimezone == "" {
		return ui.From(ctx).Zone
	}
	return template.Template{ShopTimezone: b.ShopTimezone}.Zone()
}

func batchTone(b delivery.BatchRow) ui.Tone {
	switch {
	case b.State != delivery.BatchDone:
		return ui.Info
	case b.Counts.Dead+b.Counts.Expired > 0:
		return ui.Warn
	}
	return ui.Good
}

// countsText describes the bar in words.
func countsText(ctx context.Context, c delivery.Counts) string {
	l := ui.From(ctx).Locale
	return strings.Join(append([]string{l.T("deliveries.sent_of", c.Sent, c.Reserved)}, ui.UnsentWords(ctx, c)...), l.T("ui.list_join"))
}

func batchKinds(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "deliveries.all_kinds")}}
	for _, k := range delivery.Kinds() {
		list = append(list, ui.Option{Value: string(k), Label: kindText(ctx, k)})
	}
	return list
}

func batchSlots(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "deliveries.all_slots")}}
	for _, s := range template.AllSlots() {
		list = append(list, ui.Option{Value: strconv.Itoa(int(s)), Label: ui.T(ctx, "slot.before", s.Minutes())})
	}
	return list
}

func batchStates(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "jobs.all_states")}}
	for _, s := range delivery.BatchStates() {
		list = append(list, ui.Option{Value: string(s), Label: ui.T(ctx, "deliveries.state."+string(s))})
	}
	return list
}

func outcomeOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "deliveries.all_outcomes")}}
	for _, o := range delivery.ListedOutcomes() {
		list = append(list, ui.Option{Value: string(o), Label: ui.T(ctx, "outcome."+string(o))})
	}
	return list
}

// userURL is the address of a recipient's timeline of this batch.
func (p Batch) userURL(r delivery.Recipient) string {
	return personURL(p.Row.Kind, p.Row.TemplateID, r.UserID)
}

// personURL returns the page of the user's reminders of the template. For messages about no
// template, and for messages of a campaign, it is the user's page.
func personURL(k delivery.Kind, templateID int64, to user.ID) string {
	if templateID != 0 && k != delivery.KindCampaign {
		return parts.ExplainURL(templateID, to.String())
	}
	return "/users/" + url.PathEscape(to.String())
}
