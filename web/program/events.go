package program

import (
	"context"

	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
)

// listen keeps this process's caches fresh and its connected clients up to
// date. What is missed costs a second of staleness, or a look into the inbox.
func (p *program) listen() {
	p.listenGate()
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateChanged,
		event.TemplateClosed, event.TemplateCancelled} {
		p.bus.Listen("template-cache", topic, app.Decoded(func(_ context.Context, _ string, e event.Template) error {
			p.lookup.Forget(e.TemplateID)
			return nil
		}))
	}
	p.listenCodes()
	p.bus.Listen("sold-out", event.CouponsIssued, app.Decoded(p.soldOut))
	p.bus.Listen("inbox-push", event.BatchFinished, app.Decoded(p.push))
}

// push shows a finished in-app batch to the clients that are connected here.
func (p *program) push(ctx context.Context, _ string, e event.Batch) error {
	return p.inbox.Push(ctx, delivery.Channel(e.Channel), delivery.Kind(e.Kind), e.BatchID, p.hub)
}
