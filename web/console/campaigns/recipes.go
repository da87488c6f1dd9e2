package campaigns

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/recipe"
	"dropbell/domain/series"
	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) showRecipes(w http.ResponseWriter, r *http.Request) error {
	shop, _ := strconv.ParseInt(r.FormValue("shop"), 10, 64) // nonsense is the first shop
	return h.drawRecipes(w, r, http.StatusOK, shop, campaignpages.Recipes{})
}

// drawRecipes shows the recipes of a shop; 0 = of the first one that the member sees.
func (h *handlers) drawRecipes(w http.ResponseWriter, r *http.Request, status int, shop int64, p campaignpages.Recipes) (err error) {
	if p.Shops, err = h.AllShopsOf(r); err != nil {
		return err
	}
	i := slices.IndexFunc(p.Shops, func(s template.Shop) bool { return s.Number == shop })
	switch {
	case i >= 0:
		p.Shop = p.Shops[i]
	case shop != 0:
		return recipe.ErrNotFound
	case len(p.Shops) > 0:
		p.Shop = p.Shops[0]
	default:
		return h.Show(w, r, status, p.Draw())
	}
	place, err := h.CellOf(strconv.FormatInt(p.Shop.Number, 10))
	if err != nil {
		return err
	}
	of := h.cells[place]
	if p.Found, err = of.Recipes.Page(r.Context(), shell.Actor(r), p.Shop.Number); err != nil {
		return err
	}
	if err := of.Recipes.Reach(r.Context(), &p.Found); err != nil {
		return err
	}
	p.Channels = of.Channels.Set()
	return h.Show(w, r, status, p.Draw())
}

// typedRecipe returns the settings as they are typed, and the fields that cannot be read.
func typedRecipe(r *http.Request, f recipe.Form) (v map[string]string, s recipe.Settings, broken []fault.Field) {
	v = map[string]string{}
	for _, name := range campaignpages.RecipeFields(f) {
		v[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	rd := &shell.Reading{Values: v}
	number := func(name string) int {
		if _, asked := v[name]; !asked || v[name] == "" {
			return 0
		}
		return int(rd.Number(name))
	}
	s = recipe.Settings{On: v["on"] != "", HoldOut: number("hold_out"), AfterMinutes: number("after_minutes"), Days: number("days"), EveryDays: number("every_days"),
		GrantTemplate: int64(number("grant_template")), Weekday: time.Weekday(number("weekday")), Texts: map[string]delivery.Text{}}
	if c, err := delivery.ParseChannel(v["channel"]); err == nil {
		s.Channel = c
	} else {
		rd.Broken.Add("channel", "rule.channel", "unknown channel")
	}
	if typed, asked := v["clock"]; asked {
		clock, ok := series.ParseClock(typed)
		if s.Clock = clock; !ok {
			rd.Broken.Add("clock", "rule.series_clock", "must be a time of day, such as 20:00")
		}
	}
	for _, language := range campaignpages.RecipeLanguages() {
		t := delivery.Text{Title: v[campaignpages.RecipeText("title", language)], Body: v[campaignpages.RecipeText("body", language)]}
		if language == "" || !t.Empty() {
			s.Texts[language] = t
		}
	}
	if t := s.Texts[""]; !s.On && t.Empty() && len(s.Texts) == 1 {
		s.Texts = nil
	}
	return v, s, rd.Broken.List
}

func (h *handlers) saveRecipe(w http.ResponseWriter, r *http.Request) error {
	shop, err := shell.PathID(r)
	if err != nil {
		return err
	}
	f := recipe.Form(r.PathValue("form"))
	if !slices.Contains(recipe.Forms(), f) {
		return recipe.ErrNotFound
	}
	values, set, broken := typedRecipe(r, f)
	version, _ := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	url := fmt.Sprintf("/recipes?shop=%d#%s", shop, f)
	if len(broken) == 0 {
		place, missing := h.CellOf(strconv.FormatInt(shop, 10))
		if missing != nil {
			return missing
		}
		err = h.cells[place].Recipes.Save(r.Context(), shell.Actor(r), shop, f, version, set)
		broken = shell.FieldsOf(err)
	}
	switch {
	case len(broken) > 0:
		return h.drawRecipes(w, r, http.StatusUnprocessableEntity, shop, campaignpages.Recipes{Refused: f, Values: values, Errors: broken})
	case errors.Is(err, fault.ErrStale):
		return h.Done(w, r, url, ui.Warn, ui.FaultText(r.Context(), err))
	case err != nil:
		return err
	}
	return h.Done(w, r, url, ui.Good, shell.Say(r, "recipe.saved", shell.Say(r, "recipe."+string(f))))
}
