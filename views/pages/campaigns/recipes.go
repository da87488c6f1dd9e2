package campaigns

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/recipe"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Recipes are the recipes of one shop, a card each.
type Recipes struct {
	Found    recipe.Page
	Shop     template.Shop
	Shops    []template.Shop
	Channels delivery.ChannelSet
	// Refused is the form whose typed Values were refused for Errors; "" = none was.
	Refused recipe.Form
	Values  map[string]string
	Errors  []fault.Field
}

// RecipeLanguages are the languages of texts: the default, and two others.
func RecipeLanguages() []string { return []string{"", "en", "zh-CN"} }

// RecipeText is the name of the field of a title or body in a language.
func RecipeText(part, language string) string {
	if language == "" {
		return part
	}
	return part + "." + language
}

// RecipeFields are the names of the fields of a form.
func RecipeFields(f recipe.Form) []string {
	list := []string{"on", "channel", "hold_out"}
	switch {
	case f.AboutDrop():
		list = append(list, "after_minutes")
	case f == recipe.WinBack:
		list = append(list, "days", "every_days", "grant_template", "clock")
	default:
		list = append(list, "weekday", "clock")
	}
	for _, language := range RecipeLanguages() {
		list = append(list, RecipeText("title", language), RecipeText("body", language))
	}
	return list
}

// values are the values of the card's form.
func (p Recipes) values(ctx context.Context, r recipe.Recipe) map[string]string {
	if r.Form == p.Refused {
		return p.Values
	}
	v := map[string]string{"channel": r.Channel.String(), "hold_out": strconv.Itoa(r.HoldOut), "after_minutes": strconv.Itoa(r.AfterMinutes), "days": strconv.Itoa(r.Days),
		"every_days": strconv.Itoa(r.EveryDays), "weekday": strconv.Itoa(int(r.Weekday)), "clock": r.Clock.String()}
	if r.On {
		v["on"] = "1"
	}
	if r.GrantTemplate != 0 {
		v["grant_template"] = strconv.FormatInt(r.GrantTemplate, 10)
	}
	for _, language := range RecipeLanguages() {
		v[RecipeText("title", language)], v[RecipeText("body", language)] = r.Texts[language].Title, r.Texts[language].Body
	}
	if r.Version == 0 {
		v["title"], v["body"] = ui.T(ctx, "recipe."+string(r.Form)+".text_title"), ui.T(ctx, "recipe."+string(r.Form)+".text_body")
	}
	return v
}

func (p Recipes) manage(ctx context.Context) bool {
	return ui.May(ctx, staff.ManageCampaigns, p.Shop.Number)
}

func (p Recipes) action(f recipe.Form) string { return fmt.Sprintf("/recipes/%d/%s", p.Shop.Number, f) }

// reachText says how many users a round would find.
func (p Recipes) reachText(ctx context.Context, r recipe.Recipe, n int64) string {
	if r.Form.AboutDrop() {
		return ui.N(ctx, "recipe.reach.drop", n)
	}
	return ui.N(ctx, "recipe.reach", n)
}

// rounds are those of the form, the newest first.
func (p Recipes) rounds(f recipe.Form) []recipe.Listed {
	return slices.DeleteFunc(slices.Clone(p.Found.Rounds), func(l recipe.Listed) bool { return l.Form != f })
}

// id is the id of an input. The refused form has the ids to which the list of errors leads.
func (p Recipes) id(f recipe.Form, name string) string {
	if f == p.Refused {
		return "f-" + name
	}
	return "f-" + string(f) + "-" + name
}

// field describes an input of a card.
func (p Recipes) field(ctx context.Context, r recipe.Recipe, v map[string]string, name string) ui.FieldProps {
	f := ui.FieldProps{Name: name, ID: p.id(r.Form, name), Label: recipeLabel(ctx, name), Value: v[name], Autocomplete: "off"}
	if r.Form == p.Refused {
		f.Error = ui.ErrorOf(ctx, p.Errors, name)
	}
	switch name {
	case "hold_out":
		f.Suffix, f.InputMode, f.Narrow = "%", "numeric", true
	case "after_minutes", "days", "every_days", "grant_template":
		f.InputMode, f.Narrow, f.Required = "numeric", true, true
	case "clock":
		f.Type, f.Narrow, f.Required = "time", true, true
	case RecipeText("title", ""), RecipeText("body", ""):
		f.Required = true
	}
	return f
}

// channel is the choice of the channel; its id is that of the card.
func (p Recipes) channel(ctx context.Context, r recipe.Recipe, v map[string]string) []ui.Option {
	var list []ui.Option
	for _, c := range delivery.AllChannels() {
		if p.Channels.Has(c) || v["channel"] == c.String() {
			list = append(list, ui.Option{Value: c.String(), Label: ui.T(ctx, "channel."+c.String())})
		}
	}
	return list
}

func weekdays(ctx context.Context) []ui.Option {
	var list []ui.Option
	for d := range 7 {
		_, long := ui.From(ctx).Locale.Weekday(time.Weekday((d + 1) % 7))
		list = append(list, ui.Option{Value: strconv.Itoa((d + 1) % 7), Label: long})
	}
	return list
}

// recipeTextLabel is the label of a title or body in a language.
func recipeTextLabel(ctx context.Context, part, language string) string {
	if language == "" {
		return ui.T(ctx, "recipe.field."+part)
	}
	return ui.T(ctx, "recipe.in", ui.T(ctx, "recipe.field."+part), ui.From(ctx).Locale.LanguageName(language))
}

func recipeLabel(ctx context.Context, name string) string {
	for _, language := range RecipeLanguages() {
		for _, part := range []string{"title", "body"} {
			if name == RecipeText(part, language) {
				return recipeTextLabel(ctx, part, language)
			}
		}
	}
	return ui.T(ctx, "recipe.field."+name)
}

// roundState says how far a round is.
func roundState(ctx context.Context, l recipe.Listed) (ui.Tone, string) {
	now := ui.From(ctx).Now
	switch {
	case l.Why != nil:
		return ui.Bad, ui.T(ctx, "recipe.round.refused")
	case l.State == recipe.Done && l.CampaignID == 0 && l.Users > 0:
		return ui.Neutral, ui.T(ctx, "recipe.round.no_drop")
	case l.State == recipe.Done && l.CampaignID == 0:
		return ui.Neutral, ui.T(ctx, "recipe.round.empty")
	case l.Expired(now):
		return ui.Warn, ui.T(ctx, "recipe.round.expired")
	case l.Asked:
		return ui.Warn, ui.T(ctx, "recipe.round.asked")
	case l.Campaign == campaign.Paused:
		return ui.Warn, ui.T(ctx, "recipe.round.paused")
	case l.Campaign == campaign.Cancelled:
		return ui.Neutral, ui.T(ctx, "recipe.round.cancelled")
	case l.Campaign == campaign.Finished:
		return ui.Good, ui.T(ctx, "recipe.round.finished")
	}
	return ui.Info, ui.T(ctx, "recipe.round.running")
}

// whyRound says why a round was refused.
func whyRound(ctx context.Context, l recipe.Listed) string {
	if l.Why == nil {
		return ""
	}
	return ui.FaultText(ctx, l.Why)
}

// zoneOf is the time zone of the shop.
func (p Recipes) zoneOf() *time.Location {
	return template.Template{ShopTimezone: p.Shop.Timezone}.Zone()
}

// shopOptions are the shops to choose from.
func (p Recipes) shopOptions(ctx context.Context) []ui.Option { return parts.ShopOptions(ctx, p.Shops) }

// isRecipeText reports whether the field is a title or a body.
func isRecipeText(name string) bool {
	return slices.ContainsFunc(RecipeLanguages(), func(language string) bool {
		return name == RecipeText("title", language) || name == RecipeText("body", language)
	})
}
