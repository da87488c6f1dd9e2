package work

import (
	"context"

	"dropbell/adapters/watermill"
	"dropbell/domain/task"
)

// Topics are the events of the bus that [Hooks.Handle] handles.
func (h *Hooks) Topics() (list []string) {
	for _, one := range h.handlers() {
		list = append(list, one.Topic)
	}
	return list
}

// Handle makes webhook events of an event of the bus, as the handlers do. A repetition changes nothing.
func (h *Hooks) Handle(ctx context.Context, e watermill.Event) error {
	for _, one := range h.handlers() {
		if one.Topic == e.Topic {
			return one.Do(ctx, e)
		}
	}
	return nil
}

// Sweep makes the webhook events that follow from rows, and wakes endpoints with due events.
func (h *Hooks) Sweep(ctx context.Context) error { return h.sweep(ctx) }

// Send sends due events to an endpoint.
func (h *Hooks) Send(ctx context.Context, p task.HookPayload) error { return h.send(ctx, p) }
