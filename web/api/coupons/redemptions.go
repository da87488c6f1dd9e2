package coupons

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/claim"
	"dropbell/domain/redeemcode"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// Limits of invented or mistyped codes, per minute and process. A user mistypes a code two or three
// times; an office may share one address.
const (
	guessesPerUser    = 10
	guessesPerAddress = 60
)

// maxTyped is how long a code can be as it was typed, as [Redemption] says.
const maxTyped = 200

// Redemption is a code that a user typed.
type Redemption struct {
	Code string `json:"code" minLength:"1" maxLength:"200" doc:"As it was typed: case, dashes and spaces do not matter." example:"1XBE-VF78-VYKW-JAGH"`
}

func (h *handlers) redemptionRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Guard: h.guardCodes}, Method: http.MethodPost, Path: "/redemptions", ID: "redeem",
		Summary: "Redeem a code for a coupon", Status: http.StatusCreated,
		Description: "A code works once, for the first user who redeems it. Any refusal but code_used leaves the code unused. " +
			"After ten codes in a minute that are not valid, the user is answered rate_limited for a while.",
		Also: map[int]string{http.StatusAccepted: "Accepted; the coupon is being written. Read the claim by its id."},
		Codes: []string{"user_erased", "code_invalid", "code_used", "template_not_found", "template_not_open", "not_started", "ended", "sold_out",
			"limit_reached", "household_limit"},
		Example: `{"code":"1XBE-VF78-VYKW-JAGH"}`}, h.redeem)
}

type redemptionRequest struct {
	Body    Redemption
	request *http.Request
}

// Resolve is part of [huma.Resolver].
func (in *redemptionRequest) Resolve(ctx huma.Context) []error {
	in.request, _ = humachi.Unwrap(ctx)
	return nil
}

func (h *handlers) redeem(ctx context.Context, in *redemptionRequest) (*claimAnswer, error) {
	c, err := h.Redeemer.Redeem(ctx, pipeline.UserOf(ctx), in.Body.Code, pipeline.Recovering(ctx))
	if errors.Is(err, redeemcode.ErrInvalid) {
		h.countGuess(in.request)
	}
	if err != nil {
		return nil, err
	}
	answer := &claimAnswer{Status: http.StatusCreated, Body: claimJSON(c)}
	if c.State != claim.Issued {
		answer.Status = http.StatusAccepted
	}
	return answer, nil
}

// guardCodes refuses invented and mistyped codes, and clients that have sent too many of them. It
// runs before any step that costs more than arithmetic. It reports whether it has answered; other
// errors in the body are left to the decoder.
func (h *handlers) guardCodes(w http.ResponseWriter, r *http.Request, body []byte) bool {
	var wish Redemption
	if json.Unmarshal(body, &wish) != nil || wish.Code == "" || utf8.RuneCountInString(wish.Code) > maxTyped {
		return false
	}
	err := h.mayGuess(r)
	if err == nil {
		if err = h.Redeemer.Genuine(wish.Code); err == nil {
			return false
		}
		h.countGuess(r)
	}
	h.Problem(r.Context(), err).Write(w)
	return true
}

// mayGuess returns the refusal of clients that have sent too many codes that are not valid.
func (h *handlers) mayGuess(r *http.Request) error {
	for _, g := range h.guessKeys(r) {
		if d := g.limiter.Look(g.key, h.Now()); !d.Allowed {
			return pipeline.RetryLater(pipeline.ErrRateLimited.Because("too many codes that are not valid"), d.RetryAfter)
		}
	}
	return nil
}

type guessKey struct {
	limiter *middleware.Limiter
	key     middleware.LimitKey
}

// guessKeys returns the keys under which a guess is counted. The address of a service is not
// counted: it belongs to none of the users that the service acts for.
func (h *handlers) guessKeys(r *http.Request) []guessKey {
	c := pipeline.CallerOf(r.Context())
	keys := []guessKey{{h.guesses, middleware.LimitKey{Kind: 'g', Low: uint64(c.User)}}}
	if q := middleware.From(r.Context()); c.Key == nil && q != nil {
		if ip := q.ClientIP(r); ip != (netip.Addr{}) {
			keys = append(keys, guessKey{h.guessesFrom, middleware.AddressKey('g', ip)})
		}
	}
	return keys
}

func (h *handlers) countGuess(r *http.Request) {
	for _, g := range h.guessKeys(r) {
		g.limiter.Allow(g.key, h.Now())
	}
}
