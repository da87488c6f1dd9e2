package coupons

import (
	"context"
	"net/http"
	"strings"

	"dropbell/domain/coupon"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// AdminCouponList is one page of a user's coupons.
type AdminCouponList struct {
	Coupons []Coupon `json:"coupons" nullable:"false"`
	Next    string   `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

func (h *handlers) staffRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/users/{id}/coupons", "list-user-coupons", "List a user's coupons",
		pipeline.Route{Description: "The newest first; keys that are limited to shops see the coupons of these.", Cells: &cells.List{At: "issued_at", ID: "coupon_id"}}), h.userCoupons)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/coupons/{id}/revoke", "revoke-coupon", "Revoke an unused coupon",
		pipeline.Route{Description: "With return_to_stock it no longer counts as issued and another user can get one, while the user's limit still counts it. " +
			"Without, it stays issued. Repeating it changes nothing, not even this choice. Refunded and expired coupons never return to stock.",
			Codes: []string{"coupon_not_found", "coupon_not_usable"}, Example: `{"reason":"given to the wrong person","return_to_stock":true}`}), h.revokeCoupon)
}

func (h *handlers) userCoupons(ctx context.Context, in *struct {
	ID     string `path:"id" pattern:"^[1-9][0-9]{0,18}$"`
	Before string `query:"before" pattern:"^[1-9][0-9]{0,18}$" doc:"The value of next on the previous page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
}) (*struct{ Body AdminCouponList }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	before, err2 := pipeline.OptionalID("query.before", in.Before)
	if err := pipeline.Merge(err, err2); err != nil {
		return nil, err
	}
	q := coupon.Query{UserID: user.ID(id), BeforeID: before, Limit: in.Limit + 1}
	list, err := h.CouponAdmin.List(ctx, pipeline.ActorOf(ctx), q)
	if err != nil {
		return nil, err
	}
	page := AdminCouponList{Coupons: []Coupon{}}
	for i, l := range list {
		if i == in.Limit {
			page.Next = pipeline.Decimal(list[i-1].ID)
			break
		}
		page.Coupons = append(page.Coupons, couponJSON(coupon.Case{Coupon: l.Coupon, Rule: l.Rule, Now: l.Now}))
	}
	return &struct{ Body AdminCouponList }{page}, nil
}

func (h *handlers) revokeCoupon(ctx context.Context, in *struct {
	pipeline.Ref
	Body struct {
		Reason  string `json:"reason" maxLength:"500" doc:"Why, for the log and the audit log."`
		ToStock bool   `json:"return_to_stock,omitempty" doc:"Return the coupon to the stock."`
	} `nameHint:"RevokeReason"`
}) (*couponAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err := pipeline.Merge(err, pipeline.CheckText("body.reason", in.Body.Reason)); err != nil {
		return nil, err
	}
	if _, err := h.CouponAdmin.Revoke(ctx, pipeline.ActorOf(ctx), id, strings.TrimSpace(in.Body.Reason), in.Body.ToStock); err != nil {
		return nil, err
	}
	c, err := h.Coupons.Coupon(ctx, 0, id)
	return &couponAnswer{couponJSON(c)}, err
}
