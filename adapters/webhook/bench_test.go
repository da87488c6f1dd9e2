package webhook_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/webhook"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// BenchmarkSend compares the sender with a bare client that posts the same body unsigned, either
// ready made or marshalled for each call. One operation is one message.
func BenchmarkSend(b *testing.B) {
	messages := sendertest.Messages(delivery.Webhook, 100)
	url := start(b, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Run("bare client, ready made", func(b *testing.B) {
		body := marshal(b, messages)
		postAll(b, url, func() []byte { return body })
	})
	b.Run("bare client, marshalled", func(b *testing.B) {
		postAll(b, url, func() []byte { return marshal(b, messages) })
	})
	b.Run("sender", func(b *testing.B) {
		s := newSender(b, webhook.Config{URL: url})
		for i := 0; i < b.N; i += len(messages) {
			s.Send(b.Context(), messages[:min(len(messages), b.N-i)])
		}
	})
}

func postAll(b *testing.B, url string, body func() []byte) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	for i := 0; i < b.N; i += 100 {
		resp, err := client.Post(url, "application/json", bytes.NewReader(body()))
		musttest.OK(b, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

func marshal(b *testing.B, messages []delivery.Message) []byte {
	list := make([]message, len(messages))
	for i, m := range messages {
		list[i] = message{m.To.ID.String(), "7", "reminder", 2, m.Content.Title, m.Content.Text, m.IdempotencyKey()}
	}
	body, err := json.Marshal(map[string]any{"messages": list})
	musttest.OK(b, err)
	return body
}
