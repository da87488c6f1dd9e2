package coupons

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"dropbell/domain/review"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// CouponReview is what the owner of a coupon reads about its review.
type CouponReview struct {
	CouponID   string     `json:"coupon_id" example:"17"`
	State      string     `json:"state" enum:"suspended,returned,restored" doc:"suspended: it cannot be used until a person has decided. returned: it was taken back. restored: it is the owner's again." example:"suspended"`
	Sentence   string     `json:"sentence" doc:"Why, in English." example:"Your coupon is being checked: it was claimed together with many others, faster than people can press a button."`
	SentenceZH string     `json:"sentence_zh" doc:"Why, in Chinese." example:"您的优惠券正在核查。"`
	Since      *time.Time `json:"since,omitempty" doc:"When it was suspended." example:"2027-01-01T12:30:00Z"`
	Appeal     string     `json:"appeal,omitempty" doc:"The owner's words."`
	AppealedAt *time.Time `json:"appealed_at,omitempty"`
	Answer     string     `json:"answer,omitempty" enum:"restored,upheld" doc:"What a person has decided about the appeal."`
	AnsweredAt *time.Time `json:"answered_at,omitempty"`
}

// ClaimGroup is a group of claims that a review found.
type ClaimGroup struct {
	ID          string     `json:"id" example:"1"`
	TemplateID  string     `json:"template_id" example:"1"`
	Rules       []string   `json:"rules" nullable:"false" enum:"at_once,passes_in_a_row,before_anybody,nothing_opened,by_program,shared_push,shared_phone,shared_household" doc:"The signs that at least half of the claims share; docs/brakes.md describes them."`
	Coupons     int64      `json:"coupons" doc:"The claims of the group." example:"214"`
	Networks    int64      `json:"networks" doc:"From how many networks they came; 0 = not known." example:"1"`
	Agents      int64      `json:"agents" doc:"With how many agents; 0 = not known." example:"5"`
	FromMS      int64      `json:"from_ms" doc:"The first of them, in milliseconds after the opening." example:"3"`
	ToMS        int64      `json:"to_ms" doc:"The last of them." example:"9"`
	Nothing     int64      `json:"nothing_opened" doc:"Claims whose users had opened no page and no link, and reserved no reminder." example:"214"`
	State       string     `json:"state" enum:"open,proposed,suspending,suspended,returning,returned,restoring,restored,let_be" example:"open"`
	Proposed    string     `json:"proposed,omitempty" enum:"suspend,return" doc:"What a second member is asked to approve."`
	Suspended   int64      `json:"suspended" doc:"Coupons under review now." example:"0"`
	Returned    int64      `json:"returned" doc:"Coupons that were taken back." example:"0"`
	Restored    int64      `json:"restored" doc:"Coupons that their owners have again." example:"0"`
	Kept        int64      `json:"kept" doc:"Coupons that were used, locked or expired before." example:"0"`
	Appeals     int64      `json:"appeals" doc:"Appeals that wait for an answer." example:"0"`
	Reason      string     `json:"reason,omitempty" doc:"Of the last decision."`
	SuspendedAt *time.Time `json:"suspended_at,omitempty"`
	ChangedAt   time.Time  `json:"changed_at"`
	May         []string   `json:"may" enum:"suspend,return,restore,let_be,approve,decline" nullable:"false" doc:"The decisions that this caller can make now."`
}

// ClaimGroupList is one page of groups.
type ClaimGroupList struct {
	Groups []ClaimGroup `json:"groups" nullable:"false"`
	Next   string       `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

// GroupCoupon is a coupon of a group.
type GroupCoupon struct {
	CouponID   string     `json:"coupon_id" example:"17"`
	UserID     string     `json:"user_id" example:"1001"`
	State      string     `json:"state" enum:"found,suspended,kept,returned,restored" example:"found"`
	Appeal     string     `json:"appeal,omitempty" doc:"The owner's words."`
	AppealedAt *time.Time `json:"appealed_at,omitempty"`
	Answer     string     `json:"answer,omitempty" enum:"restored,upheld"`
}

// GroupCouponList is one page of the coupons of a group.
type GroupCouponList struct {
	Coupons []GroupCoupon `json:"coupons" nullable:"false"`
	Next    string        `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last one."`
}

// Fairness are the public figures of a drop.
type Fairness struct {
	Over        bool       `json:"over" doc:"False until the drop is over or sold out; the figures are absent before."`
	Entries     *int64     `json:"entries,omitempty" doc:"Entries of the draw; of a drop without one the claims that got a coupon." example:"20000"`
	Refused     *int64     `json:"refused,omitempty" doc:"Claims that did not get one, such as without a pass, too late, or beyond the limit per user; counted for drops that are protected or have doors." example:"84000"`
	WithoutPass *int64     `json:"without_pass,omitempty" doc:"Of the refused: without a pass." example:"12000"`
	Suspended   *int64     `json:"suspended,omitempty" doc:"Coupons under review now." example:"0"`
	Filled      *int64     `json:"filled,omitempty" doc:"Users of the waitlist who got a coupon." example:"120"`
	TakenBack   *int64     `json:"taken_back,omitempty" doc:"Coupons that were taken back from scripts." example:"2950"`
	Restored    *int64     `json:"restored,omitempty" doc:"Coupons that were suspended and given back to their owners." example:"4"`
	ReviewedAt  *time.Time `json:"reviewed_at,omitempty" doc:"When the claims were last reviewed." example:"2027-01-01T13:00:00Z"`
}

type groupAnswer struct{ Body ClaimGroup }

func (h *handlers) reviewRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/coupons/{id}/review", ID: "get-coupon-review", Summary: "Show why a coupon is under review",
		Codes: []string{"review_not_found"}}, pipeline.ByID(func(ctx context.Context, id int64) (*struct{ Body CouponReview }, error) {
		t, err := h.Reviews.Standing(ctx, pipeline.UserOf(ctx), id)
		if err != nil {
			return nil, err
		}
		text := review.Sentence(t.Rules, t.Facts)
		return &struct{ Body CouponReview }{CouponReview{CouponID: pipeline.Decimal(t.CouponID), State: t.State, Sentence: text["en"], SentenceZH: text["zh-CN"],
			Since: pipeline.UTC(t.Since), Appeal: t.Appeal, AppealedAt: pipeline.UTC(t.AppealedAt), Answer: t.Answer, AnsweredAt: pipeline.UTC(t.AnsweredAt)}}, nil
	}))
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPost, Path: "/coupons/{id}/appeal", ID: "appeal-coupon", Summary: "Appeal against the suspension of a coupon", Status: http.StatusNoContent,
		Description: "A person of the shop decides. A coupon has one appeal.", Codes: []string{"review_not_found", "coupon_not_suspended", "already_appealed"},
		Example: `{"text":"I pressed the button in the app at home."}`}, h.appeal)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForAnybody}, Method: http.MethodGet, Path: "/templates/{id}/fairness", ID: "get-fairness",
		Summary: "Show how fair a drop was", Description: "The public figures of a drop once it is over or sold out: claims, refusals, and coupons that were suspended, taken back from scripts and restored. Refusals are counted for protected drops. Needs no credentials.",
		Codes: []string{"template_not_found"}}, pipeline.ByID(h.fairness))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/reviews", "list-reviews", "List groups of claims that reviews found",
		pipeline.Route{Description: "Those that changed last first; the groups of one drop the largest first.", Cells: &cells.List{At: "changed_at", ID: "id", Pages: cells.ByPage}}), h.reviews)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/reviews/{id}", "get-review", "Show a group of claims", pipeline.Route{Codes: []string{"review_not_found"}}),
		pipeline.ByID(func(ctx context.Context, id int64) (*groupAnswer, error) { return h.group(ctx, id) }))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/reviews/{id}/coupons", "list-review-coupons", "List the coupons of a group",
		pipeline.Route{Codes: []string{"review_not_found"}}), h.groupCoupons)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/reviews/{id}/decision", "decide-review", "Decide about a group of claims",
		pipeline.Route{Description: "suspend: its unused coupons cannot be locked. return: the suspended coupons are revoked and returned to the stock. restore, within 24 hours: their owners have them again. " +
			"let_be: nothing happens. A suspension or return of more than 100 coupons becomes a proposal, which another member approves or declines. Workers carry a decision out within seconds.",
			Codes: []string{"review_not_found", "review_decided", "review_needs_second", "review_too_late", "review_has_appeals"}, Example: `{"decision":"suspend","reason":"3 to 9 ms after the opening, one network"}`}), h.decideReview)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/reviews/{id}/appeals", "answer-appeal", "Answer an appeal", pipeline.Route{Status: http.StatusNoContent,
		Description: "restored gives the coupon back to its owner, upheld leaves it suspended.", Codes: []string{"review_not_found", "appeal_answered"},
		Example: `{"coupon_id":"17","answer":"restored","reason":"a customer of ours for years"}`}), h.answerAppeal)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/templates/{id}/review", "review-again", "Review a drop again", pipeline.Route{Status: http.StatusNoContent,
		Description: "Replaces the groups that nobody has decided. A protected drop is reviewed by itself a minute after it is over or sold out.", Codes: []string{"review_not_found"}}),
		pipeline.ByID(func(ctx context.Context, id int64) (*struct{}, error) {
			return nil, h.Reviews.Again(ctx, pipeline.ActorOf(ctx), id)
		}))
}

func (h *handlers) appeal(ctx context.Context, in *struct {
	pipeline.Ref
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"1000" doc:"Why the coupon should be given back." example:"I pressed the button in the app at home."`
	} `nameHint:"Appeal"`
}) (*struct{}, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err := pipeline.Merge(err, pipeline.CheckText("body.text", in.Body.Text)); err != nil {
		return nil, err
	}
	return nil, h.Reviews.Appeal(ctx, pipeline.UserOf(ctx), id, in.Body.Text)
}

func (h *handlers) fairness(ctx context.Context, id int64) (*struct{ Body Fairness }, error) {
	over, c, err := h.Reviews.Fairness(ctx, id)
	if err != nil {
		return nil, err
	}
	body := Fairness{Over: over}
	if over {
		body = Fairness{true, &c.Entries, &c.Refused, &c.WithoutPass, &c.Suspended, &c.Filled, &c.TakenBack, &c.Restored, pipeline.UTC(c.ReviewedAt)}
	}
	return &struct{ Body Fairness }{body}, nil
}

func (h *handlers) reviews(ctx context.Context, in *struct {
	TemplateID string `query:"template_id" pattern:"^[1-9][0-9]{0,18}$" doc:"Only groups of this drop."`
	Asking     bool   `query:"asking" doc:"Only groups that wait for a decision or an answer to an appeal."`
	Before     string `query:"before" pattern:"^[0-9]{1,18}-[0-9]{1,18}$" doc:"The value of next on the previous page."`
	Limit      int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
}) (*struct{ Body ClaimGroupList }, error) {
	template, err := pipeline.OptionalID("query.template_id", in.TemplateID)
	if err != nil {
		return nil, err
	}
	q := review.Query{TemplateID: template, Asking: in.Asking, Limit: in.Limit}
	var at int64
	if _, err := fmt.Sscanf(in.Before, "%d-%d", &at, &q.BeforeID); err == nil {
		q.ChangedAt = time.UnixMicro(at)
	}
	list, err := h.Reviews.Reviews(ctx, pipeline.ActorOf(ctx), q)
	if err != nil {
		return nil, err
	}
	page := ClaimGroupList{Groups: pipeline.Each(list, func(r review.Review) ClaimGroup { return h.groupJSON(ctx, r) })}
	if template == 0 {
		page.Next = pipeline.Next(list, in.Limit, func(r review.Review) string { return fmt.Sprintf("%d-%d", r.ChangedAt.UnixMicro(), r.ID) })
	}
	return &struct{ Body ClaimGroupList }{page}, nil
}

func (h *handlers) group(ctx context.Context, id int64) (*groupAnswer, error) {
	r, err := h.Reviews.Review(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &groupAnswer{h.groupJSON(ctx, r)}, nil
}

func (h *handlers) groupJSON(ctx context.Context, r review.Review) ClaimGroup {
	by := pipeline.ActorOf(ctx)
	texts := func(steps []review.Step) []string {
		return pipeline.Each(steps, func(s review.Step) string { return string(s) })
	}
	return ClaimGroup{ID: pipeline.Decimal(r.ID), TemplateID: pipeline.Decimal(r.TemplateID), Rules: pipeline.Each(r.Rules, func(s review.Rule) string { return string(s) }),
		Coupons: r.Coupons, Networks: r.Facts.Networks, Agents: r.Facts.Agents, FromMS: r.Facts.From, ToMS: r.Facts.To, Nothing: r.Facts.Nothing,
		State: string(r.State), Proposed: string(r.Proposed), Suspended: r.Suspended, Returned: r.Returned, Restored: r.Restored, Kept: r.Kept, Appeals: r.Appeals,
		Reason: r.Reason, SuspendedAt: pipeline.UTC(r.SuspendedAt), ChangedAt: r.ChangedAt.UTC(), May: texts(r.May(by.Label, h.Now()))}
}

func (h *handlers) groupCoupons(ctx context.Context, in *struct {
	pipeline.Ref
	Appealed bool   `query:"appealed" doc:"Only coupons whose owners wait for an answer."`
	After    string `query:"after" pattern:"^[1-9][0-9]{0,18}$" doc:"The value of next on the previous page."`
	Limit    int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
}) (*struct{ Body GroupCouponList }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	after, err2 := pipeline.OptionalID("query.after", in.After)
	if err := pipeline.Merge(err, err2); err != nil {
		return nil, err
	}
	list, err := h.Reviews.Members(ctx, pipeline.ActorOf(ctx), id, after, in.Appealed, in.Limit)
	if err != nil {
		return nil, err
	}
	return &struct{ Body GroupCouponList }{GroupCouponList{Coupons: pipeline.Each(list, func(m review.Member) GroupCoupon {
		return GroupCoupon{pipeline.Decimal(m.CouponID), pipeline.Decimal(m.UserID), m.State, m.Appeal, pipeline.UTC(m.AppealedAt), m.Answer}
	}), Next: pipeline.Next(list, in.Limit, func(m review.Member) string { return pipeline.Decimal(m.CouponID) })}}, nil
}

func (h *handlers) decideReview(ctx context.Context, in *struct {
	pipeline.Ref
	Body struct {
		Decision string `json:"decision" enum:"suspend,return,restore,let_be,approve,decline" example:"suspend"`
		Reason   string `json:"reason" maxLength:"500" doc:"Why, for the coupons' log and the audit log."`
	} `nameHint:"ReviewDecision"`
}) (*groupAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err := pipeline.Merge(err, pipeline.CheckText("body.reason", in.Body.Reason)); err != nil {
		return nil, err
	}
	if _, err := h.Reviews.Decide(ctx, pipeline.ActorOf(ctx), id, review.Step(in.Body.Decision), strings.TrimSpace(in.Body.Reason)); err != nil {
		return nil, err
	}
	return h.group(ctx, id)
}

func (h *handlers) answerAppeal(ctx context.Context, in *struct {
	pipeline.Ref
	Body struct {
		CouponID string `json:"coupon_id" pattern:"^[1-9][0-9]{0,18}$" example:"17"`
		Answer   string `json:"answer" enum:"restored,upheld" example:"restored"`
		Reason   string `json:"reason" maxLength:"500" doc:"Why, for the coupon's log and the audit log."`
	} `nameHint:"AppealAnswer"`
}) (*struct{}, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	couponID, err2 := pipeline.ParseID("body.coupon_id", in.Body.CouponID)
	if err := pipeline.Merge(err, err2, pipeline.CheckText("body.reason", in.Body.Reason)); err != nil {
		return nil, err
	}
	return nil, h.Reviews.Answer(ctx, pipeline.ActorOf(ctx), id, couponID, in.Body.Answer == "restored", strings.TrimSpace(in.Body.Reason))
}
