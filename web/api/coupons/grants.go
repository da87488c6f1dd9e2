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

// GrantWish names the users to give a coupon to.
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

func (h *handlers) grantRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/templates/{id}/grants", "grant-coupons", "Grant a coupon of the template to each user of a list",
		pipeline.Route{Status: http.StatusAccepted,
			Description: "Works in the background. Window and way of obtaining are not checked; stock, limit per user and pause are. A list gives " +
				"a user one coupon at most.",
			Codes: []string{"template_not_found", "invalid_transition"}, Example: `{"user_ids":["1001","1002"],"dry_run":true}`}), h.grantCoupons)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/grants/{id}", "get-grant", "Show the progress of a list of grants",
		pipeline.Route{Codes: []string{"job_not_found"}}), pipeline.ByID(h.grant))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/grants/{id}/apply", "apply-grant", "Grant the coupons of a dry run",
		pipeline.Route{Status: http.StatusAccepted,
			Description: "The dry run must be done. It is applied once: further requests get the same job, whose started_by names the first caller.",
			Codes:       []string{"job_not_found", "template_not_found", "invalid_transition"}, Example: `{"reason":"thanks to the testers"}`}), h.applyGrant)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/grants/{id}/take-back", "take-back-grant", "Revoke the unused coupons that a list was given",
		pipeline.Route{Status: http.StatusAccepted,
			Description: "Works in the background; GET /admin/grants/{job_id} has the progress, done being the coupons revoked and failed those that are " +
				"locked, used or expired and stay; results counts them by result: revoked, revoked_before (not by this job), locked, used, expired, gone. " +
				"Each coupon is revoked as by /admin/coupons/{id}/revoke. Repeating it changes nothing.",
			Codes: []string{"job_not_found", "invalid_transition"}, Example: `{"reason":"the list was the wrong one","return_to_stock":true}`}), h.takeBackGrant)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/grants/{id}/results.csv", "export-grant", "Export the result of each row of a list",
		pipeline.Route{Traits: pipeline.Traits{Stream: true},
			Description: "A heading, then line,user_id,result,coupon_id for each row, as far as the list is processed. The rows belong to the list: " +
				"once a dry run is applied, both its id and the new one have the granted coupons. An answer that breaks off is incomplete; repeat the request.",
			Codes: []string{"job_not_found"}, File: "text/csv", FileText: "The rows."}), pipeline.ByID(h.grantResults))
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
