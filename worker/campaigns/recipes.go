package campaigns

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/recipe"
)

// recipes returns the sweep that begins the rounds of recipes and publishes their campaigns.
func (d Deps) recipes() func(context.Context) error {
	rounds := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_recipe_rounds_total",
		Help: "Rounds of recipes by what became of them: sent (or waiting for approval), empty (no customer was found) or refused."}, []string{"outcome"})
	users := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_recipe_users_total", Help: "Users whom rounds of recipes found."})
	d.Registry.MustRegister(rounds, users)
	for _, outcome := range []string{"sent", "empty", "refused"} {
		rounds.WithLabelValues(outcome)
	}
	d.Recipes.Done = func(r recipe.Round) {
		outcome := "sent"
		switch {
		case r.Why != nil:
			outcome = "refused"
		case r.CampaignID == 0:
			outcome = "empty"
		}
		rounds.WithLabelValues(outcome).Inc()
		users.Add(float64(r.Users))
	}
	return d.Recipes.Sweep
}
