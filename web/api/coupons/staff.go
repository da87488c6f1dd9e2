package coupons

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// AdminCouponList is one page of a user's coupons.
type AdminCouponList struct {
	Coupons []Coupon `json:"coupons" nullable:"false"`
	Next    string   `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

// GrantWish names users who are given a coupon.
type GrantWish struct {
	UserIDs []string `json:"user_ids" minItems:"1" maxItems:"50000" nullable:"false" doc:"Each gets one coupon, however often named." example:"[\"1001\",\"1002\"]"`
	DryRun  bool     `json:"dry_run,omitempty" doc:"Report what would happen and change nothing."`
	Reason  string   `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log."`
}

// Grant is a list of users that is worked off in the background.
type Grant struct {
	JobID     string           `json:"job_id" example:"1"`
	State     string           `json:"state" enum:"waiting,running,done,failed,cancelled" example:"waiting"`
	DryRun    bool             `json:"dry_run"`
	Total     int64            `json:"total" doc:"Rows; 0 until they are read." example:"2"`
	Done      int64            `json:"done" doc:"Rows that were, or would be, given a coupon."`
	Failed    int64            `json:"failed"`
	Results   map[string]int64 `json:"results,omitempty" doc:"Rows by result: ok (would get one), issued, accepted (by the gate, being written), limit_reached, sold_out, unknown_user, bad_user_id, duplicate, or the code of another refusal."`
	Reason    string           `json:"reason,omitempty" doc:"Why the job as a whole failed."`
	StartedBy string           `json:"started_by" doc:"The member or key that started it." example:"key:1 shop"`
}

type grantAnswer struct{ Body Grant }

func (h *handlers) staffRoutes() {
	staffOnly := pipeline.Traits{Access: pipeline.ForStaff}
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: staffOnly, Method: http.MethodGet, Path: "/admin/users/{id}/coupons", ID: "list-user-coupons",
		Summary: "List a user's coupons", Description: "The newest first; keys that are limited to shops see the coupons of these."}, h.userCoupons)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: staffOnly, Method: http.MethodPost, Path: "/admin/coupons/{id}/revoke", ID: "revoke-coupon",
		Summary: "Revoke an unused coupon", Description: "With return_to_stock it no longer counts as issued and another user can get one, while the user's limit still counts it. " +
			"Without, it stays issued. Repeating it changes nothing, not even this choice. Refunded and expired coupons never return to stock.",
		Codes: []string{"coupon_not_found", "coupon_not_usable"}, Example: `{"reason":"given to the wrong person","return_to_stock":true}`}, h.revokeCoupon)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: staffOnly, Method: http.MethodPost, Path: "/admin/templates/{id}/grants", ID: "grant-coupons",
		Summary: "Grant a coupon of the template to each user of a list", Status: http.StatusAccepted,
		Description: "Works in the background. Window and way of obtaining are not checked; stock, limit per user and pause are. A list gives " +
			"a user one coupon at most.",
		Codes: []string{"template_not_found", "invalid_transition"}, Example: `{"user_ids":["1001","1002"],"dry_run":true}`}, h.grantCoupons)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: staffOnly, Method: http.MethodGet, Path: "/admin/grants/{id}", ID: "get-grant",
		Summary: "Show the progress of a list of grants", Codes: []string{"job_not_found"}}, pipeline.ByID(h.grant))
	h.grantRoutes()
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

// maxGrantList bounds the list as it is stored: it came in a body of 1 MiB.
const maxGrantList = 2 << 20

func (h *handlers) grantCoupons(ctx context.Context, in *struct {
	pipeline.Ref
	Body GrantWish
}) (*grantAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err := pipeline.Merge(err, pipeline.CheckText("body.reason", in.Body.Reason)); err != nil {
		return nil, err
	}
	list := strings.Builder{}
	list.WriteString("user_id\n")
	for i, u := range in.Body.UserIDs {
		if _, err := user.ParseID(u); err != nil {
			return nil, pipeline.Refused("body.user_ids["+strconv.Itoa(i)+"]", pipeline.IDInBody)
		}
		list.WriteString(u + "\n")
	}
	// Asked before anything is stored.
	t, err := h.Templates.Template(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	if err := pipeline.Merge(pipeline.ActorOf(ctx).May(staff.ManageUsers, t.ShopNumber), coupon.CheckGiving(t, in.Body.DryRun, h.Now())); err != nil {
		return nil, err
	}
	upload, err := h.Uploads.SaveUpload(ctx, "api.csv", strings.NewReader(list.String()), maxGrantList, pipeline.ActorOf(ctx))
	if err != nil {
		return nil, err
	}
	p := coupon.GrantParams{TemplateID: id, DryRun: in.Body.DryRun, Reason: strings.TrimSpace(in.Body.Reason), Source: coupon.Source{IDs: true}}
	j, err := h.Grants.Start(ctx, pipeline.ActorOf(ctx), p, upload.ID, pipeline.RequestKey(ctx))
	if err != nil {
		_ = h.Uploads.RemoveUpload(context.WithoutCancel(ctx), upload.ID) // else housekeeping does
		return nil, err
	}
	return h.grantAnswered(ctx, j, in.Body.DryRun)
}

func (h *handlers) grant(ctx context.Context, id int64) (*grantAnswer, error) {
	j, p, err := h.Grants.Job(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return h.grantAnswered(ctx, j, p.DryRun)
}

func (h *handlers) grantAnswered(ctx context.Context, j job.Job, dryRun bool) (*grantAnswer, error) {
	j, counts, err := h.Grants.Outcome(ctx, j)
	return &grantAnswer{Grant{pipeline.Decimal(j.ID), string(j.State), dryRun, j.Total, j.Done, j.Failed, counts, j.Reason, j.CreatedBy}}, err
}
