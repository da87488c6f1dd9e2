package campaigns

import (
	"context"
	"net/url"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// A RecipientFilter selects recipients of a campaign; its fields are the
// parameters of the address.
type RecipientFilter struct{ Outcome, Reason, Variant, User string }

// Active reports whether the filter selects anything.
func (f RecipientFilter) Active() bool { return f != RecipientFilter{} }

// CampaignRecipients are a campaign's recipients, by ascending id.
type CampaignRecipients struct {
	campaign.Status
	Zone   *time.Location
	Filter RecipientFilter
	List   []campaign.Outcome
	parts.Paged
	// Part is set where the first few are shown on the campaign's own page.
	Part bool
}

// URL is the address of the list.
func (p CampaignRecipients) URL() string { return parts.CampaignURL(p.ID, "recipients") }

// VariantNames are the values by which addresses name contents.
func VariantNames() map[string]int {
	return map[string]int{"a": 0, "b": 1, "hold_out": delivery.HeldOut, "remaining": delivery.Remaining}
}

func recipientOutcomes(ctx context.Context, divided bool) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "deliveries.all_outcomes")}}
	for _, o := range delivery.ListedOutcomes() {
		list = append(list, ui.Option{Value: string(o), Label: ui.T(ctx, "outcome."+string(o))})
		if o == delivery.Failed {
			list = append(list, ui.Option{Value: parts.WaitingOutcome, Label: ui.T(ctx, "outcome.waiting")})
		}
		if o == delivery.Failed && divided {
			list = append(list, ui.Option{Value: parts.UndecidedOutcome, Label: ui.T(ctx, "outcome.undecided")})
		}
		if o == delivery.Skipped && divided {
			list = append(list, ui.Option{Value: parts.HeldOutOutcome, Label: ui.T(ctx, "recipients.held_out")})
		}
	}
	return list
}

func recipientReasons(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "recipients.all_reasons")}}
	for _, r := range campaign.Reasons() {
		list = append(list, ui.Option{Value: r, Label: parts.ReasonText(ctx, r)})
	}
	return list
}

func (p CampaignRecipients) variants(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "recipients.all_versions")}}
	names := map[int]string{0: "a", 1: "b", delivery.HeldOut: "hold_out", delivery.Remaining: "remaining"}
	for _, v := range p.Content.Groups() {
		list = append(list, ui.Option{Value: names[v], Label: groupText(ctx, p.Content, v)})
	}
	return list
}

// groupShort names a group of recipients by a letter, if it has one.
func groupShort(ctx context.Context, c delivery.Copy, variant int) string {
	if len(c.Variants) > 1 && variant != delivery.HeldOut {
		return string(rune('A' + variant))
	}
	return groupText(ctx, c, variant)
}

// gone reports whether the whole list is empty because the batches have been removed.
func (p CampaignRecipients) gone() bool {
	return len(p.List) == 0 && len(p.Errors) == 0 && !p.Further && p.SettledAt != nil && p.Progress.Reserved > 0 && !p.Filter.Active() && p.First == ""
}

func recipientURL(o campaign.Outcome) string { return "/users/" + url.PathEscape(o.UserID.String()) }

// divided reports whether recipients may get different contents.
func (p CampaignRecipients) divided() bool { return p.Content.Divided() }

// testVariants are the versions of which a test can be sent.
func (p Campaign) testVariants(ctx context.Context) []ui.Option {
	return []ui.Option{{Value: "", Label: ui.T(ctx, "campaign.test.own")}, {Value: "a", Label: groupText(ctx, p.Content, 0)}, {Value: "b", Label: groupText(ctx, p.Content, 1)}}
}

// TestTold returns the outcome of a test message as a colour and a text.
func TestTold(ctx context.Context, o campaign.Outcome) (ui.Tone, string) {
	switch o.Outcome {
	case delivery.Sent:
		return ui.Good, ui.T(ctx, "campaign.test.delivered", o.UserID.String())
	case delivery.InFlight, "":
		return ui.Good, ui.T(ctx, "campaign.test.sent", o.UserID.String())
	}
	why := ui.Said(ctx, o.Detail)
	if o.Reason != "" {
		why = parts.ReasonText(ctx, o.Reason)
	}
	return ui.Bad, ui.T(ctx, "campaign.test.failed", o.UserID.String(), why)
}
