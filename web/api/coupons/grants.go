package coupons

import (
	"context"
	"net/http"
	"strings"

	"dropbell/domain/coupon"
	"dropbell/domain/staff"
	"dropbell/web/api/pipeline"
)

func (h *handlers) grantRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForStaff}, Method: http.MethodPost, Path: "/admin/grants/{id}/apply", ID: "apply-grant",
		Summary: "Grant the coupons of a dry run", Status: http.StatusAccepted,
		Description: "The dry run must be done. It is applied once: further requests get the same job, whose started_by names the first caller.",
		Codes:       []string{"job_not_found", "template_not_found", "invalid_transition"}, Example: `{"reason":"thanks to the testers"}`}, h.applyGrant)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForStaff}, Method: http.MethodPost, Path: "/admin/grants/{id}/take-back", ID: "take-back-grant",
		Summary: "Revoke the unused coupons that a list was given", Status: http.StatusAccepted,
		Description: "Works in the background; GET /admin/grants/{job_id} has the progress, done being the coupons revoked and failed those that are " +
			"locked, used or expired and stay; results counts them by result: revoked, revoked_before (not by this job), locked, used, expired, gone. " +
			"Each coupon is revoked as by /admin/coupons/{id}/revoke. Repeating it changes nothing.",
		Codes: []string{"job_not_found", "invalid_transition"}, Example: `{"reason":"the list was the wrong one","return_to_stock":true}`}, h.takeBackGrant)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForStaff, Stream: true}, Method: http.MethodGet, Path: "/admin/grants/{id}/results.csv", ID: "export-grant",
		Summary: "Export the result of each row of a list",
		Description: "A heading, then line,user_id,result,coupon_id for each row, as far as the list is processed. The rows belong to the list: " +
			"once a dry run is applied, both its id and the new one have the granted coupons. An answer that breaks off is incomplete; repeat the request.",
		Codes: []string{"job_not_found"}, File: "text/csv", FileText: "The rows."}, pipeline.ByID(h.grantResults))
}

func (h *handlers) applyGrant(ctx context.Context, in *struct {
	pipeline.Ref
	Body *struct {
		Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log."`
	} `nameHint:"GrantReason"`
}) (*grantAnswer, error) {
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	id, err := pipeline.ParseID("path.id", in.ID)
	if err := pipeline.Merge(err, pipeline.CheckText("body.reason", reason)); err != nil {
		return nil, err
	}
	j, _, err := h.Grants.Apply(ctx, pipeline.ActorOf(ctx), id, strings.TrimSpace(reason))
	if err != nil {
		return nil, err
	}
	return h.grantAnswered(ctx, j, false)
}

func (h *handlers) takeBackGrant(ctx context.Context, in *struct {
	pipeline.Ref
	Body struct {
		Reason  string `json:"reason" maxLength:"500" doc:"Why, for the coupons' log and the audit log."`
		ToStock bool   `json:"return_to_stock,omitempty" doc:"Return the coupons to the stock."`
	} `nameHint:"TakeBack"`
}) (*grantAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err := pipeline.Merge(err, pipeline.CheckText("body.reason", in.Body.Reason)); err != nil {
		return nil, err
	}
	j, err := h.Grants.TakeBack(ctx, pipeline.ActorOf(ctx), id, strings.TrimSpace(in.Body.Reason), in.Body.ToStock, pipeline.RequestKey(ctx))
	if err != nil {
		return nil, err
	}
	return h.grantAnswered(ctx, j, false)
}

func (h *handlers) grantResults(ctx context.Context, id int64) (*pipeline.Stream, error) {
	by := pipeline.ActorOf(ctx)
	j, _, err := h.Grants.Job(ctx, by, id) // asked before anything is sent
	if err != nil {
		return nil, err
	}
	if err := by.May(staff.ManageUsers, j.ShopNumber); err != nil {
		return nil, err
	}
	return h.SendRows("grant-"+pipeline.Decimal(j.ID)+".csv", []string{"line", "user_id", "result", "coupon_id"}, func(ctx context.Context, row func(...any) error) error {
		return h.Grants.Results(ctx, by, j.ID, func(g coupon.GrantRow) error {
			var who, what any
			if who = g.Input; g.UserID != 0 {
				who = int64(g.UserID)
			}
			if g.CouponID != 0 {
				what = g.CouponID
			}
			return row(g.Line, who, g.Result, what)
		})
	}), nil
}
