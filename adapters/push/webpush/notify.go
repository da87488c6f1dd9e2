package webpush

import (
	"context"
	"time"

	pushing "dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// A Notice is a push that is no delivery to a user. A push service and a browser replace a
// notice by a later notice with the same tag.
type Notice struct {
	Title, Text, Tag, URL string
	// WorthlessAfter is until when the push service keeps it.
	WorthlessAfter time.Time
}

// Notify sends the notice to one browser. It reports whether the push service says
// that the subscription no longer exists.
func (s *Sender) Notify(ctx context.Context, to user.PushSubscription, n Notice) (r delivery.Result, gone bool) {
	host, err := s.cfg.checkEndpoint(to.Endpoint)
	if err != nil {
		return delivery.Result{Status: delivery.Permanent, Detail: err.Error()}, false
	}
	if rest := s.hosts.ask(host, s.cfg.Timeout); rest.left > 0 {
		return s.leftAlone(rest), false
	}
	body := pushing.Fit(maxPayload, n.Title, n.Text, func(title, text string) []byte {
		return sender.JSON(note{Title: title, Body: text, Tag: n.Tag, URL: n.URL})
	})
	return s.call(ctx, post{body, topic(n.Tag), int(max(n.WorthlessAfter.Sub(s.cfg.Now()), 0) / time.Second)}, host, to)
}
