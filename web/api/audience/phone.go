package audience

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/user/verification"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// codesPerAddress is how many codes a minute may be requested from one address, which an
// office may share; each costs a text message.
const codesPerAddress = 10

// PhoneWish asks for a code.
type PhoneWish struct {
	Phone  string `json:"phone,omitempty" maxLength:"20" doc:"E.164; absent or empty = the stored number." example:"+8613800138000"`
	Locale string `json:"locale,omitempty" maxLength:"35" doc:"BCP 47, the language of the message; absent = the user's." example:"zh-CN"`
}

// PhoneCode is a code that was requested.
type PhoneCode struct {
	Phone     string `json:"phone" doc:"Where the code is sent to." example:"+8613800138000"`
	ExpiresAt string `json:"expires_at" format:"date-time" doc:"Until when the code can be entered, if it is sent at once."`
	AgainAt   string `json:"again_at" format:"date-time" doc:"When another code can be requested."`
}

// PhoneProof is a code that the user entered.
type PhoneProof struct {
	Code string `json:"code" minLength:"1" maxLength:"40" doc:"As it was typed: spaces and dashes do not matter." example:"042917"`
}

// PhoneVerified is a number that was verified.
type PhoneVerified struct {
	Phone string `json:"phone" example:"+8613800138000"`
}

type phoneRequest struct {
	Body    PhoneWish
	request *http.Request
}

// Resolve is part of [huma.Resolver].
func (in *phoneRequest) Resolve(ctx huma.Context) []error {
	in.request, _ = humachi.Unwrap(ctx)
	return nil
}

func (h *handlers) phoneRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPost, Path: "/phone/verification", ID: "request-phone-code",
		Summary: "Send a code that verifies the user's phone number", Status: http.StatusAccepted,
		Description: "A text message with six digits goes to the stored number or the given one. A code is valid for ten minutes and five attempts; a new one replaces it. " +
			"A user may request one every 30 seconds, five an hour and ten a day. The answer is the same whether another user has the number or not.",
		Codes:   []string{"channel_unavailable", "phone_missing", "sms_opted_out", "too_many_codes", "user_erased"},
		Example: `{"phone":"+8613800138000"}`}, h.requestPhoneCode)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPost, Path: "/phone/verification/confirm", ID: "confirm-phone-code",
		Summary: "Verify the phone number by the code", Description: "The number that the last code was sent to becomes the user's number and is verified.",
		Codes: []string{"phone_code_wrong", "phone_code_expired", "user_erased"}, Example: `{"code":"042917"}`},
		func(ctx context.Context, in *struct{ Body PhoneProof }) (*struct{ Body PhoneVerified }, error) {
			phone, err := h.Phones.Confirm(ctx, pipeline.UserOf(ctx), in.Body.Code)
			return &struct{ Body PhoneVerified }{PhoneVerified{phone}}, err
		})
}

func (h *handlers) requestPhoneCode(ctx context.Context, in *phoneRequest) (*struct{ Body PhoneCode }, error) {
	// The address of a service says nothing about the users it acts for.
	if q := middleware.From(ctx); pipeline.CallerOf(ctx).Key == nil && q != nil {
		if ip := q.ClientIP(in.request); ip != (netip.Addr{}) {
			if d := h.codesFrom.Allow(middleware.AddressKey('v', ip), h.Now()); !d.Allowed {
				return nil, pipeline.RetryLater(pipeline.ErrRateLimited.Because("too many codes were requested from this address"), d.RetryAfter)
			}
		}
	}
	code, err := h.Phones.Request(ctx, pipeline.UserOf(ctx), verification.Wish{Phone: in.Body.Phone, Locale: in.Body.Locale})
	if err != nil {
		return nil, err
	}
	return &struct{ Body PhoneCode }{PhoneCode{Phone: code.Phone, ExpiresAt: code.ExpiresAt.UTC().Format(time.RFC3339), AgainAt: code.AgainAt.UTC().Format(time.RFC3339)}}, nil
}
