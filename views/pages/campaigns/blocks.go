package campaigns

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// A TextPlace names one text of the form: a version (a or b) in the default language or in the
// further language with an index.
type TextPlace string

// TextPlaceOf returns the place of a version in the further language with that index; -1 is the
// default language.
func TextPlaceOf(version, language int) TextPlace {
	name := [...]string{"a", "b"}[version]
	if language >= 0 {
		name += strconv.Itoa(language)
	}
	return TextPlace(name)
}

// Field names an input of the place.
func (t TextPlace) Field(name string) string { return string(t) + "_" + name }

// Block names an input of a block of the place, from 0.
func (t TextPlace) Block(i int, part string) string {
	return fmt.Sprintf("%s_block%d_%s", string(t), i, part)
}

// Places returns the places of all texts of a form.
func Places(values map[string]string) []TextPlace {
	var list []TextPlace
	for version := range 2 {
		for i := -1; i < Languages(values); i++ {
			list = append(list, TextPlaceOf(version, i))
		}
	}
	return list
}

// BlocksIn returns the blocks of a place among the values of a form.
func BlocksIn(values map[string]string, of TextPlace) []message.Block {
	var list []message.Block
	for i := 0; ; i++ {
		kind, ok := values[of.Block(i, "type")]
		if !ok {
			return list
		}
		list = append(list, message.Block{Type: message.BlockType(kind), Text: values[of.Block(i, "text")], URL: values[of.Block(i, "url")]})
	}
}

// SetBlocks replaces the blocks of a place among the values of a form.
func SetBlocks(values map[string]string, of TextPlace, list []message.Block) {
	for i := range BlocksIn(values, of) {
		for _, part := range []string{"type", "text", "url"} {
			delete(values, of.Block(i, part))
		}
	}
	for i, b := range list {
		values[of.Block(i, "type")], values[of.Block(i, "text")], values[of.Block(i, "url")] = string(b.Type), b.Text, b.URL
	}
}

// BlocksOf returns the blocks of a place.
func (p CampaignForm) BlocksOf(of TextPlace) []message.Block { return BlocksIn(p.Values, of) }

func (p CampaignForm) blockField(ctx context.Context, of TextPlace, i int, part, label, value, kind string) ui.FieldProps {
	name := of.Block(i, part)
	return ui.FieldProps{Name: name, Label: ui.T(ctx, label), Type: kind, Value: value, Error: ui.ErrorOf(ctx, p.Errors, name), Required: true, Autocomplete: "off"}
}

func blockTypes(ctx context.Context) []ui.Option {
	var list []ui.Option
	for _, t := range message.BlockTypes() {
		list = append(list, ui.Option{Value: string(t), Label: ui.T(ctx, "message.block."+string(t))})
	}
	return list
}

func (p CampaignForm) testByChoice(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "test_by", Label: ui.T(ctx, "campaign.field.test_by"), Value: p.Values["test_by"], Error: ui.ErrorOf(ctx, p.Errors, "test_by"), Required: true}
	for _, by := range delivery.TestMeasures() {
		c.Options = append(c.Options, ui.Option{Value: by, Label: ui.T(ctx, "campaign.test_by."+by)})
	}
	return c
}

// testMinutesChoice offers times, and the time of the campaign if it is another one.
func (p CampaignForm) testMinutesChoice(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "test_minutes", Label: ui.T(ctx, "campaign.field.test_minutes"), Help: ui.T(ctx, "campaign.help.test_minutes"), Value: p.Values["test_minutes"],
		Error: ui.ErrorOf(ctx, p.Errors, "test_minutes"), Required: true}
	return offered(c, []int{30, 60, 120, 240, 480, 1440, 2880}, func(minutes int) string {
		return ui.From(ctx).Locale.Duration((delivery.Test{Minutes: minutes}).Lasts())
	})
}

// channelReach says how many users of the audience the channel reaches; "" while the audience is not
// chosen.
func (p CampaignForm) channelReach(ctx context.Context, c delivery.Channel) string {
	if n, known := p.Reaches[c]; known && p.Channels.Has(c) {
		return ui.N(ctx, "campaign.audience.members", n)
	}
	return ""
}

// offered adds the numbers to the choice, and the chosen number if it is another one, or what was typed.
func offered(c ui.ChoiceProps, numbers []int, text func(int) string) ui.ChoiceProps {
	for _, n := range numbers {
		c.Options = append(c.Options, ui.Option{Value: strconv.Itoa(n), Label: text(n)})
	}
	if slices.ContainsFunc(c.Options, func(o ui.Option) bool { return o.Value == c.Value }) {
		return c
	}
	other := ui.Option{Value: c.Value, Label: c.Value}
	if n, err := strconv.Atoi(c.Value); err == nil {
		other.Label = text(n)
	}
	c.Options = append(c.Options, other)
	return c
}

// shareChoice offers percentages of the recipients; "" = none.
func (p CampaignForm) shareChoice(ctx context.Context, name string, percents ...int) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: name, Label: ui.T(ctx, "campaign.field."+name), Help: ui.T(ctx, "campaign.help."+name), Value: p.Values[name], Error: ui.ErrorOf(ctx, p.Errors, name),
		Options: []ui.Option{{Label: ui.T(ctx, "campaign.none."+name)}}}
	return offered(c, percents, func(n int) string { return parts.PercentText(ctx, n) })
}

// rateChoice offers numbers of messages per second, with their number per hour; "" = as fast as the
// channel allows.
func (p CampaignForm) rateChoice(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "rate_per_second", Label: ui.T(ctx, "campaign.field.rate_per_second"), Value: strings.TrimLeft(p.Values["rate_per_second"], "0"),
		Error: ui.ErrorOf(ctx, p.Errors, "rate_per_second"), Options: []ui.Option{{Label: ui.T(ctx, "campaign.rate.unlimited")}}}
	return offered(c, []int{5, 20, 100, 500}, func(n int) string { return ui.T(ctx, "campaign.rate.of", n, ui.Num(ctx, int64(n)*3600)) })
}

// variables are the variables of the texts of campaigns.
func variables(ctx context.Context) []string { return parts.VariablesOf(ctx, message.Campaign) }
