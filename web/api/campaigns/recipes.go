package campaigns

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/recipe"
	"dropbell/domain/series"
	"dropbell/web/api/pipeline"
)

// RecipeWish are the settings of a recipe.
type RecipeWish struct {
	On            bool   `json:"on" doc:"Whether it has rounds. A recipe that is off may have no texts." example:"true"`
	Channel       string `json:"channel" enum:"app,email,sms,webpush,webhook" example:"app"`
	Title         Words  `json:"title,omitempty"`
	Body          Words  `json:"body,omitempty" doc:"With the placeholders of campaigns; {{drop}} is the name of the drop, {{drops}} the drops of the next seven days, in calendar and lost."`
	HoldOut       int    `json:"hold_out_percent,omitempty" minimum:"0" maximum:"50" doc:"Of the users found, who get no message." example:"10"`
	AfterMinutes  int    `json:"after_minutes,omitempty" doc:"missed and lost: how long after the opening of a drop its round begins." example:"30"`
	Days          int    `json:"days,omitempty" doc:"win_back: for how many days a user got no coupon." example:"60"`
	EveryDays     int    `json:"every_days,omitempty" doc:"win_back: after how many days a user may be found again." example:"30"`
	GrantTemplate string `json:"grant_template_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"win_back: the drop whose coupon is given." example:"1"`
	Weekday       string `json:"weekday,omitempty" enum:"sunday,monday,tuesday,wednesday,thursday,friday,saturday" doc:"calendar: when it is sent; otherwise monday." example:"monday"`
	Clock         string `json:"clock,omitempty" doc:"win_back and calendar: the time of day, on the clocks of the shop; otherwise 00:00." example:"10:00"`
	Version       int64  `json:"version" minimum:"0" doc:"As it was read; 0 = it was never saved." example:"1"`
}

// Recipe is a recipe of a shop with its last rounds.
type Recipe struct {
	ShopNumber string        `json:"shop_number" example:"10"`
	Form       string        `json:"form" enum:"missed,lost,win_back,calendar" example:"missed"`
	Rounds     []RecipeRound `json:"rounds" nullable:"false" doc:"The last five, the newest first."`
	RecipeWish
}

// RecipeRound is a round of a recipe with its account: users = sent + skipped + held_out + left.
type RecipeRound struct {
	At         time.Time `json:"at"`
	Until      time.Time `json:"until" doc:"The deadline: nothing is sent from then on."`
	TemplateID string    `json:"template_id,omitempty" doc:"The drop that the round is about." example:"17"`
	CampaignID string    `json:"campaign_id,omitempty" doc:"Its campaign; absent until it is stored, and if no user was found." example:"5"`
	State      string    `json:"state" enum:"begun,found,made,done" doc:"done: the campaign is published or waits for approval, no user was found, or it was refused; code then says why." example:"done"`
	Users      int64     `json:"users" doc:"The users found." example:"1204"`
	Sent       int64     `json:"sent" example:"1100"`
	Skipped    int64     `json:"skipped" example:"4"`
	HeldOut    int64     `json:"held_out" example:"100"`
	Left       int64     `json:"left" example:"0"`
	Expired    bool      `json:"expired" doc:"The deadline came before all users had an outcome."`
	Code       string    `json:"code,omitempty" doc:"Why the campaign could not be stored or published; reason says it in words." example:"empty_link"`
	Reason     string    `json:"reason,omitempty"`
}

// RecipeList are the recipes of a shop.
type RecipeList struct {
	Recipes []Recipe `json:"recipes" nullable:"false" doc:"One of each form; a form that was never saved has the version 0."`
}

// RecipeRef names a recipe of a shop.
type RecipeRef struct {
	Number string `path:"number" pattern:"^[1-9][0-9]{0,18}$" example:"10"`
	Form   string `path:"form" enum:"missed,lost,win_back,calendar" example:"missed"`
}

type recipeAnswer struct{ Body Recipe }

const recipeExample = `{"on":true,"channel":"app","title":"Still there","body":"Some coupons of {{drop}} are left.","after_minutes":30,"version":0}`

func (h *handlers) recipeRoutes() {
	const recipes = "/admin/shops/{number}/recipes"
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, recipes, "list-recipes", "List the recipes of a shop with their figures", pipeline.Route{}), h.listRecipes)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, recipes+"/{form}", "get-recipe", "Show a recipe with the figures of its last rounds", pipeline.Route{}), h.getRecipe)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, recipes+"/{form}", "save-recipe", "Create or change a recipe",
		pipeline.Route{Codes: []string{"stale_version", "shop_not_found"}, Description: "In place of all settings before.", Example: recipeExample}), h.saveRecipe)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, recipes+"/{form}/stop", "stop-recipe", "Turn a recipe off",
		pipeline.Route{Codes: []string{"stale_version"}, Description: "Its settings stay. Rounds that have begun go on; pause or cancel their campaigns."}), h.stopRecipe)
}

func (h *handlers) listRecipes(ctx context.Context, in *struct {
	Number string `path:"number" pattern:"^[1-9][0-9]{0,18}$" example:"10"`
}) (*struct{ Body RecipeList }, error) {
	list, err := h.recipesOf(ctx, in.Number)
	return &struct{ Body RecipeList }{RecipeList{list}}, err
}

func (h *handlers) recipesOf(ctx context.Context, number string) ([]Recipe, error) {
	shop, err := pipeline.ParseID("path.number", number)
	if err != nil {
		return nil, err
	}
	page, err := h.Recipes.Page(ctx, pipeline.ActorOf(ctx), shop)
	now := h.Now()
	return pipeline.Each(page.Recipes, func(r recipe.Recipe) Recipe { return recipeJSON(r, page.Rounds, now) }), err
}

func (h *handlers) getRecipe(ctx context.Context, in *RecipeRef) (*recipeAnswer, error) {
	list, err := h.recipesOf(ctx, in.Number)
	if err != nil {
		return nil, err
	}
	return &recipeAnswer{list[slices.IndexFunc(list, func(r Recipe) bool { return r.Form == in.Form })]}, nil
}

func (h *handlers) saveRecipe(ctx context.Context, in *struct {
	RecipeRef
	Body RecipeWish
}) (*recipeAnswer, error) {
	shop, err1 := pipeline.ParseID("path.number", in.Number)
	settings, err2 := in.Body.settings()
	if err := pipeline.Merge(err1, err2); err != nil {
		return nil, err
	}
	if err := h.Recipes.Save(ctx, pipeline.ActorOf(ctx), shop, recipe.Form(in.Form), in.Body.Version, settings); err != nil {
		return nil, ofCampaign(err, "grant_template", "grant_template_id")
	}
	return h.getRecipe(ctx, &in.RecipeRef)
}

func (h *handlers) stopRecipe(ctx context.Context, in *RecipeRef) (*recipeAnswer, error) {
	shop, err := pipeline.ParseID("path.number", in.Number)
	if err != nil {
		return nil, err
	}
	if err := h.Recipes.Stop(ctx, pipeline.ActorOf(ctx), shop, recipe.Form(in.Form)); err != nil {
		return nil, err
	}
	return h.getRecipe(ctx, in)
}

func (w RecipeWish) settings() (recipe.Settings, error) {
	s := recipe.Settings{On: w.On, Texts: texts(w.Title, w.Body, nil), HoldOut: w.HoldOut, AfterMinutes: w.AfterMinutes, Days: w.Days, EveryDays: w.EveryDays}
	var err1, err2, err3 error
	if s.Channel, err1 = delivery.ParseChannel(w.Channel); err1 != nil {
		err1 = pipeline.Refused("body.channel", "unknown channel; use one of app, email, sms, webpush, webhook")
	}
	if w.GrantTemplate != "" {
		s.GrantTemplate, err2 = pipeline.ParseID("body.grant_template_id", w.GrantTemplate)
	}
	if w.Clock != "" {
		var ok bool
		if s.Clock, ok = series.ParseClock(w.Clock); !ok {
			err3 = pipeline.Refused("body.clock", "must be a time of day, such as 20:00")
		}
	}
	s.Weekday = time.Monday
	for d := time.Sunday; d <= time.Saturday; d++ {
		if weekday(d) == w.Weekday {
			s.Weekday = d
		}
	}
	return s, pipeline.Merge(err1, err2, err3)
}

func weekday(d time.Weekday) string { return strings.ToLower(d.String()) }

func recipeJSON(r recipe.Recipe, rounds []recipe.Listed, now time.Time) Recipe {
	j := Recipe{ShopNumber: pipeline.Decimal(r.Shop), Form: string(r.Form), Rounds: []RecipeRound{}, RecipeWish: RecipeWish{On: r.On, Channel: r.Channel.String(), HoldOut: r.HoldOut,
		AfterMinutes: r.AfterMinutes, Days: r.Days, EveryDays: r.EveryDays, Weekday: weekday(r.Weekday), Clock: r.Clock.String(), Version: r.Version}}
	if len(r.Texts) > 0 {
		j.Title, j.Body, _ = words(r.Texts)
	}
	if r.GrantTemplate != 0 {
		j.GrantTemplate = pipeline.Decimal(r.GrantTemplate)
	}
	for _, o := range rounds {
		if o.RecipeID != r.ID {
			continue
		}
		round := RecipeRound{At: o.At.UTC(), Until: o.Until.UTC(), State: string(o.State), Users: o.Users, Sent: o.Counts.Sent, Skipped: o.Skipped(), HeldOut: o.HeldOut, Left: o.Left(), Expired: o.Expired(now)}
		if o.Drop != 0 {
			round.TemplateID = pipeline.Decimal(o.Drop)
		}
		if o.CampaignID != 0 {
			round.CampaignID = pipeline.Decimal(o.CampaignID)
		}
		if o.Why != nil {
			round.Code, round.Reason = fault.CodeOf(o.Why), o.Why.Text
		}
		j.Rounds = append(j.Rounds, round)
	}
	return j
}
