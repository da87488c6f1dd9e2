package work

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"dropbell/domain/event/hook"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// Webhook is an endpoint of a shop's server.
type Webhook struct {
	ID             string     `json:"id" example:"1"`
	ShopNumber     string     `json:"shop_number" example:"10"`
	URL            string     `json:"url" example:"https://shop.example.com/hooks"`
	Description    string     `json:"description" example:"Order service"`
	Types          []string   `json:"types" nullable:"false" doc:"The types of events it is sent; none = all." example:"[\"coupon.used\"]"`
	Enabled        bool       `json:"enabled"`
	Rehearsals     bool       `json:"rehearsals" doc:"Whether it is also told of rehearsals of the shop's drops, in marked events."`
	DisabledReason string     `json:"disabled_reason,omitempty" enum:"staff,failing,gone" doc:"failing: no attempt succeeded for five days; gone: it answered 410."`
	State          string     `json:"state" enum:"unused,working,failing,disabled"`
	Failures       int        `json:"failures" doc:"Attempts that failed since the last success." example:"0"`
	FailingSince   *time.Time `json:"failing_since,omitempty"`
	LastError      string     `json:"last_error,omitempty" doc:"Of the last attempt that failed." example:"HTTP 500"`
	OldSecretUntil *time.Time `json:"old_secret_until,omitempty" doc:"Until when requests have a second signature, by the secret before the last rotation."`
	Version        int64      `json:"version" doc:"Grows with every change; send it as If-Match." example:"1"`
	CreatedAt      time.Time  `json:"created_at"`
	Secret         string     `json:"secret,omitempty" doc:"Signs the requests. Only in the answer that made it; it cannot be shown again." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`
}

// WebhookList is all endpoints that the caller may see.
type WebhookList struct {
	Webhooks []Webhook `json:"webhooks" nullable:"false"`
}

// WebhookWish is the request for an endpoint.
type WebhookWish struct {
	ShopNumber  string   `json:"shop_number" pattern:"^[1-9][0-9]{0,18}$" example:"10"`
	URL         string   `json:"url" maxLength:"2000" doc:"https, of a public address." example:"https://shop.example.com/hooks"`
	Description string   `json:"description,omitempty" maxLength:"200"`
	Types       []string `json:"types,omitempty" nullable:"false" maxItems:"50" doc:"The types of events it is sent; none = all, also those of later versions."`
	Enabled     *bool    `json:"enabled,omitempty" doc:"true unless it says false."`
	Rehearsals  bool     `json:"rehearsals,omitempty" doc:"Also tell it of rehearsals, in events with rehearsal: true."`
}

// WebhookPatch changes the fields it has.
type WebhookPatch struct {
	URL         *string   `json:"url,omitempty" maxLength:"2000"`
	Description *string   `json:"description,omitempty" maxLength:"200"`
	Types       *[]string `json:"types,omitempty" maxItems:"50"`
	Rehearsals  *bool     `json:"rehearsals,omitempty"`
	Enabled     *bool     `json:"enabled,omitempty" doc:"true makes an endpoint that was disabled begin anew."`
}

type webhookAnswer = pipeline.Versioned[Webhook]

// TestSent is the delivery of a test event.
type TestSent struct {
	DeliveryID string `json:"delivery_id" example:"1"`
}

func (h *handlers) webhookRoutes() {
	known := []string{"webhook_not_found"}
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/webhooks", "list-webhooks", "List webhook endpoints", pipeline.Route{Cells: &cells.List{}}), h.listWebhooks)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/webhooks", "create-webhook", "Register a webhook endpoint", pipeline.Route{
		Traits: pipeline.Traits{Secret: hook.ErrRepeated}, Status: http.StatusCreated,
		Example: `{"shop_number":"10","url":"https://shop.example.com/hooks","types":["coupon.used"]}`,
		Description: "Events of the shop are posted to it, signed by the Standard Webhooks specification; see docs/webhooks.md. " +
			"The answer has the secret, which is not stored with an Idempotency-Key: a repetition is refused with webhook_repeated.",
		Codes: []string{"too_many_webhooks", "webhook_repeated"}}), h.createWebhook)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/webhooks/{id}", "get-webhook", "Show a webhook endpoint", pipeline.Route{Codes: known}), pipeline.ByID(h.getWebhook))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPatch, "/admin/webhooks/{id}", "change-webhook", "Change a webhook endpoint",
		pipeline.Route{Example: `{"enabled":true}`, Codes: []string{"webhook_not_found", "precondition_required", "stale_version"}}), pipeline.Patching(h.changeWebhook))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodDelete, "/admin/webhooks/{id}", "delete-webhook", "Remove a webhook endpoint with its deliveries",
		pipeline.Route{Status: http.StatusNoContent, Codes: known}), pipeline.ByID(h.deleteWebhook))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/webhooks/{id}/rotate", "rotate-webhook-secret", "Replace the secret of a webhook endpoint", pipeline.Route{
		Traits: pipeline.Traits{Secret: hook.ErrRepeated}, Description: "The old secret signs as well for 24 hours.",
		Codes: []string{"webhook_not_found", "webhook_repeated", "precondition_required", "stale_version"}}), h.rotateWebhook)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/webhooks/{id}/test", "test-webhook", "Send a test event to a webhook endpoint",
		pipeline.Route{Status: http.StatusAccepted, Codes: []string{"webhook_not_found", "webhook_disabled"}}), pipeline.ByID(h.testWebhook))
}

var (
	typeNames = pipeline.Converts(func(types []hook.Type) []string {
		return pipeline.Each(types, func(t hook.Type) string { return string(t) })
	}, hookTypes)
	shownWebhook  = pipeline.Copies[hook.Input, Webhook](hook.Fields, typeNames)
	wishedWebhook = pipeline.Copies[hook.Input, WebhookWish](hook.Fields, typeNames,
		pipeline.Converts(func(on bool) *bool { return &on }, func(on *bool) bool { return on == nil || *on }))
)

func webhookJSON(e hook.Endpoint) Webhook {
	w := Webhook{ID: pipeline.Decimal(e.ID), ShopNumber: pipeline.Decimal(e.Shop), DisabledReason: string(e.Why), State: string(e.State()),
		Failures: e.Failures, FailingSince: pipeline.UTC(e.FailingSince), LastError: e.LastError,
		OldSecretUntil: pipeline.UTC(e.OldUntil), Version: e.Version, CreatedAt: e.CreatedAt.UTC()}
	shownWebhook.To(&w, e.Input)
	return w
}

func webhookAnswered(e hook.Endpoint, secret string) *webhookAnswer {
	body := webhookJSON(e)
	body.Secret = secret
	return pipeline.AtVersion(e.Version, body)
}

func (h *handlers) listWebhooks(ctx context.Context, in *struct {
	Shop string `query:"shop" pattern:"^[1-9][0-9]{0,18}$" doc:"Only this shop."`
}) (*struct{ Body WebhookList }, error) {
	shop, err := pipeline.OptionalID("query.shop", in.Shop)
	if err != nil {
		return nil, err
	}
	endpoints, err := h.Hooks.Endpoints(ctx, pipeline.ActorOf(ctx), shop)
	if err != nil {
		return nil, err
	}
	return &struct{ Body WebhookList }{WebhookList{pipeline.Each(endpoints, webhookJSON)}}, nil
}

func (h *handlers) createWebhook(ctx context.Context, in *struct{ Body WebhookWish }) (*webhookAnswer, error) {
	shop, err := pipeline.ParseID("body.shop_number", in.Body.ShopNumber)
	if err != nil {
		return nil, err
	}
	var input hook.Input
	if err := wishedWebhook.From(&input, in.Body); err != nil {
		return nil, err
	}
	e, secret, err := h.Hooks.Create(ctx, pipeline.ActorOf(ctx), shop, input, pipeline.RequestKey(ctx))
	if err != nil {
		return nil, err
	}
	return webhookAnswered(e, secret), nil
}

func (h *handlers) getWebhook(ctx context.Context, id int64) (*webhookAnswer, error) {
	e, err := h.Hooks.Endpoint(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return webhookAnswered(e, ""), nil
}

func (h *handlers) changeWebhook(ctx context.Context, id, version int64, patch WebhookPatch) (*webhookAnswer, error) {
	old, err := h.Hooks.Endpoint(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	input := old.Input
	pipeline.Overwrite(&input, patch)
	e, err := h.Hooks.Change(ctx, pipeline.ActorOf(ctx), id, version, input)
	if err != nil {
		return nil, err
	}
	return webhookAnswered(e, ""), nil
}

func (h *handlers) deleteWebhook(ctx context.Context, id int64) (*struct{}, error) {
	return &struct{}{}, h.Hooks.Remove(ctx, pipeline.ActorOf(ctx), id)
}

func (h *handlers) rotateWebhook(ctx context.Context, in *struct {
	pipeline.Ref
	IfMatch string `header:"If-Match" doc:"The version whose secret is replaced, so that a repetition does not replace the new one." example:"\"1\""`
}) (*webhookAnswer, error) {
	id, version, err := in.At(in.IfMatch)
	if err != nil {
		return nil, err
	}
	e, secret, err := h.Hooks.Rotate(ctx, pipeline.ActorOf(ctx), id, version)
	if err != nil {
		return nil, err
	}
	return webhookAnswered(e, secret), nil
}

func (h *handlers) testWebhook(ctx context.Context, id int64) (*struct{ Body TestSent }, error) {
	delivery, err := h.Hooks.Test(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &struct{ Body TestSent }{TestSent{pipeline.Decimal(delivery)}}, nil
}

// rawEvent is an event as it is sent.
func rawEvent(payload string) map[string]any {
	event := map[string]any{}
	_ = json.Unmarshal([]byte(payload), &event) // the store made it
	return event
}
