package coupons

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/redeemcode"
	"dropbell/web/api/pipeline"
)

// AccessWish is the access code that a user typed.
type AccessWish struct {
	TemplateID string `json:"template_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The drop." example:"1"`
	Code       string `json:"code" minLength:"1" maxLength:"200" doc:"As it was typed: case, dashes and spaces do not matter." example:"1XBE-VF78-VYKW-JAGH"`
}

func (h *handlers) accessRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Guard: h.guardCodes}, Method: http.MethodPost, Path: "/access-codes", ID: "enter-access-code",
		Summary: "Enter the access code of a drop", Status: http.StatusNoContent,
		Description: "The code belongs to the first user who enters it, and opens the drop's door for access codes to that user. It can be entered before the drop opens, and again: a repetition changes " +
			"nothing. GET /templates/{id} then names the user's door. After ten codes in a minute that are not valid, the user is answered rate_limited for a while.",
		Codes:   []string{"user_erased", "code_invalid", "code_used", "not_by_code", "template_not_found", "template_not_open"},
		Example: `{"template_id":"1","code":"1XBE-VF78-VYKW-JAGH"}`}, h.enterAccessCode)
}

type accessRequest struct {
	Body    AccessWish
	request *http.Request
}

// Resolve is part of [huma.Resolver].
func (in *accessRequest) Resolve(ctx huma.Context) []error {
	in.request, _ = humachi.Unwrap(ctx)
	return nil
}

func (h *handlers) enterAccessCode(ctx context.Context, in *accessRequest) (*struct{}, error) {
	id, err := pipeline.ParseID("body.template_id", in.Body.TemplateID)
	if err != nil {
		return nil, err
	}
	return nil, h.openDoor(ctx, in.request, id, in.Body.Code)
}

// openDoor binds the code to the caller and counts codes that are not valid.
func (h *handlers) openDoor(ctx context.Context, r *http.Request, templateID int64, code string) error {
	err := h.Access.Open(ctx, pipeline.UserOf(ctx), templateID, code)
	if errors.Is(err, redeemcode.ErrInvalid) {
		h.countGuess(r)
	}
	return err
}
