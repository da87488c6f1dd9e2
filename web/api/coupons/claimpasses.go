package coupons

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/pass"
	"dropbell/domain/review"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// ClaimEvidence is what a user sends to earn a pass. All fields are optional.
type ClaimEvidence struct {
	Puzzle    string `json:"puzzle,omitempty" maxLength:"2000" doc:"The solution of the puzzle, as ALTCHA sends it: JSON in base64." example:"eyJjaGFsbGVuZ2UiOnt9fQ=="`
	Token     string `json:"token,omitempty" maxLength:"4096" doc:"The token of the widget of Turnstile, hCaptcha or another service with the same call."`
	PhoneCode string `json:"phone_code,omitempty" maxLength:"40" doc:"The code that POST /phone/verification has sent to the user's phone. It verifies the phone as well."`
}

// ClaimPass is a pass for a protected drop, or what earns one.
type ClaimPass struct {
	Pass      string          `json:"pass,omitempty" doc:"To be sent as pass with POST /claims. Absent while the evidence is missing, and for a drop that needs no pass."`
	ExpiresAt *time.Time      `json:"expires_at,omitempty" doc:"When the pass ends: 30 minutes after it was earned, or after the opening if that is later." example:"2027-01-01T12:30:00Z"`
	Ways      []string        `json:"ways,omitempty" nullable:"false" enum:"puzzle,token,attested,phone_code" doc:"Without a pass: what earns one."`
	Puzzle    *pass.Challenge `json:"puzzle,omitempty" doc:"A challenge in the form of ALTCHA, version 2 of its protocol, for this user and drop. It can be solved for two hours."`
}

// ClaimSigns notes the signs of claims of protected drops. Its methods return at once.
type ClaimSigns interface {
	Note(t review.Tap)
	Refused(templateID int64, code string)
}

// sign notes the signs of a claim that was accepted at the instant, or counts its refusal. A claim
// without a pass in a drop without protection leaves no sign.
func (h *handlers) sign(ctx context.Context, in *claimRequest, at time.Time, c claim.Claim, templateID int64, err error) {
	code := fault.CodeOf(err)
	if h.Signs == nil || in.Body.Pass == "" && code != pass.ErrRequired.Code {
		return
	}
	by := pipeline.UserOf(ctx)
	switch {
	case err == nil:
		t := review.Tap{TemplateID: templateID, UserID: by, ClaimID: int64(c.ID), At: at, Pass: in.Body.Pass}
		// The address and the agent of a service say nothing about the users it acts for.
		if q := middleware.From(ctx); pipeline.CallerOf(ctx).Key == nil && q != nil {
			t.Address, t.Agent = q.ClientIP(in.request), in.request.UserAgent()
		}
		h.Signs.Note(t)
	case code == pass.ErrRequired.Code:
		h.Signs.Refused(templateID, code)
	case code == claim.ErrSoldOut.Code || code == claim.ErrLimit.Code:
		if _, err := h.ClaimPasses.Keys.Check(in.Body.Pass, by, templateID, at); err == nil { // the drop is protected
			h.Signs.Refused(templateID, code)
		}
	}
}

func (h *handlers) claimPassRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPost, Path: "/passes/{id}", ID: "get-claim-pass",
		Summary: "Earn a pass for a protected drop",
		Description: "A claim in a drop whose protection is not off needs a pass. Without evidence the answer is a puzzle and the other ways to earn a pass; with evidence it is the pass. " +
			"Earn it while the countdown runs: the claim then checks a signature and nothing more. A user's token with the claim dropbell_attested (a text that names the service by which the shop has checked the device) earns the pass at once. " +
			"A drop that is strict accepts no puzzle.",
		Codes:   []string{"template_not_found", "template_not_open", "passes_not_configured", "pass_refused", "phone_code_wrong", "phone_code_expired", "user_erased"},
		Example: `{}`}, h.claimPass)
}

func (h *handlers) claimPass(ctx context.Context, in *struct {
	pipeline.Ref
	Body ClaimEvidence
}) (*struct{ Body ClaimPass }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	a, err := h.ClaimPasses.Get(ctx, pipeline.UserOf(ctx), id, pass.Evidence{Puzzle: in.Body.Puzzle, Token: in.Body.Token,
		PhoneCode: in.Body.PhoneCode, Attested: pipeline.CallerOf(ctx).Attested})
	if err != nil {
		return nil, err
	}
	answer := ClaimPass{Pass: a.Text, Puzzle: a.Challenge}
	if a.Text != "" {
		answer.ExpiresAt = pipeline.UTC(&a.ExpiresAt)
	}
	for _, w := range a.Ways {
		answer.Ways = append(answer.Ways, w.String())
	}
	return &struct{ Body ClaimPass }{answer}, nil
}
