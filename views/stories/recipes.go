package stories

import (
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/recipe"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
)

// recipePages are the recipes of a shop: with rounds in every state, never used, and with refused settings.
func recipePages() []Story {
	var used, fresh []recipe.Recipe
	for i, f := range recipe.Forms() {
		set := recipe.Settings{On: i%2 == 0, Channel: delivery.App, HoldOut: 10, AfterMinutes: 30, Days: 60, EveryDays: 30, GrantTemplate: 7, Clock: series.Clock(10 * 3600), Weekday: time.Monday,
			Texts: map[string]delivery.Text{"": {Title: "Coupons are left", Body: "Come and get yours"}}}
		used = append(used, recipe.Recipe{ID: int64(i + 1), Shop: 10, Form: f, Settings: set, Version: 2})
		fresh = append(fresh, recipe.Recipe{Shop: 10, Form: f, Settings: recipe.Settings{AfterMinutes: 30, Days: 60, EveryDays: 30}})
	}
	round := func(i int, f recipe.Form, state campaign.State) recipe.Listed {
		return recipe.Listed{Round: recipe.Round{ID: int64(i), Form: f, State: recipe.Done, At: Now().Add(-time.Duration(i) * time.Hour), Until: Now().Add(time.Hour), Users: 1_204, CampaignID: int64(i)}, Campaign: state,
			Counts: delivery.Counts{Reserved: 1_204, Sent: 1_000, Skipped: 150, InFlight: 54}, HeldOut: 120}
	}
	rounds := []recipe.Listed{round(1, recipe.Missed, campaign.Running), round(2, recipe.Missed, campaign.Finished), round(3, recipe.Missed, campaign.Paused), round(4, recipe.Missed, campaign.Cancelled),
		round(5, recipe.Lost, campaign.Draft), round(6, recipe.WinBack, campaign.Finished), round(7, recipe.Calendar, "")}
	rounds[4].Asked = true
	for i := range rounds[:5] {
		rounds[i].DropName = "Moon cake night"
	}
	rounds[5].Until, rounds[5].Counts.Expired = Now().Add(-time.Minute), 54
	rounds[6].CampaignID, rounds[6].Counts, rounds[6].HeldOut, rounds[6].Users = 0, delivery.Counts{}, 0, 0
	noDrop := rounds[6]
	noDrop.Users = 1_204
	refused := round(8, recipe.Lost, "")
	refused.CampaignID, refused.Why = 0, fault.ErrInvalid.Because("body: contains {{link}}, and there is no link").Told("rule.empty_link")
	refused.DropName = "Moon cake night"
	shop := template.Shop{Number: 10, Name: "Harbour Tea House", Timezone: "Asia/Shanghai"}
	configured := delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS)
	page := campaignpages.Recipes{Found: recipe.Page{Recipes: used, Rounds: append(rounds, refused, noDrop), Drops: 4, Telling: 3}, Shop: shop, Shops: shops(), Channels: configured}
	wrong := campaignpages.Recipes{Found: recipe.Page{Recipes: fresh}, Shop: shop, Shops: shops()[:1], Channels: configured, Refused: recipe.WinBack,
		Values: map[string]string{"on": "1", "channel": "app", "days": "0", "every_days": "x", "clock": ""},
		Errors: []fault.Field{{Name: "days", Key: "rule.recipe_days", Message: "must be between 1 and 365"}, {Name: "grant_template", Key: "rule.recipe_grant", Message: "name the drop"}, {Name: "title", Key: "rule.required", Message: "is required"}}}
	return []Story{
		{Name: "recipes/used", Page: page.Draw()},
		{Name: "recipes/viewer", Page: page.Draw(), Role: staff.Viewer},
		{Name: "recipes/wrong", Page: wrong.Draw()},
		{Name: "recipes/none", Page: campaignpages.Recipes{}.Draw()},
	}
}
