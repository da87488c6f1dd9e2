package drops

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"dropbell/domain/budget"
	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// steps returns the form's steps. A form that was stored or submitted before can be opened at any
// step.
func (p TemplateForm) steps(ctx context.Context) ui.StepsProps {
	s := ui.StepsProps{Whole: p.ID != 0 || p.Whole || len(p.Errors) > 0}
	for _, key := range []string{"form.basics", "form.discount", "form.times", "form.stock", "step.message", "steps.review"} {
		s.Titles = append(s.Titles, ui.T(ctx, key))
	}
	return s
}

// reviewHelp says when saved values take effect.
func (p TemplateForm) reviewHelp(ctx context.Context) string {
	if p.Published {
		return ui.T(ctx, "form.review_published")
	}
	return ui.T(ctx, "form.review_help")
}

// instants are the fields for a date and time.
func instants() []string { return []string{"opens_at", "closes_at", "valid_until"} }

// said writes the instant of a field out, "" while it cannot be read.
func (p TemplateForm) said(ctx context.Context, name string) string {
	t := p.Preview.Template
	at := map[string]*time.Time{"opens_at": &t.OpensAt, "closes_at": &t.ClosesAt, "valid_until": t.ValidUntil}[name]
	if at == nil || at.IsZero() || strings.TrimSpace(p.Values[name]) == "" {
		return ""
	}
	return parts.InstantText(ctx, *at, t.Zone())
}

// twice are the typed times that happen twice.
func (p TemplateForm) twice() (list []string) {
	for _, name := range instants() {
		if p.ambiguous(name) {
			list = append(list, name)
		}
	}
	return list
}

// plain are the values of fields that a drop has without any choice of its own.
var plain = map[string]string{"claim_mode": string(template.Durable), "protection": string(template.Unprotected), "waitlist": string(template.NoWaitlist),
	"refund_rule": string(template.Keep), "opening_mode": string(template.FirstCome), "obtain": string(template.ByClaim), "refund_to": string(template.RefundToHolder), "max_per_order": "1"}

// unsaid reports whether the review leaves the field out: it is empty, 0 or as it is in every drop without a choice.
func (p TemplateForm) unsaid(name string) bool {
	typed := strings.TrimSpace(p.Values[name])
	return name != "name" && name != "stock" && (typed == "" || typed == "0" || typed == plain[name])
}

// atMost is what the coupons take off together at most; empty while that is not limited or not known.
func (p TemplateForm) atMost(ctx context.Context) string {
	worth, t := budget.Worth(p.Preview.Template.Spec), p.Preview.Template
	if worth <= 0 || t.Stock <= 0 || int64(worth) > math.MaxInt64/t.Stock {
		return ""
	}
	return ui.From(ctx).Locale.Money(worth*money.Amount(t.Stock), t.Currency)
}

// review returns the typed values that count and say something, by step, and what the coupons cost at most.
func (p TemplateForm) review(ctx context.Context) []ui.ReviewPart {
	steps, step := make([][]string, 5), 0
	for _, name := range template.Fields.Names() {
		if i := slices.Index([]string{"name", "kind", "opens_at", "stock"}, name); i >= 0 {
			step = i // each step begins with the named field
		}
		if p.counts(name) {
			steps[step] = append(steps[step], name)
		}
	}
	steps[4] = []string{"message_own"}
	if p.Values["message_own"] == "own" {
		steps[4] = append(steps[4], "message_language", "message_title", "message_text")
	}
	titles, wrong := p.steps(ctx).Titles, ui.ErrorsOf(ctx, p.Errors)
	list := make([]ui.ReviewPart, len(steps))
	for i, names := range steps {
		list[i].Title = titles[i]
		for _, name := range names {
			if wrong[name] == "" && p.unsaid(name) && name != "message_own" {
				continue
			}
			list[i].Lines = append(list[i].Lines, ui.ReviewLine{Name: name, Label: parts.FieldLabel(ctx, name), Value: p.shown(ctx, name), Error: wrong[name]})
		}
	}
	if cost := p.atMost(ctx); cost != "" {
		list[3].Lines = append(list[3].Lines, ui.ReviewLine{Name: "stock", Label: ui.T(ctx, "form.at_most"), Value: cost})
	}
	return list
}

// counts reports whether a field belongs to the chosen kind, target, validity and notices.
func (p TemplateForm) counts(name string) bool {
	kind := template.Kind(p.Values["kind"])
	switch name {
	case "amount_off":
		return kind != template.PercentOff
	case "percent_off", "max_off":
		return kind == template.PercentOff
	case "threshold":
		return kind == template.PercentOff || kind == template.ThresholdOff
	case "product":
		return template.Target(p.Values["target"]) == template.Product
	case "valid_hours":
		return p.Values["validity"] != "until"
	case "valid_until":
		return p.Values["validity"] == "until"
	case "notify_channels":
		return strings.TrimSpace(p.Values["notify_days"]) != ""
	case "stacks_with":
		return strings.TrimSpace(p.Values["stack_group"]) != ""
	}
	return p.countsOpening(name)
}

// shown formats one value; a value that cannot be parsed stays as it was typed.
func (p TemplateForm) shown(ctx context.Context, name string) string {
	typed, t := strings.TrimSpace(p.Values[name]), p.Preview.Template
	l := ui.From(ctx).Locale
	amount := func(a money.Amount) string {
		if a > 0 {
			return l.Money(a, t.Currency)
		}
		return typed
	}
	when := func(at time.Time) string {
		if !at.IsZero() {
			return parts.InstantText(ctx, at, t.Zone())
		}
		return typed
	}
	switch name {
	case "shop_number":
		options := parts.ShopOptions(ctx, p.Shops)
		if i := slices.IndexFunc(options, func(o ui.Option) bool { return o.Value == typed }); i >= 0 {
			return options[i].Label
		}
	case "message_own":
		if typed == "" {
			typed = "shop"
		}
		return l.T("message_own." + typed)
	case "draw_source":
		if typed == "" {
			typed = "best"
		}
		return l.T("draw_source." + typed)
	case "kind", "target", "obtain", "claim_mode", "waitlist", "refund_to", "protection", "opening_mode", "refund_rule":
		if key := name + "." + typed; l.Has(key) {
			return l.T(key)
		}
	case "amount_off":
		return amount(t.AmountOff)
	case "threshold":
		return amount(t.Threshold)
	case "max_off":
		return amount(t.MaxOff)
	case "percent_off", "hold_out_percent":
		return parts.PercentTyped(typed)
	case "opens_at":
		return when(t.OpensAt)
	case "closes_at":
		return when(t.ClosesAt)
	case "valid_until":
		if t.ValidUntil != nil {
			return when(*t.ValidUntil)
		}
	case "valid_hours":
		if text := parts.Validity(ctx, t); text != "" {
			return text
		}
	case "stock":
		if t.Stock > 0 {
			return l.Number(t.Stock)
		}
	case "notify_days":
		if typed == "" {
			return l.T("form.never")
		}
	case "stack_group":
		if typed == "" {
			return l.T("stacking.alone")
		}
	case "notify_channels":
		return channelsText(ctx, p.notified())
	}
	return typed
}

// notified are the channels ticked, the app if none is.
func (p TemplateForm) notified() []string {
	set := template.ParseChannels(p.Values["notify_channels"])
	if set == 0 {
		set = delivery.ChannelSetOf(delivery.App)
	}
	return template.ChannelNames(set)
}

func channelsText(ctx context.Context, names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = ui.T(ctx, "channel."+name)
	}
	return strings.Join(list, ui.T(ctx, "ui.list_join"))
}

// notifyOver offers every channel, by its name.
func (p TemplateForm) notifyOver(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "notify_channels", Label: parts.FieldLabel(ctx, "notify_channels"), Help: ui.T(ctx, "help.notify_channels"), Error: p.err(ctx, "notify_channels"),
		Values: template.ChannelNames(template.ParseChannels(p.Values["notify_channels"]))}
	for _, ch := range delivery.AllChannels() {
		c.Options = append(c.Options, ui.Option{Value: ch.String(), Label: parts.ChannelLabel(ctx, ch, p.Channels)})
	}
	return c
}
