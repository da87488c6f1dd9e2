package webhook_test

import (
	"context"
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/propagation"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/webhook"
	"dropbell/domain/delivery"
)

func TestTheCallCarriesItsTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := make(chan http.Header, 2)
	e := &endpoint{answer: func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }}
	s := newSender(t, webhook.Config{URL: start(t, e)})
	messages := sendertest.Messages(delivery.Webhook, 1)
	traced := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent})
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{{traced, parent}, {t.Context(), ""}} {
		if r := s.Send(c.ctx, messages); r[0].Status != delivery.Delivered {
			t.Fatalf("%+v", r)
		}
		if h := (<-got).Get("traceparent"); h != c.want {
			t.Errorf("traceparent %q, want %q", h, c.want)
		}
	}
}
