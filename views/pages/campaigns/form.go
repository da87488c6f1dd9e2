package campaigns

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"dropbell/domain/campaign"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// FormID is the id of the form, and EditedField its hidden input with the ID of the
// campaign that is edited.
const (
	FormID      = "campaign-form"
	EditedField = "edited_id"
)

// steps returns the form's steps. A form that was stored or submitted before can be opened at any
// step.
func (p CampaignForm) steps(ctx context.Context) ui.StepsProps {
	s := ui.StepsProps{Whole: p.ID != 0 || len(p.Errors) > 0}
	for _, key := range []string{"campaign.section.who", "campaign.section.what", "campaign.section.compare", "campaign.section.when", "steps.review"} {
		s.Titles = append(s.Titles, ui.T(ctx, key))
	}
	return s
}

// review returns all typed values that count, by step.
func (p CampaignForm) review(ctx context.Context) []ui.ReviewPart {
	steps := [][]string{{"name", "shop", "audience", "audience_value"}, {"channel", "title", "body"}, {"title_b", "body_b"}, {"starts_at", "ends_at", "rate_per_second"}}
	for i := range Languages(p.Values) {
		steps[1] = append(steps[1], LanguageField(i, LanguageTitle), LanguageField(i, LanguageBody))
		for _, part := range []string{LanguageTitleB, LanguageBodyB} {
			if name := LanguageField(i, part); p.Values[name] != "" {
				steps[2] = append(steps[2], name)
			}
		}
	}
	steps[1], steps[2] = append(steps[1], "link", "grant_template_id"), append(steps[2], "percent_b", "test_share", "hold_out")
	if p.Values["test_share"] != "" {
		steps[2] = append(steps[2], "test_by", "test_minutes")
	}
	if p.Values["audience"] == string(campaign.Everybody) || strings.Contains(p.audienceChoice(ctx).Value, ":") { // chosen by its name
		steps[0] = steps[0][:3]
	} else if OfTemplate(p.Values["audience"]) {
		steps[0][3] = "audience_template"
	}
	titles, wrong := p.steps(ctx).Titles, ui.ErrorsOf(ctx, p.Errors)
	list := make([]ui.ReviewPart, len(steps))
	for i, names := range steps {
		list[i].Title = titles[i]
		for _, name := range names {
			list[i].Lines = append(list[i].Lines, ui.ReviewLine{Name: name, Label: p.LabelOf(ctx, name), Value: p.shown(ctx, name), Error: wrong[name]})
		}
	}
	return list
}

// shown formats one value; a value that cannot be parsed stays as it was typed.
func (p CampaignForm) shown(ctx context.Context, name string) string {
	typed, l := p.Values[name], ui.From(ctx).Locale
	chosen := func(c ui.ChoiceProps) string {
		if i := slices.IndexFunc(c.Options, func(o ui.Option) bool { return o.Value == c.Value }); i >= 0 {
			return c.Options[i].Label
		}
		return typed
	}
	switch name {
	case "shop":
		return chosen(p.shopChoice(ctx))
	case "audience":
		return chosen(p.audienceChoice(ctx))
	case "channel":
		return chosen(p.channelChoice(ctx))
	case "audience_template":
		if p.About != nil {
			return TemplateName(*p.About)
		}
		return cmp.Or(typed, p.Values["audience_value"])
	case "starts_at":
		if p.past(ctx) {
			return ui.T(ctx, "campaign.at_once", p.when(ctx, p.Spec.StartsAt))
		}
		return cmp.Or(p.when(ctx, p.Spec.StartsAt), typed)
	case "ends_at":
		return cmp.Or(p.when(ctx, p.Spec.EndsAt), typed)
	case "test_by":
		return chosen(p.testByChoice(ctx))
	case "test_minutes":
		return chosen(p.testMinutesChoice(ctx))
	case "percent_b", "hold_out", "test_share":
		return parts.PercentTyped(typed)
	case "grant_template_id":
		if p.Grant != nil {
			return TemplateName(*p.Grant)
		}
	case "rate_per_second":
		if strings.Trim(typed, "0") == "" {
			return l.T("campaign.rate.unlimited")
		}
	}
	return typed
}

// when writes a time of the form with its zone; "" if it could not be read.
func (p CampaignForm) when(ctx context.Context, at time.Time) string {
	if at.IsZero() || p.Zone == nil {
		return ""
	}
	return parts.InstantText(ctx, at, p.Zone)
}

// instant describes a field for a date and time, which is written out below it.
func (p CampaignForm) instant(ctx context.Context, name string) ui.FieldProps {
	f := p.field(ctx, name, "datetime-local", true)
	f.Says, f.Said = true, p.when(ctx, p.Spec.StartsAt)
	if name == "ends_at" {
		f.Said = p.when(ctx, p.Spec.EndsAt)
	}
	return f
}

// past reports whether the start has passed: such a campaign starts when it is published.
func (p CampaignForm) past(ctx context.Context) bool {
	return !p.Spec.StartsAt.IsZero() && !p.Spec.StartsAt.After(ui.From(ctx).Now)
}

// planned returns the hidden fields with the values that the form has filled in itself.
func (p CampaignForm) planned() (list [][2]string) {
	for _, name := range []string{"planned_shop", "planned_starts_at", "planned_ends_at"} {
		if value, ok := p.Values[name]; ok {
			list = append(list, [2]string{name, value})
		}
	}
	return list
}

// costLines list the maximum cost of sending to the reach.
func (p CampaignForm) costLines(ctx context.Context) []string {
	lines := []string{ui.N(ctx, "approval.messages", p.Reach.Users, ui.T(ctx, "channel."+p.Spec.Channel.String()))}
	if p.Grant != nil {
		c := campaign.CostOf(*p.Grant, p.Reach.Users)
		lines = append(lines, ui.T(ctx, "approval.cost_text", c.Coupons, ui.From(ctx).Locale.Money(c.Amount, c.Currency)))
	}
	if each, currency := dearest(p.Previews.List); each > 0 && p.Texts <= math.MaxInt64/each {
		lines = append(lines, ui.T(ctx, "campaign.sms_cost", parts.PriceText(ctx, each*p.Texts, currency)))
	}
	if d := p.Spec.Takes(p.Reach.Users); d > 0 {
		lines = append(lines, ui.T(ctx, "approval.takes", ui.From(ctx).Locale.Duration(d)))
	}
	return lines
}

// Priced reports whether the price of the texts as text messages is known.
func (p CampaignForm) Priced() bool {
	each, _ := dearest(p.Previews.List)
	return each > 0
}

// dearest returns the cost of the longest of the texts as an SMS, in ten-thousandths of the
// currency's unit; 0 = no price is known.
func dearest(texts []CampaignText) (each int64, currency string) {
	for _, t := range texts {
		if cost := t.Preview.Price * int64(t.Preview.Size.Parts); cost > each {
			each, currency = cost, t.Preview.Currency
		}
	}
	return each, currency
}
