package program

import (
	"github.com/go-chi/chi/v5"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/app"
	"dropbell/domain/feedback"
	"dropbell/web/callbacks"
)

// mountCallbacks serves what providers call to report what became of messages.
// Without a configured provider every address below the prefix is missing.
func (p *program) mountCallbacks(r chi.Router) {
	r.Mount(callbacks.Prefix, callbacks.New(callbacks.Deps{Sources: p.callbackSources(), PublicURL: p.Config.PublicURL, Replies: feedback.Replier{Words: audiencedb.NewUsers(p.DB)},
		Budget: callbacks.NewBudget(p.budgets), Now: app.Clock, Log: p.Log}))
}

// callbackSources are those of the configured providers.
func (p *program) callbackSources() (sources []callbacks.Source) {
	return append(sources, p.smsSources(feedback.NewRefs(p.Config.LinkSecret))...)
}
