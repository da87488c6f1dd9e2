package audience

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// Device is a phone on which the user has a shop's app, or an account in WeChat.
type Device struct {
	ID         string `json:"id" doc:"Names the phone when it is removed; made from the token, which is never shown." example:"9f86d081884c7d659a2feaa0c55ad015"`
	Platform   string `json:"platform" enum:"ios,android,wechat" example:"ios"`
	App        string `json:"app,omitempty" doc:"The app that the token belongs to, as the device has named it: the bundle id, the id of the Firebase project, or the AppID of the mini program." example:"com.example.shop"`
	AppVersion string `json:"app_version" doc:"Empty = unknown." example:"5.2.1"`
	Locale     string `json:"locale" doc:"BCP 47; empty = unknown." example:"zh-CN"`
	SeenAt     string `json:"seen_at" format:"date-time" doc:"When it last registered; registering again within a day with the same values is not noted."`
}

// DeviceChange registers the phone from which the request comes.
type DeviceChange struct {
	Platform   string `json:"platform" enum:"ios,android,wechat" doc:"ios = Apple Push Notification service, android = Firebase Cloud Messaging, wechat = one-time subscription messages of a mini program." example:"ios"`
	App        string `json:"app,omitempty" maxLength:"155" doc:"The app that the token belongs to. With ios: its bundle id; with android: the id of its Firebase project; both may be absent, as long as the shop has one app on the platform. With wechat: the AppID of the mini program, required." example:"com.example.shop"`
	Token      string `json:"token" maxLength:"4096" doc:"The app's token from the platform: the device token in hexadecimal digits, the FCM registration token, or the user's openid in the mini program." example:"00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"`
	Replaces   string `json:"replaces,omitempty" maxLength:"4096" doc:"The token that the app had before, when the platform has renewed it."`
	AppVersion string `json:"app_version,omitempty" maxLength:"40" example:"5.2.1"`
	Locale     string `json:"locale,omitempty" maxLength:"35" doc:"BCP 47; a user without a language gets it." example:"zh-CN"`
}

type deviceAnswer struct{ Body Device }

type devicesAnswer struct {
	Body struct {
		Devices []Device `json:"devices" nullable:"false"`
	}
}

func (h *handlers) deviceRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPut, Path: "/devices", ID: "put-device",
		Summary: "Register the phone for push messages",
		Description: "For apps, at each start and whenever the platform renews the token; may be repeated. The channel webpush then reaches the phone as well " +
			"as the user's browsers. A phone has one user: registering it takes it from the user who had it before. A user has at most 20; the ones seen longest ago go. " +
			"Phones whose app is removed are forgotten as soon as Apple or Google says so. WeChat delivers only reminders with a consent of their own: see PUT /reservations/{template_id}/consents/{minutes}.",
		Codes:   []string{"user_erased"},
		Example: `{"platform":"ios","token":"00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f01","app_version":"5.2.1","locale":"zh-CN"}`},
		func(ctx context.Context, in *struct{ Body DeviceChange }) (*deviceAnswer, error) {
			b := in.Body
			d, err := h.Users.PutDevice(ctx, pipeline.UserOf(ctx), user.Device{Platform: user.Platform(b.Platform), Token: b.Token, App: b.App,
				AppVersion: b.AppVersion, Locale: b.Locale}, b.Replaces)
			return &deviceAnswer{deviceJSON(d)}, err
		})
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/devices", ID: "list-devices",
		Summary: "List the user's phones", Description: "The one seen longest ago first."},
		func(ctx context.Context, _ *struct{}) (*devicesAnswer, error) {
			u, err := h.Users.Preferences(ctx, pipeline.UserOf(ctx))
			answer := &devicesAnswer{}
			answer.Body.Devices = pipeline.Each(u.Devices, deviceJSON)
			return answer, err
		})
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodDelete, Path: "/devices/{id}", ID: "remove-device",
		Summary: "Remove one of the user's phones", Description: "As when the user signs out of the app. 204 also if there is no such phone.",
		Status: http.StatusNoContent},
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"32" doc:"The id of the phone." example:"9f86d081884c7d659a2feaa0c55ad015"`
		}) (*struct{}, error) {
			return nil, h.Users.RemoveDevice(ctx, pipeline.UserOf(ctx), in.ID)
		})
}

func deviceJSON(d user.Device) Device {
	return Device{ID: d.DeviceID(), Platform: string(d.Platform), App: d.App, AppVersion: d.AppVersion, Locale: d.Locale, SeenAt: d.SeenAt.UTC().Format(time.RFC3339)}
}
