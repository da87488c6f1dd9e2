package shop

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	dropbell "dropbell/sdk/go"
	"dropbell/sdk/go/api"
)

// kept is how many events the page of events shows.
const kept = 50

// seen is an event as the page shows it.
type seen struct {
	dropbell.Event
	At time.Time
}

// Text is the data of the event, as it was received.
func (e seen) Text() string { return string(e.Data) }

// hooks receives webhooks, whose signatures it verifies, and keeps the newest.
type hooks struct {
	mu       sync.Mutex
	verifier *dropbell.Webhooks // nil before the address is registered
	events   []seen             // the newest first
}

// ServeHTTP takes a webhook.
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	verifier := h.verifier
	h.mu.Unlock()
	if verifier == nil {
		http.Error(w, "the secret is not known yet", http.StatusServiceUnavailable)
		return
	}
	verifier.Handler(h.add).ServeHTTP(w, r)
}

// add keeps an event, unless it came before.
func (h *hooks) add(_ context.Context, e dropbell.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.ContainsFunc(h.events, func(known seen) bool { return known.ID == e.ID }) {
		return nil
	}
	h.events = append([]seen{{e, time.Now()}}, h.events...)
	h.events = h.events[:min(len(h.events), kept)]
	return nil
}

func (h *hooks) list() []seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// registerHooks replaces the endpoint of an earlier start of this shop.
func (s *Shop) registerHooks(ctx context.Context) error {
	shop, address := Number, s.address+"/hooks"
	known, err := s.client.ListWebhooksWithResponse(ctx, &api.ListWebhooksParams{Shop: &shop})
	if err != nil {
		return err
	}
	for _, e := range known.JSON200.Webhooks {
		if e.Description == hooksName {
			if _, err := s.client.DeleteWebhookWithResponse(ctx, e.Id); err != nil && dropbell.Code(err) != "webhook_not_found" {
				return err
			}
		}
	}
	name := hooksName
	created, err := s.client.CreateWebhookWithResponse(ctx, nil, api.WebhookWish{ShopNumber: Number, Url: address, Description: &name})
	if err != nil {
		return err
	}
	verifier, err := dropbell.NewWebhooks(*created.JSON201.Secret)
	if err != nil {
		return err
	}
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	s.hooks.verifier = verifier
	return nil
}

const hooksName = "demo shop"
