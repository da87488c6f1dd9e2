package delivery

import (
	"context"
	"fmt"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Providers lists the providers of every channel that can have several.
type Providers struct {
	List []provider.Provider
	// Health and Circuits are by provider. A circuit that cannot be read is missing.
	Health   map[int64]provider.Health
	Circuits map[int64]delivery.Circuit
	// Sealed are providers whose secrets no key opens.
	Sealed map[int64]bool
	// Environment are the channels that the environment has a provider for.
	Environment delivery.ChannelSet
	// Shops are the shops' names by number.
	Shops map[int64]string
	// Keyed says that secrets can be stored.
	Keyed bool
}

// ProviderKinds offers the kinds of a new provider.
type ProviderKinds struct{}

// ProviderForm configures a provider.
type ProviderForm struct {
	ID      int64 // 0 = a new one
	Version int64
	Kind    provider.Kind
	// Values are the typed values, never secrets.
	Values  map[string]string
	Set     []string // the secrets that are set
	Enabled bool
	Shops   []template.Shop
	Errors  []fault.Field
	Error   string // about the form as a whole
	// ReportsURL is where the provider is to send its reports; empty = nowhere.
	ReportsURL string
	RequestKey string
	// Recipient gets the message by which the form is tried; Tried is its outcome.
	Recipient string
	Tried     parts.Try
}

func providerURL(id int64) string { return fmt.Sprintf("/providers/%d", id) }

func (p Providers) of(c delivery.Channel) (list []provider.Provider) {
	for _, one := range p.List {
		if one.Channel == c {
			list = append(list, one)
		}
	}
	return list
}

// state returns the state of a provider: the colour of its badge, and its key.
func (p Providers) state(one provider.Provider) (ui.Tone, string) {
	c := p.Circuits[one.ID]
	switch {
	case p.Sealed[one.ID]:
		return ui.Bad, "provider.state.sealed"
	case !one.Enabled:
		return ui.Neutral, "provider.state.disabled"
	case !c.HeldUntil.IsZero():
		return ui.Warn, "provider.state.held"
	case c.State == delivery.CircuitOpen || c.State == delivery.CircuitHalfOpen:
		return ui.Bad, "provider.state.open"
	}
	return ui.Good, "provider.state.ready"
}

// rule describes which messages the provider gets.
func (p Providers) rule(ctx context.Context, one provider.Provider) string {
	whose := ui.T(ctx, "provider.all_shops")
	if one.Shop != 0 {
		whose = p.Shops[one.Shop]
	}
	if !one.Kind.Shares() {
		return ui.T(ctx, "provider.rule.apps", one.App().Name, whose, one.Order)
	}
	text := ui.T(ctx, "provider.rule", whose, one.Order, one.Weight)
	if len(one.Countries) > 0 {
		text += ui.T(ctx, "ui.list_join") + strings.Join(one.Countries, ", ")
	}
	return text
}

// health describes the results of its calls in the last minute.
func (p Providers) health(ctx context.Context, one provider.Provider) string {
	h, ok := p.Health[one.ID]
	if !ok {
		return ui.T(ctx, "provider.quiet")
	}
	return ui.T(ctx, "provider.health", h.Share, ui.Num(ctx, h.Messages), ui.Num(ctx, h.Failed))
}

func (f ProviderForm) action() string {
	if f.ID == 0 {
		return "/providers"
	}
	return providerURL(f.ID)
}

// tryURL is where the values of the form are tried.
func (f ProviderForm) tryURL() string { return f.action() + "/try" }

func (f ProviderForm) channel() delivery.Channel {
	c, _ := f.Kind.Channel()
	return c
}

func (f ProviderForm) title(ctx context.Context) string {
	if f.ID == 0 {
		return ui.T(ctx, "provider.new_of", kindName(ctx, f.Kind))
	}
	return f.Values["name"]
}

func kindName(ctx context.Context, k provider.Kind) string {
	return ui.T(ctx, "provider.kind."+string(k))
}

func (f ProviderForm) sms() bool { return f.channel() == delivery.SMS }

// orderHelp explains the order of the kind's providers.
func (f ProviderForm) orderHelp(ctx context.Context) string {
	switch {
	case f.Kind.Platform().OneTime():
		return ui.T(ctx, "provider.help.order.programs")
	case !f.Kind.Shares():
		return ui.T(ctx, "provider.help.order.apps")
	}
	return ui.T(ctx, "provider.help.order")
}

// shopHelp explains a provider of a shop's own.
func (f ProviderForm) shopHelp(ctx context.Context) string {
	if !f.Kind.Shares() && !f.Kind.Platform().OneTime() {
		return ui.T(ctx, "provider.help.shop.apps")
	}
	return ui.T(ctx, "provider.help.shop")
}

func (f ProviderForm) set(name string) bool {
	for _, s := range f.Set {
		if s == name {
			return true
		}
	}
	return false
}

// fieldLabel returns the name of a setting; a kind may have a name of its own for it.
func (f ProviderForm) fieldLabel(ctx context.Context, name string) string {
	for _, key := range []string{"provider.field." + string(f.Kind) + "." + name, "provider.field." + name} {
		if ui.From(ctx).Locale.Has(key) {
			return ui.T(ctx, key)
		}
	}
	return parts.FieldLabel(ctx, name)
}

// errorLabel is the label of a field with an error.
func (f ProviderForm) errorLabel(ctx context.Context, name string) string {
	if name == "recipient" {
		return ui.T(ctx, "tests.recipient")
	}
	return f.fieldLabel(ctx, name)
}

func (f ProviderForm) props(ctx context.Context, field provider.Field) ui.FieldProps {
	p := ui.FieldProps{Name: field.Name, Label: f.fieldLabel(ctx, field.Name), Value: f.Values[field.Name], Error: ui.ErrorOf(ctx, f.Errors, field.Name), Required: field.Required, Autocomplete: "off"}
	p.Help = f.help(ctx, field)
	if field.Long {
		p.Type = "textarea"
	}
	if field.Secret {
		p.Value = ""
		if !field.Long { // an input would join the lines
			p.Type, p.Autocomplete = "password", "new-password"
		}
		if f.set(field.Name) {
			p.Required, p.Help = false, ui.T(ctx, "ui.sentences", ui.T(ctx, "provider.secret_set"), p.Help)
		}
	}
	return p
}

// help describes the content of the field; empty = the label is enough.
func (f ProviderForm) help(ctx context.Context, field provider.Field) string {
	if key := "provider.help." + string(f.Kind) + "." + field.Name; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	if field.Name == "url" && !field.Required {
		return ui.T(ctx, "provider.help.url")
	}
	return ""
}

func choiceOptions(ctx context.Context, field provider.Field) []ui.Option {
	of, none := "provider."+field.Name+".", "provider.none"
	if ui.From(ctx).Locale.Has(of + "none") {
		none = of + "none"
	}
	list := []ui.Option{{Label: ui.T(ctx, none)}}
	for _, c := range field.Choices {
		list = append(list, ui.Option{Value: c, Label: ui.T(ctx, of+c)})
	}
	return list
}

func providerShops(ctx context.Context, shops []template.Shop) []ui.Option {
	list := []ui.Option{{Label: ui.T(ctx, "provider.all_shops")}}
	for _, s := range shops {
		list = append(list, ui.Option{Value: fmt.Sprint(s.Number), Label: s.Name})
	}
	return list
}

func providerCrumbs(ctx context.Context) []ui.Crumb {
	return []ui.Crumb{{Label: ui.T(ctx, "nav.providers"), URL: "/providers"}}
}
