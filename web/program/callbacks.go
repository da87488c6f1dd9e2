package program

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/mailfeedback"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/sms"
	"dropbell/app"
	"dropbell/domain/feedback"
	"dropbell/web/callbacks"
)

// mountCallbacks serves what providers call to report what became of messages.
// Without a configured provider every address below the prefix is missing.
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

// callbackSources are those of the configured providers.
func (p *program) callbackSources() (sources []callbacks.Source, err error) {
	refs := feedback.NewRefs(p.Config.LinkSecret)
	if len(p.Config.SESTopics) > 0 {
		sources = append(sources, mailfeedback.NewSES(p.Config.SESTopics, refs, http.DefaultClient, app.Clock))
	}
	if p.Config.SendGridKey != "" {
		s, err := mailfeedback.NewSendGrid(p.Config.SendGridKey, refs, app.Clock)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	if p.Config.MailgunKey != "" {
		sources = append(sources, mailfeedback.NewMailgun(p.Config.MailgunKey, refs, app.Clock))
	}
	if p.Config.PostmarkSecret != "" {
		sources = append(sources, mailfeedback.NewPostmark(p.Config.PostmarkSecret, refs))
	}
	if p.Config.DirectMailToken != "" {
		sources = append(sources, mailfeedback.NewDirectMail(p.Config.DirectMailToken, refs, http.DefaultClient, app.Clock))
	}
	return append(sources, p.smsSources(refs)...), nil
}

// suppressions is what staff do with addresses that nothing is sent to.
func (p *program) suppressions() *feedback.Suppressions {
	return &feedback.Suppressions{Store: p.Stores.Suppressions}
}

// startFeedback makes what stores reports.
func (p *program) startFeedback() {
	p.feedback = deliverydb.NewFeedback(p.DB, nil)
	p.OnClose(func() error { p.feedback.Close(); return nil })
}

// countedReports counts what becomes of reports.
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
