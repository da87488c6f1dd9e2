package fcm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// An answer is the body of a refusal (google.rpc.Status with FcmError among its
// details).
type answer struct {
	Error struct {
		Status  string   `json:"status"`
		Message string   `json:"message"`
		Details []detail `json:"details"`
	} `json:"error"`
}

type detail struct {
	Type            string `json:"@type"`
	ErrorCode       string `json:"errorCode"`
	FieldViolations []struct {
		Field string `json:"field"`
	} `json:"fieldViolations"`
}

func parseAnswer(raw []byte) (a answer) {
	_ = json.Unmarshal(raw, &a) // an unreadable body is an unknown reason
	return a
}

// code is FCM's error code; the general status where there is none.
func (a answer) code() string {
	for _, d := range a.Error.Details {
		if d.ErrorCode != "" {
			return d.ErrorCode
		}
	}
	return a.Error.Status
}

// aboutToken reports whether the phone's token alone was found wrong.
func (a answer) aboutToken() bool {
	for _, d := range a.Error.Details {
		for _, v := range d.FieldViolations {
			if v.Field == "message.token" {
				return true
			}
		}
	}
	return strings.Contains(a.Error.Message, "registration token")
}

// refusal sorts Google's codes into four groups: the phone, the message, our configuration, and
// Google itself. Codes about the configuration end no delivery.
func (s *Service) refusal(d user.Device, status int, a answer, retryAfter string, now time.Time) delivery.Result {
	detail := "FCM answered " + strconv.Itoa(status)
	code := a.code()
	if code != "" {
		detail = delivery.DetailOf(detail + " " + code)
	}
	switch code {
	case "SENDER_ID_MISMATCH": // the app was built for another project
		if s.Configured && d.App == "" {
			detail += ": the phone has registered without naming its app"
		}
		return delivery.Result{Status: delivery.Permanent, Detail: detail}
	case "INVALID_ARGUMENT":
		if a.aboutToken() {
			detail += ": the phone's token is not usable"
		}
		return delivery.Result{Status: delivery.Permanent, Detail: detail}
	case "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED":
		after := delivery.RetryAfter(retryAfter, now)
		if after == 0 {
			after = quotaPause
		}
		return delivery.Result{Status: delivery.Throttled, After: after, Detail: detail}
	case "UNAUTHENTICATED", "PERMISSION_DENIED", "THIRD_PARTY_AUTH_ERROR":
		return delivery.Result{Unsent: s.Configured, Detail: detail + s.Check(": check FCM_SERVICE_ACCOUNT", ": check the provider's settings")}
	}
	result := delivery.HTTPResult(status, retryAfter, now)
	if status == http.StatusNotFound {
		detail += s.Check(": check the project of FCM_SERVICE_ACCOUNT", ": check the provider's settings")
	}
	if status == http.StatusGone {
		result = delivery.Result{} // no code of this API
	}
	result.Whole, result.Detail = false, detail
	return result
}
