package coupons

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/review"
	"dropbell/domain/staff"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// reviewRoutes are the pages about groups of claims that reviews found.
func (h *handlers) reviewRoutes() []shell.Route {
	return []shell.Route{
		shell.Get("/reviews", staff.View, h.listReviews),
		shell.Get("/reviews.csv", staff.View, shell.CSV(h.Shell, h.joinedReviews)),
		shell.Live(2*time.Second, shell.Get("/reviews/{id}", staff.View, h.showReview)),
		shell.Get("/reviews/{id}/{step:suspend|return|restore|let_be|approve|decline}", staff.ManageUsers, shell.With(h.reviewOf, h.confirmReviewStep)),
		shell.Post("/reviews/{id}/{step:suspend|return|restore|let_be|approve|decline}", staff.ManageUsers, shell.With(h.reviewOf, h.takeReviewStep)),
		shell.Get("/reviews/{id}/appeals/{coupon}/{answer:restored|upheld}", staff.ManageUsers, shell.With(h.reviewOf, h.confirmAnswer)),
		shell.Post("/reviews/{id}/appeals/{coupon}/{answer:restored|upheld}", staff.ManageUsers, shell.With(h.reviewOf, h.giveAnswer)),
		shell.Post("/templates/{id}/review", staff.ManageUsers, shell.With(shell.PathID, h.reviewAgain)),
	}
}

// joinedReviews are the reviews of all databases.
func (h *handlers) joinedReviews(r *http.Request) (couponpages.Reviews, shell.List[shell.Found[review.Review], string], error) {
	p, _, err := h.reviews(r)
	return p, shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[review.Review, shell.Place] {
		_, l, _ := h.reviews(r) // it was read without an error
		return l
	}, func(a, b review.Review) int { return cmp.Or(b.ChangedAt.Compare(a.ChangedAt), cmp.Compare(b.ID, a.ID)) }), err
}

// reviews are the groups that the address selects, those that changed last first.
func (h *handlers) reviews(r *http.Request) (p couponpages.Reviews, l shell.List[review.Review, shell.Place], _ error) {
	var broken fault.Fields
	p.Shown = shell.Choice(r, "show", couponpages.ReviewFilters(), &broken)
	q := review.Query{Asking: p.Shown == ""}
	if text := r.FormValue("template"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			broken.Add("template", "rule.id", "must be the number of a drop")
		}
		q.TemplateID, q.Asking = n, false
	}
	return p, shell.List[review.Review, shell.Place]{Keys: shell.Places("-"), Broken: broken.List, Read: func(after shell.Place, limit int) ([]review.Review, error) {
		q.ChangedAt, q.BeforeID, q.Limit = after.At, after.ID, limit
		return h.Reviews.Reviews(r.Context(), shell.Actor(r), q)
	}, KeyOf: func(v review.Review) shell.Place { return shell.Place{At: v.ChangedAt, ID: v.ID} }, File: shell.FileOf("reviews",
		[]string{"id", "template_id", "template_name", "shop_number", "rules", "coupons", "networks", "agents", "from_ms", "to_ms", "nothing_opened", "state",
			"suspended", "returned", "restored", "kept", "appeals", "reason", "changed_at"},
		func(v review.Review) []any {
			return []any{v.ID, v.TemplateID, v.DropName, v.ShopNumber, couponpages.RuleNames(v.Rules), v.Coupons, v.Facts.Networks, v.Facts.Agents, v.Facts.From, v.Facts.To,
				v.Facts.Nothing, string(v.State), v.Suspended, v.Returned, v.Restored, v.Kept, v.Appeals, v.Reason, v.ChangedAt}
		})}, nil
}

func (h *handlers) listReviews(w http.ResponseWriter, r *http.Request) error {
	p, list, err := h.joinedReviews(r)
	if err != nil {
		return err
	}
	found, paged, err := list.Page(r)
	if err != nil {
		return err
	}
	p.List, p.Paged = shell.Rows(found), paged
	rules, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]review.Accuracy, error) {
		return h.Reviews.Accuracies(r.Context(), shell.Actor(r))
	})
	if err != nil {
		return err
	}
	p.Accuracies = sumOf(rules)
	if id, err := strconv.ParseInt(r.FormValue("template"), 10, 64); err == nil && id > 0 {
		run, ok, err := h.Reviews.Run(r.Context(), shell.Actor(r), id)
		if err != nil {
			return err
		}
		if ok {
			p.Run = &run
		}
		p.TemplateID = id
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

// sumOf adds the figures of the databases by rule; each has them in the order of [review.Rules].
func sumOf(got []*[]review.Accuracy) []review.Accuracy {
	sum := *got[0]
	for _, o := range got[1:] {
		if o != nil {
			for i, a := range *o {
				sum[i].Groups, sum[i].Suspended, sum[i].Restored = sum[i].Groups+a.Groups, sum[i].Suspended+a.Suspended, sum[i].Restored+a.Restored
			}
		}
	}
	return sum
}

func (h *handlers) reviewOf(r *http.Request) (review.Review, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return review.Review{}, err
	}
	return h.Reviews.Review(r.Context(), shell.Actor(r), id)
}

func (h *handlers) showReview(w http.ResponseWriter, r *http.Request) error {
	v, err := h.reviewOf(r)
	if err != nil {
		return err
	}
	p := couponpages.ReviewDetail{Review: v, Appealed: r.FormValue("appealed") != ""}
	if shell.Actor(r).Can(staff.ManageUsers, v.ShopNumber) {
		p.May = v.May(shell.Actor(r).Label, h.Now())
	}
	list := shell.List[review.Member, int64]{Keys: shell.Lines(), Read: func(after int64, limit int) ([]review.Member, error) {
		return h.Reviews.Members(r.Context(), shell.Actor(r), v.ID, after, p.Appealed, limit)
	}, KeyOf: func(m review.Member) int64 { return m.CouponID }}
	if p.Members, p.Paged, err = list.Page(r); err != nil {
		return err
	}
	return h.Either(w, r, p.Live(), p.Page())
}

// reviewStep is the confirmation of the decision in the address.
func (h *handlers) reviewStep(r *http.Request, v review.Review, broken string) pageparts.Confirmation {
	step, loc := review.Step(r.PathValue("step")), shell.Frame(r).Locale
	p := pageparts.Confirmation{Active: "reviews", Crumbs: couponpages.ReviewCrumbs(loc.T("nav.reviews"), v),
		ConfirmProps: ui.ConfirmProps{Cancel: couponpages.ReviewURL(v.ID), Reason: shell.Reason(r), NeedsReason: true, ReasonError: broken,
			Title: loc.T("review."+string(step)+".title", v.DropName), Points: []string{loc.N("review."+string(step)+".1", v.Coupons)},
			Submit: loc.T("review." + string(step)), Action: couponpages.ReviewURL(v.ID) + "/" + string(step)}}
	if step == review.Suspend || step == review.Return {
		p.Kind = "danger"
		if v.Coupons > review.Alone {
			p.Points = append(p.Points, loc.T("review.second", review.Alone))
		}
	}
	if step == review.Approve {
		p.Points = []string{loc.N("review."+string(v.Proposed)+".1", v.Coupons)}
	}
	if _, err := v.Decide(shell.Actor(r).Label, step, h.Now()); err != nil {
		p.Submit, p.Action, p.Kind, p.NoReason, p.NeedsReason = "", "", "", true, false
		p.Title, p.Points = loc.T("review.not"), []string{ui.FaultText(r.Context(), err)}
	}
	return p
}

func (h *handlers) confirmReviewStep(w http.ResponseWriter, r *http.Request, v review.Review) error {
	return h.AskStep(w, r, h.reviewStep(r, v, ""))
}

func (h *handlers) takeReviewStep(w http.ResponseWriter, r *http.Request, v review.Review) error {
	next, err := h.Reviews.Decide(r.Context(), shell.Actor(r), v.ID, review.Step(r.PathValue("step")), shell.Reason(r))
	if broken := shell.FieldsOf(err); broken != nil {
		return h.Ask(w, r, http.StatusUnprocessableEntity, h.reviewStep(r, v, ui.ErrorOf(r.Context(), broken, "reason")))
	}
	if fault.KindOf(err) == fault.Conflict {
		if now, again := h.reviewOf(r); again == nil {
			return h.AskStep(w, r, h.reviewStep(r, now, ""))
		}
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, couponpages.ReviewURL(v.ID), ui.Good, shell.Say(r, "review.now."+string(next.State)))
}

// answerStep is the confirmation of an answer to an appeal.
func (h *handlers) answerStep(r *http.Request, v review.Review, broken string) pageparts.Confirmation {
	answer, coupon, loc := r.PathValue("answer"), r.PathValue("coupon"), shell.Frame(r).Locale
	return pageparts.Confirmation{Active: "reviews", Crumbs: couponpages.ReviewCrumbs(loc.T("nav.reviews"), v),
		ConfirmProps: ui.ConfirmProps{Cancel: couponpages.ReviewURL(v.ID), Reason: shell.Reason(r), NeedsReason: true, ReasonError: broken,
			Title: loc.T("review.appeal."+answer+".title", coupon), Points: []string{loc.T("review.appeal." + answer + ".1")},
			Submit: loc.T("review.appeal." + answer), Action: couponpages.ReviewURL(v.ID) + "/appeals/" + coupon + "/" + answer}}
}

func (h *handlers) confirmAnswer(w http.ResponseWriter, r *http.Request, v review.Review) error {
	return h.AskStep(w, r, h.answerStep(r, v, ""))
}

func (h *handlers) giveAnswer(w http.ResponseWriter, r *http.Request, v review.Review) error {
	coupon, err := strconv.ParseInt(r.PathValue("coupon"), 10, 64)
	if err != nil || coupon <= 0 {
		return review.ErrNotFound
	}
	err = h.Reviews.Answer(r.Context(), shell.Actor(r), v.ID, coupon, r.PathValue("answer") == "restored", shell.Reason(r))
	if broken := shell.FieldsOf(err); broken != nil {
		return h.Ask(w, r, http.StatusUnprocessableEntity, h.answerStep(r, v, ui.ErrorOf(r.Context(), broken, "reason")))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, couponpages.ReviewURL(v.ID), ui.Good, shell.Say(r, "review.appeal.now."+r.PathValue("answer")))
}

func (h *handlers) reviewAgain(w http.ResponseWriter, r *http.Request, id int64) error {
	if err := h.Reviews.Again(r.Context(), shell.Actor(r), id); err != nil {
		return err
	}
	return h.Done(w, r, couponpages.DropReviewsURL(id), ui.Good, shell.Say(r, "review.wanted"))
}
