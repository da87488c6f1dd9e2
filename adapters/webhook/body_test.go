package webhook_test

import (
	"fmt"
	"testing"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/webhook"
	"dropbell/domain/delivery"
)

// TestEverybodyReadsTheirOwn mixes two subjects and more contents in one call than are cached in
// encoded form.
func TestEverybodyReadsTheirOwn(t *testing.T) {
	e := new(endpoint)
	s := newSender(t, webhook.Config{URL: start(t, e)})
	messages := sendertest.Messages(delivery.Webhook, 100)
	var contents [20]delivery.Content
	for i := range contents {
		contents[i] = delivery.Content{Title: fmt.Sprint("title ", i), Text: fmt.Sprint("text ", i)}
	}
	second := *messages[0].Subject
	second.TemplateID = 8
	for i := range messages {
		messages[i].Content = &contents[i%len(contents)]
		if i%3 == 0 {
			messages[i].Subject = &second
		}
	}
	s.Send(t.Context(), messages)
	if len(e.calls) != 1 || len(e.calls[0].messages) != len(messages) {
		t.Fatalf("%d calls", len(e.calls))
	}
	for i, got := range e.calls[0].messages {
		m := messages[i]
		if got.Title != m.Content.Title || got.Text != m.Content.Text || got.TemplateID != fmt.Sprint(m.Subject.TemplateID) ||
			got.UserID != m.To.ID.String() || got.IdempotencyKey != m.IdempotencyKey() {
			t.Errorf("message %d: %+v", i, got)
		}
	}
}
