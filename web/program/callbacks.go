package program

import (
	"context"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/sms"
	"dropbell/app"
	"dropbell/domain/delivery/feedback"
	"dropbell/web/callbacks"
)

// mountCallbacks serves the callbacks of providers that report on messages. Without a configured
// provider every address below the prefix answers 404.
func (p *program) mountCallbacks(r chi.Router) error {
	sources, err := p.callbackSources()
	if err != nil {
		return err
	}
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_callbacks_total",
		Help: "Calls of providers that report what became of messages, by source and result."}, []string{"source", "result"})
	reports := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_feedback_reports_total",
		Help: "Reports in these calls: stored, known before, or ignored because they name no message that is kept."}, []string{"result"})
	p.Registry.MustRegister(calls, reports)
	r.Mount(callbacks.Prefix, callbacks.New(callbacks.Deps{Sources: sources, Provided: p.newProviderSources().find, Reports: countedReports{p.feedback, reports}, PublicURL: p.Config.PublicURL,
		Replies: feedback.Replier{Words: p.Stores.Users, Forms: sms.Forms},
		Budget:  callbacks.NewBudget(p.budgets), Now: app.Clock, Log: p.Log,
		Answered: func(source, result string) { calls.WithLabelValues(source, result).Inc() }}))
	return nil
}

// suppressions returns the use case for addresses that no messages are sent to.
func (p *program) suppressions() *feedback.Suppressions {
	return &feedback.Suppressions{Store: p.Stores.Suppressions}
}

// startFeedback makes the service that stores reports.
func (p *program) startFeedback() {
	p.feedback = deliverydb.NewFeedback(p.DB, nil)
	p.OnClose(func() error { p.feedback.Close(); return nil })
}

// countedReports counts the outcomes of reports.
type countedReports struct {
	store *deliverydb.Feedback
	total *prometheus.CounterVec
}

// Take is part of [feedback.Taker].
func (c countedReports) Take(ctx context.Context, reports []feedback.Report) error {
	n, err := c.store.Count(ctx, reports)
	for result, n := range map[string]int{"stored": n.Stored, "known": n.Known, "ignored": n.Ignored} {
		c.total.WithLabelValues(result).Add(float64(n))
	}
	return err
}
