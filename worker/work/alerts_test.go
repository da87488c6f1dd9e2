package work

import (
	"context"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/staff/alert"
)

// mailServer keeps the mails that it receives and answers as the test sets.
type mailServer struct {
	delivery.Sender
	got    []delivery.Message
	answer delivery.Result
}

func (m *mailServer) Send(_ context.Context, list []delivery.Message) []delivery.Result {
	m.got = append(m.got, list...)
	return delivery.Repeat(m.answer, len(list))
}

type noGroups struct{ t *testing.T }

func (g noGroups) Send(context.Context, alert.Delivery, string) alert.Outcome {
	g.t.Error("a mail went to a chat group")
	return alert.Outcome{}
}

// The subject of an alert mail names the condition. Every retry sends the same mail, and the
// outcomes follow the answers of the mail server.
func TestAlertsByMail(t *testing.T) {
	d := alert.Delivery{ID: 7, CreatedAt: time.Unix(1_700_000_000, 0), Destination: alert.Destination{Form: alert.Email, URL: "ops@example.com"}}
	for answer, want := range map[delivery.Result]alert.Outcome{
		{Status: delivery.Delivered}:                                         {State: alert.Sent},
		{Status: delivery.Permanent, Detail: "550 unknown"}:                  {State: alert.Failed, Detail: "550 unknown"},
		{Status: delivery.Transient, Detail: "timed out"}:                    {State: alert.Waiting, Detail: "timed out"},
		{Status: delivery.Throttled, Detail: "421 busy", After: time.Minute}: {State: alert.Waiting, Detail: "421 busy", After: time.Minute},
	} {
		m := &mailServer{answer: answer}
		s := AlertSender{noGroups{t}, m}
		for range 2 {
			if got := s.Send(t.Context(), d, "E-mail is failing.\nhttps://shop.example/channels"); got != want {
				t.Errorf("%+v became %+v, not %+v", answer, got, want)
			}
		}
		first, again := m.got[0], m.got[1]
		if first.To.Email != "ops@example.com" || first.Content.Title != "Dropbell: E-mail is failing." || first.Content.Text != "E-mail is failing.\nhttps://shop.example/channels\n" {
			t.Errorf("sent %q, %q to %q", first.Content.Title, first.Content.Text, first.To.Email)
		}
		if first.IdempotencyKey() != again.IdempotencyKey() {
			t.Error("a repeated mail looks like another one")
		}
	}
	if got := (AlertSender{noGroups{t}, nil}).Send(t.Context(), d, "x"); got.State != alert.Failed || got.Detail == "" {
		t.Errorf("without a mail server: %+v", got)
	}
	for _, m := range []*mailServer{nil, {answer: delivery.Result{Status: delivery.Delivered}}} {
		var environment delivery.Sender
		want := alert.Outcome{State: alert.Failed, Detail: "no mail server is configured"}
		if m != nil {
			environment, want = m, alert.Outcome{State: alert.Sent}
		}
		router := provider.NewRouter(delivery.Email, environment, nil, nil, time.Now)
		if got := (AlertSender{noGroups{t}, router}).Send(t.Context(), d, "x"); got != want {
			t.Errorf("with a router, and %v in the environment: %+v", m != nil, got)
		}
	}
}
