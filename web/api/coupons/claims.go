package coupons

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/pass"
	"dropbell/domain/user"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// ClaimWish is the request for one coupon.
type ClaimWish struct {
	TemplateID string `json:"template_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The drop." example:"1"`
	Pass       string `json:"pass,omitempty" maxLength:"64" doc:"For a protected drop: the pass from POST /passes/{template_id}."`
	AccessCode string `json:"access_code,omitempty" minLength:"1" maxLength:"200" doc:"For a drop that answers code_needed: the user's access code, which is entered before the claim is decided. Apps enter it with POST /access-codes before the opening." example:"1XBE-VF78-VYKW-JAGH"`
}

// Claim is the outcome of a claim.
type Claim struct {
	ID         string    `json:"claim_id" example:"4611686018427387904"`
	TemplateID string    `json:"template_id" example:"1"`
	State      string    `json:"state" enum:"accepted,issued,failed" doc:"issued: the coupon is the user's. accepted: decided and being written; repeat the request. failed: accepted and refused after all." example:"issued"`
	CouponID   string    `json:"coupon_id,omitempty" doc:"Once issued." example:"17"`
	Reason     string    `json:"reason,omitempty" doc:"The code of the refusal, if failed." example:"sold_out"`
	At         time.Time `json:"at" doc:"When it was decided." example:"2027-01-01T12:00:00.01Z"`
}

// OwnedCoupon is a coupon together with its drop.
type OwnedCoupon struct {
	Coupon
	ClaimID      string `json:"claim_id" example:"4611686018427387904"`
	TemplateName string `json:"template_name" example:"20 off"`
	ShopNumber   string `json:"shop_number" example:"10"`
	ShopName     string `json:"shop_name" example:"Tea House"`
}

// CouponList is one page of coupons.
type CouponList struct {
	Coupons []OwnedCoupon `json:"coupons" nullable:"false"`
	Next    string        `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

type claimAnswer struct {
	Status   int
	Replayed string `header:"Idempotency-Replayed"`
	Body     Claim
}

func (h *handlers) claimRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Hot: true, Detached: true, Quick: h.claimQuickly, OwnKeys: true}, Method: http.MethodPost, Path: "/claims",
		ID: "claim", Summary: "Claim a coupon", Status: http.StatusCreated,
		Description: "First come, first served while the drop is open. The answer comes after the coupon is stored durably. Send an " +
			"Idempotency-Key: if no answer arrives, the same request with the same key gets the coupon that was issued, at any later time. A " +
			"refusal is not stored: the same request is decided anew.",
		Also: map[int]string{http.StatusAccepted: "Accepted; the coupon is being written. Read the claim by its id."},
		Codes: []string{"user_erased", "template_not_found", "template_not_open", "not_started", "not_eligible", "code_needed", "code_invalid", "code_used", "not_by_code", "door_not_open", "ended", "sold_out", "limit_reached", "household_limit", "pass_required", "passes_not_configured",
			"idempotency_conflict"},
		Example: `{"template_id":"1"}`}, h.claim)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/claims/{id}", ID: "get-claim",
		Summary: "Show a claim", Codes: []string{"claim_not_found"}}, h.claimByID)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/coupons", ID: "list-coupons",
		Summary: "List the user's coupons", Description: "The newest first.", Cells: &cells.List{At: "issued_at", ID: "coupon_id"}}, h.coupons)
}

type claimRequest struct {
	// Key is declared with the operation, as for every POST.
	Key     string `header:"Idempotency-Key" hidden:"true"`
	Body    ClaimWish
	request *http.Request
}

// Resolve is part of [huma.Resolver]: an empty key is a mistake, not no key.
func (in *claimRequest) Resolve(ctx huma.Context) (errs []error) {
	in.request, _ = humachi.Unwrap(ctx)
	ctx.EachHeader(func(name, value string) {
		if name == pipeline.IdempotencyHeader && !pipeline.Printable(value) {
			errs = append(errs, &huma.ErrorDetail{Location: "header." + pipeline.IdempotencyHeader, Message: pipeline.BadKey})
		}
	})
	return errs
}

// claim leaves idempotency to the gate, which stores the key with the coupon:
// one transaction per group instead of two statements per request.
func (h *handlers) claim(ctx context.Context, in *claimRequest) (*claimAnswer, error) {
	id, err := pipeline.ParseID("body.template_id", in.Body.TemplateID)
	if err != nil {
		return nil, err
	}
	if in.Key != "" && !pipeline.Printable(in.Key) {
		return nil, pipeline.Refused("header."+pipeline.IdempotencyHeader, pipeline.BadKey)
	}
	if in.Body.AccessCode != "" {
		if err := h.mayGuess(in.request); err != nil {
			return nil, err
		}
		if err := h.openDoor(ctx, in.request, id, in.Body.AccessCode); err != nil {
			return nil, err
		}
	}
	var at time.Time
	if in.Body.Pass != "" {
		at = h.Now() // before the gate, which answers a whole group at one time
	}
	c, repeated, err := h.Claims.Tap(ctx, pipeline.UserOf(ctx), id, in.Key, in.Body.Pass)
	if !repeated {
		h.sign(ctx, in, at, c, id, err)
	}
	if err != nil {
		return nil, err
	}
	return answerOf(&c, repeated), nil
}

func answerOf(c *claim.Claim, repeated bool) *claimAnswer {
	answer := &claimAnswer{Status: http.StatusCreated, Body: claimJSON(*c)}
	if c.State != claim.Issued {
		answer.Status = http.StatusAccepted
	}
	if repeated {
		answer.Replayed = "true"
	}
	return answer
}

// claimQuickly answers POST /claims in the common form, at less cost than the general way. The
// general way takes every other form.
func (h *handlers) claimQuickly(w http.ResponseWriter, r *http.Request, body []byte) bool {
	wish, ok := scanClaim(body)
	keys := r.Header[pipeline.IdempotencyHeader]
	if !ok || len(keys) > 1 || len(keys) == 1 && keys[0] == "" {
		return false
	}
	in := claimRequest{Body: wish, request: r}
	if len(keys) == 1 {
		in.Key = keys[0]
	}
	out, err := h.claim(r.Context(), &in)
	if err != nil {
		h.Problem(r.Context(), err).Write(w)
		return true
	}
	w.Header()["Content-Type"] = pipeline.JSONType
	if out.Replayed != "" {
		w.Header()[pipeline.ReplayedHeader] = []string{out.Replayed}
	}
	w.WriteHeader(out.Status)
	_, _ = w.Write(append(appendClaim(make([]byte, 0, 256), &out.Body), '\n'))
	return true
}

// appendClaim appends c as [json.Marshal] does.
func appendClaim(b []byte, c *Claim) []byte {
	b = append(b, `{"claim_id":"`...)
	b = append(b, c.ID...)
	b = append(b, `","template_id":"`...)
	b = append(b, c.TemplateID...)
	b = append(b, `","state":`...)
	b = pipeline.AppendText(b, c.State)
	if c.CouponID != "" {
		b = append(b, `,"coupon_id":"`...)
		b = append(b, c.CouponID...)
		b = append(b, '"')
	}
	if c.Reason != "" {
		b = append(b, `,"reason":`...)
		b = pipeline.AppendText(b, c.Reason)
	}
	b = append(b, `,"at":"`...)
	b = c.At.AppendFormat(b, time.RFC3339Nano)
	return append(b, `"}`...)
}

// scanClaim reads a wish in the common form: known fields, without escapes. ok is
// false for any other body, good or bad.
func scanClaim(body []byte) (wish ClaimWish, ok bool) {
	s := pipeline.NewScanner(body)
	ok = s.Object(func(field string) bool {
		switch field {
		case "template_id":
			return wish.TemplateID == "" && s.ID(&wish.TemplateID)
		case "pass":
			var ok bool
			if wish.Pass == "" {
				wish.Pass, ok = s.Text()
			}
			return ok && wish.Pass != "" && len(wish.Pass) <= pass.MaxText
		}
		return false
	})
	return wish, ok && wish.TemplateID != "" && s.End()
}

func (h *handlers) claimByID(ctx context.Context, in *struct {
	ID string `path:"id" maxLength:"19" doc:"The claim_id of the answer."`
}) (*struct{ Body Claim }, error) {
	id, err := claim.ParseID(in.ID)
	if err != nil {
		return nil, err
	}
	c, err := h.Claims.Claim(ctx, pipeline.UserOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Claim }{claimJSON(c)}, nil
}

func (h *handlers) coupons(ctx context.Context, in *struct {
	State  string `query:"state" enum:"unused,locked,used,expired,refunded,revoked,suspended" doc:"Only coupons in this state. Coupons whose order was refunded are among the unused or expired ones; none is refunded."`
	Before string `query:"before" pattern:"^[1-9][0-9]{0,18}$" doc:"The value of next on the previous page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
}) (*struct{ Body CouponList }, error) {
	before, err := pipeline.OptionalID("query.before", in.Before)
	if err != nil {
		return nil, err
	}
	by := pipeline.UserOf(ctx)
	found, err := h.Claims.Coupons(ctx, claim.Query{UserID: by, State: in.State, Before: before, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	next := pipeline.Next(found, in.Limit, func(last claim.Coupon) string { return pipeline.Decimal(last.ID) })
	return &struct{ Body CouponList }{CouponList{pipeline.Each(found, func(c claim.Coupon) OwnedCoupon { return ownedJSON(c, by) }), next}}, nil
}

func claimJSON(c claim.Claim) Claim {
	j := Claim{ID: c.ID.String(), TemplateID: pipeline.Decimal(c.TemplateID), State: string(c.State), Reason: c.Reason, At: c.At.UTC()}
	if c.CouponID != 0 {
		j.CouponID = pipeline.Decimal(c.CouponID)
	}
	return j
}

func ownedJSON(c claim.Coupon, by user.ID) OwnedCoupon {
	t := c.Template
	return OwnedCoupon{
		Coupon: Coupon{CouponID: pipeline.Decimal(c.ID), TemplateID: pipeline.Decimal(t.ID), UserID: by.String(), State: c.State, OrderID: c.OrderID,
			Discount: c.Discount, Currency: t.Currency, LockedUntil: pipeline.UTC(c.LockedUntil), IssuedAt: c.IssuedAt.UTC(),
			ExpiresAt: c.ExpiresAt.UTC(), UseBy: useBy(coupon.RuleOf(t.Spec), c.State, c.IssuedAt), UsedAt: pipeline.UTC(c.UsedAt), Returned: c.Returned,
			Rule: CouponRule{Discount: parts.DiscountOf(t.Spec), Target: string(t.Target), Product: t.Product}},
		ClaimID: c.ClaimID.String(), TemplateName: t.Name, ShopNumber: pipeline.Decimal(t.ShopNumber), ShopName: t.ShopName,
	}
}
