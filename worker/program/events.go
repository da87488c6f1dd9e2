package program

import (
	"context"
	"encoding/json"

	"dropbell/adapters/postgres"
	"dropbell/adapters/watermill"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/task"
)

// handleEvents turns facts into work. Every handler is idempotent: events
// arrive at least once, and in no particular order.
func (p *program) handleEvents() {
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateClosed, event.TemplateCancelled} {
		p.bus.Handle("timers", topic, decoded(func(ctx context.Context, _ string, e event.Template) error {
			return p.timers.Schedule(ctx, e.TemplateID)
		}))
	}
	p.bus.Handle("announcements", event.AnnouncementCreated, decoded(func(ctx context.Context, _ string, e event.Announcement) error {
		return p.queue.Enqueue(ctx, task.Announce(e.AnnouncementID))
	}))
	p.handleCampaigns()
	p.gate.listen(p)
	p.bus.Handle("channel-tests", event.ChannelTestCreated, decoded(func(ctx context.Context, _ string, e event.ChannelTest) error {
		return p.queue.Enqueue(ctx, task.TestChannel(e.TestID))
	}))
	counters := postgres.NewCounters(p.db)
	p.bus.Handle("bookings", event.ReservationsChanged, decoded(counters.Count), watermill.Parallel(2))
}

// decoded adapts a handler of payloads to one of events. A payload that does
// not decode will not decode the next time either.
func decoded[T any](handle func(ctx context.Context, eventID string, payload T) error) watermill.HandlerFunc {
	return func(ctx context.Context, e watermill.Event) error {
		var payload T
		if err := json.Unmarshal(e.Payload, &payload); err != nil {
			return fault.ErrInvalid.Because("payload of %s: %v", e.Topic, err)
		}
		return handle(ctx, e.ID, payload)
	}
}
