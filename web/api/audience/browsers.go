package audience

import (
	"context"
	"net/http"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// Browser is a browser in which the user gets push messages.
type Browser struct {
	ID string `json:"id" doc:"Names the browser when it is removed: the first 32 hexadecimal digits of the SHA-256 hash of the endpoint, which is never shown." example:"9f86d081884c7d659a2feaa0c55ad015"`
}

type browserAnswer struct{ Body Browser }

type browsersAnswer struct {
	Body struct {
		PublicKey string    `json:"public_key" doc:"The applicationServerKey for PushManager.subscribe, in base64url. Subscriptions that were made with another key get nothing." example:"BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"`
		Browsers  []Browser `json:"browsers" nullable:"false"`
	}
}

func (h *handlers) browserRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPut, Path: "/browsers", ID: "put-browser",
		Summary: "Register the browser for push messages",
		Description: "With the subscription that the browser's PushManager returned; <dropbell-push> does it. May be repeated. The channel webpush then reaches this browser " +
			"as well as the user's phones. A browser has one user: registering it takes it from the user who had it before. A user has at most 20; the ones that registered first go. " +
			"Browsers whose subscription has ended are forgotten as soon as their push service says so.",
		Codes:   []string{"channel_unavailable", "user_erased"},
		Example: `{"endpoint":"https://push.example.com/send/abc","p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}`},
		func(ctx context.Context, in *struct{ Body PushSubscription }) (*browserAnswer, error) {
			if h.PushKey == "" {
				return nil, delivery.ErrChannelUnavailable
			}
			p := user.PushSubscription(in.Body)
			return &browserAnswer{Browser{p.BrowserID()}}, h.Users.PutBrowser(ctx, pipeline.UserOf(ctx), p)
		})
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/browsers", ID: "list-browsers",
		Summary: "List the user's browsers that get push messages", Description: "The one that registered first comes first. With the key for subscribing.",
		Codes: []string{"channel_unavailable"}},
		func(ctx context.Context, _ *struct{}) (*browsersAnswer, error) {
			if h.PushKey == "" {
				return nil, delivery.ErrChannelUnavailable
			}
			u, err := h.Users.Preferences(ctx, pipeline.UserOf(ctx))
			answer := &browsersAnswer{}
			answer.Body.PublicKey = h.PushKey
			answer.Body.Browsers = pipeline.Each(u.Push, func(p user.PushSubscription) Browser { return Browser{p.BrowserID()} })
			return answer, err
		})
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodDelete, Path: "/browsers/{id}", ID: "remove-browser",
		Summary: "Remove one of the user's browsers", Description: "As when the user turns notifications off. 204 also if there is no such browser.",
		Status: http.StatusNoContent},
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"32" doc:"The id of the browser." example:"9f86d081884c7d659a2feaa0c55ad015"`
		}) (*struct{}, error) {
			return nil, h.Users.RemoveBrowser(ctx, pipeline.UserOf(ctx), in.ID)
		})
}
