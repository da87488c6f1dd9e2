package program

import (
	"context"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/task"
)

// handleEvents turns facts into work. Every handler is idempotent: events
// arrive at least once, and in no particular order.
func (p *program) handleEvents() {
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateClosed, event.TemplateCancelled} {
		p.bus.Handle("timers", topic, app.Decoded(func(ctx context.Context, _ string, e event.Template) error {
			return p.timers.Schedule(ctx, e.TemplateID)
		}))
	}
	p.bus.Handle("announcements", event.AnnouncementCreated, app.Decoded(func(ctx context.Context, _ string, e event.Announcement) error {
		return p.queue.Enqueue(ctx, task.Announce(e.AnnouncementID))
	}))
	p.handleCampaigns()
	p.gate.listen(p)
	p.bus.Handle("channel-tests", event.ChannelTestCreated, app.Decoded(func(ctx context.Context, _ string, e event.ChannelTest) error {
		return p.queue.Enqueue(ctx, task.TestChannel(e.TestID))
	}))
	counters := dropsdb.NewCounters(p.DB)
	p.bus.Handle("bookings", event.ReservationsChanged, app.Decoded(counters.Count), watermill.Parallel(2))
}
