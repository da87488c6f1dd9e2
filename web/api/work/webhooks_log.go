package work

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/event/hook"
	"dropbell/web/api/pipeline"
)

// WebhookDelivery is the delivery of one event to one endpoint.
type WebhookDelivery struct {
	ID        string     `json:"id" example:"1"`
	MessageID string     `json:"message_id" doc:"The header webhook-id, the same whenever the event is sent." example:"msg_1"`
	Type      string     `json:"type" example:"coupon.used"`
	Subject   string     `json:"subject" example:"coupon/1"`
	Sequence  int64      `json:"sequence" example:"1"`
	Items     int        `json:"items" doc:"How many users it is about." example:"1"`
	Cause     string     `json:"cause" enum:"event,replay,test"`
	State     string     `json:"state" enum:"waiting,delivered,failed"`
	Attempts  int        `json:"attempts" example:"1"`
	NextAt    *time.Time `json:"next_at,omitempty" doc:"When the next attempt follows."`
	Status    int        `json:"status,omitempty" doc:"HTTP status of the last answer; absent without an answer." example:"204"`
	Error     string     `json:"error,omitempty" doc:"The error of the last attempt." example:"timed out"`
	CreatedAt time.Time  `json:"created_at"`
	DoneAt    *time.Time `json:"done_at,omitempty"`
}

// WebhookDeliveryList is one page of deliveries.
type WebhookDeliveryList struct {
	Deliveries []WebhookDelivery `json:"deliveries" nullable:"false" doc:"The newest first."`
	Next       string            `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

// WebhookAttempt is one request that carried a delivery.
type WebhookAttempt struct {
	Attempt  int       `json:"attempt" example:"1"`
	At       time.Time `json:"at"`
	TookMS   int64     `json:"took_ms" example:"85"`
	Status   int       `json:"status,omitempty" example:"500"`
	Error    string    `json:"error,omitempty" example:"HTTP 500"`
	Response string    `json:"response,omitempty" doc:"The first 2 KB of the answer's body."`
}

// WebhookDeliveryDetails are a delivery with the event and the answer.
type WebhookDeliveryDetails struct {
	WebhookDelivery
	Event map[string]any   `json:"event" doc:"The event as it is sent."`
	Tries []WebhookAttempt `json:"tries" nullable:"false"`
}

// DeliveryRef names a delivery in the path.
type DeliveryRef struct {
	ID       string `path:"id" pattern:"^[1-9][0-9]{0,18}$"`
	Delivery string `path:"delivery" pattern:"^[1-9][0-9]{0,18}$"`
}

// ReplayStarted says how many events are sent again.
type ReplayStarted struct {
	Deliveries int64 `json:"deliveries" doc:"How many; at most 100,000: repeat with a later instant for more." example:"12"`
}

// ShopEvents are events of a shop in the order in which they were stored.
type ShopEvents struct {
	Events []ShopEvent `json:"events" nullable:"false"`
	Next   string      `json:"next" doc:"Pass as after to continue." example:"1042"`
}

// ShopEvent is one event of a shop.
type ShopEvent struct {
	ID      string `json:"id" doc:"The header webhook-id." example:"msg_1"`
	Type    string `json:"type" example:"coupon.used"`
	Payload string `json:"payload" doc:"The body that endpoints are sent, byte for byte."`
}

func (h *handlers) deliveryRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/webhooks/{id}/deliveries", "list-webhook-deliveries", "List deliveries to a webhook endpoint",
		pipeline.Route{Codes: []string{"webhook_not_found"}}), h.listDeliveries)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/webhooks/{id}/deliveries/{delivery}", "get-webhook-delivery", "Show a delivery with its request and answers",
		pipeline.Route{Codes: []string{"webhook_not_found", "delivery_not_found"}}), h.getDelivery)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/webhooks/{id}/deliveries/{delivery}/replay", "replay-webhook-delivery", "Send the event of a delivery again",
		pipeline.Route{Status: http.StatusNoContent, Codes: []string{"webhook_not_found", "delivery_not_found", "webhook_disabled"}}), h.replayDelivery)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/webhooks/{id}/replay", "replay-webhook", "Send everything since an instant again",
		pipeline.Route{Status: http.StatusAccepted, Example: `{"since":"2026-11-20T11:00:00Z"}`, Codes: []string{"webhook_not_found", "webhook_disabled"},
			Description: "Events that happened since then, are still kept, and are of the endpoint's types, also those of the time while it was disabled by failures. Those that wait already are not doubled."}), h.replayWebhook)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/events", "list-events", "Read a shop's events as they come", pipeline.Route{
		Description: "For development: the events that endpoints of the shop are sent, without an endpoint. Begin without after, which answers the present position, and " +
			"go on with next; dropbell listen does that. With wait the answer comes as soon as there is an event. Events are kept for a reader that asks at least every ten minutes."}), h.listEvents)
}

func deliveryJSON(d hook.Delivery) WebhookDelivery {
	w := WebhookDelivery{ID: pipeline.Decimal(d.ID), MessageID: hook.MessageID(d.EventID), Type: string(d.Type), Subject: d.Subject, Sequence: d.Sequence, Items: d.Items,
		Cause: d.Cause, State: d.State, Attempts: d.Attempts, Status: d.Status, Error: d.Error, CreatedAt: d.CreatedAt.UTC(), DoneAt: pipeline.UTC(d.DoneAt)}
	if d.State == "waiting" {
		w.NextAt = pipeline.UTC(&d.NextAt)
	}
	return w
}

func (h *handlers) listDeliveries(ctx context.Context, in *struct {
	pipeline.Ref
	State  string `query:"state" enum:"waiting,delivered,failed" doc:"Only these."`
	Before string `query:"before" pattern:"^[1-9][0-9]{0,18}$" doc:"The value of next on the previous page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}) (*struct{ Body WebhookDeliveryList }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	q := hook.DeliveryQuery{EndpointID: id, State: in.State, Limit: in.Limit}
	if err == nil {
		q.Before, err = pipeline.OptionalID("query.before", in.Before)
	}
	if err != nil {
		return nil, err
	}
	deliveries, err := h.Hooks.Deliveries(ctx, pipeline.ActorOf(ctx), q)
	if err != nil {
		return nil, err
	}
	next := pipeline.Next(deliveries, in.Limit, func(last hook.Delivery) string { return pipeline.Decimal(last.ID) })
	return &struct{ Body WebhookDeliveryList }{WebhookDeliveryList{pipeline.Each(deliveries, deliveryJSON), next}}, nil
}

func (in DeliveryRef) parse() (endpoint, delivery int64, err error) {
	endpoint, err1 := pipeline.ParseID("path.id", in.ID)
	delivery, err2 := pipeline.ParseID("path.delivery", in.Delivery)
	return endpoint, delivery, pipeline.Merge(err1, err2)
}

func (h *handlers) getDelivery(ctx context.Context, in *DeliveryRef) (*struct{ Body WebhookDeliveryDetails }, error) {
	endpoint, id, err := in.parse()
	if err != nil {
		return nil, err
	}
	d, err := h.Hooks.Delivery(ctx, pipeline.ActorOf(ctx), endpoint, id)
	if err != nil {
		return nil, err
	}
	body := WebhookDeliveryDetails{WebhookDelivery: deliveryJSON(d.Delivery), Event: rawEvent(d.Payload), Tries: make([]WebhookAttempt, len(d.Tries))}
	for i, t := range d.Tries {
		body.Tries[i] = WebhookAttempt{t.Attempt, t.At.UTC(), t.Took.Milliseconds(), t.Status, t.Error, t.Response}
	}
	return &struct{ Body WebhookDeliveryDetails }{body}, nil
}

func (h *handlers) replayDelivery(ctx context.Context, in *DeliveryRef) (*struct{}, error) {
	endpoint, id, err := in.parse()
	if err != nil {
		return nil, err
	}
	return &struct{}{}, h.Hooks.Replay(ctx, pipeline.ActorOf(ctx), endpoint, id)
}

func (h *handlers) replayWebhook(ctx context.Context, in *struct {
	pipeline.Ref
	Body struct {
		Since time.Time `json:"since" doc:"From this instant on."`
	} `nameHint:"ReplayWish"`
}) (*struct{ Body ReplayStarted }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	n, err := h.Hooks.ReplaySince(ctx, pipeline.ActorOf(ctx), id, in.Body.Since)
	if err != nil {
		return nil, err
	}
	return &struct{ Body ReplayStarted }{ReplayStarted{n}}, nil
}

// eventsPause is how often a reader that waits is looked for events.
const eventsPause = time.Second

func (h *handlers) listEvents(ctx context.Context, in *struct {
	Shop  string   `query:"shop" required:"true" pattern:"^[1-9][0-9]{0,18}$" doc:"Of this shop."`
	After string   `query:"after" pattern:"^(0|[1-9][0-9]{0,18})$" doc:"The value of next in the previous answer; absent = the present position, without events."`
	Types []string `query:"types" nullable:"false" doc:"Only these types, separated by commas."`
	Limit int      `query:"limit" minimum:"1" maximum:"100" default:"100"`
	Wait  int      `query:"wait" minimum:"0" maximum:"10" doc:"With after: for how many seconds to wait for an event if there is none."`
}) (*struct{ Body ShopEvents }, error) {
	shop, err := pipeline.ParseID("query.shop", in.Shop)
	if err != nil {
		return nil, err
	}
	after := int64(-1)
	if in.After == "0" {
		after = 0
	} else if in.After != "" {
		if after, err = pipeline.ParseID("query.after", in.After); err != nil {
			return nil, err
		}
	}
	for _, t := range in.Types {
		if !hook.Type(t).Valid() {
			return nil, pipeline.Refused("query.types", "must be among the event types of the catalogue")
		}
	}
	stored, next, err := h.Hooks.Listen(ctx, pipeline.ActorOf(ctx), shop, hookTypes(in.Types), after, in.Limit)
	for left := time.Duration(in.Wait) * time.Second; err == nil && len(stored) == 0 && after >= 0 && left > 0 && !h.Closing(); left -= eventsPause {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(eventsPause):
		}
		stored, next, err = h.Hooks.Listen(ctx, pipeline.ActorOf(ctx), shop, hookTypes(in.Types), after, in.Limit)
	}
	if err != nil {
		return nil, err
	}
	body := ShopEvents{Events: make([]ShopEvent, len(stored)), Next: pipeline.Decimal(next)}
	for i, e := range stored {
		body.Events[i] = ShopEvent{hook.MessageID(e.ID), string(e.Type), e.Payload}
	}
	return &struct{ Body ShopEvents }{body}, nil
}

func hookTypes(names []string) []hook.Type {
	return pipeline.Each(names, func(name string) hook.Type { return hook.Type(name) })
}
