package review

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Store keeps reviews.
type Store interface {
	// Review returns [ErrNotFound] if there is none.
	Review(ctx context.Context, id int64) (Review, error)
	Reviews(ctx context.Context, q Query) ([]Review, error)
	Run(ctx context.Context, templateID int64) (Run, bool, error)
	Members(ctx context.Context, id, afterCoupon int64, appealed bool, limit int) ([]Member, error)
	// Decide stores the group if its state, its proposal and its time of change are still those of
	// before, with the audit record; otherwise it returns [ErrState].
	Decide(ctx context.Context, before, after Review, e staff.Entry) error
	// WantRun asks for another run over the drop.
	WantRun(ctx context.Context, templateID int64, e staff.Entry) error
	// Answer stores the answer to the appeal about a coupon, restored or upheld, and gives a restored
	// coupon back to its owner. It returns [ErrNoAppeal] if no appeal waits.
	Answer(ctx context.Context, id, couponID int64, answer string, reason string, e staff.Entry) error
	Accuracies(ctx context.Context) ([]Accuracy, error)
	Counts(ctx context.Context, templateID int64) (Counts, error)
	// Standing returns [ErrNotFound] if the coupon is another user's, or in no group that was
	// suspended.
	Standing(ctx context.Context, by user.ID, couponID int64) (Standing, error)
	// Appeal stores the user's words. It returns [ErrNotFound], [ErrNotSuspended] or [ErrAppealed].
	Appeal(ctx context.Context, by user.ID, couponID int64, text string) error
}

// Templates finds drops; its answers may be a second old.
type Templates interface {
	// Template returns [template.ErrNotFound] if there is none.
	Template(ctx context.Context, id int64) (template.Template, error)
}

// Service holds the use cases of staff and of users about reviews.
type Service struct {
	Store     Store
	Templates Templates
	Now       func() time.Time
}

// Reviews lists the groups of the actor's shops.
func (s *Service) Reviews(ctx context.Context, by staff.Actor, q Query) ([]Review, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	q.Shops = by.Shops
	return s.Store.Reviews(ctx, q)
}

// Review returns a group, or [ErrNotFound] or [staff.ErrForbidden].
func (s *Service) Review(ctx context.Context, by staff.Actor, id int64) (Review, error) {
	r, err := s.Store.Review(ctx, id)
	if err != nil {
		return r, err
	}
	return r, by.May(staff.View, r.ShopNumber)
}

// Members lists coupons of a group by their numbers, those with open appeals alone if wished.
func (s *Service) Members(ctx context.Context, by staff.Actor, id, after int64, appealed bool, limit int) ([]Member, error) {
	if _, err := s.Review(ctx, by, id); err != nil {
		return nil, err
	}
	return s.Store.Members(ctx, id, after, appealed, limit)
}

// Run returns the review of a drop; false = there was none yet.
func (s *Service) Run(ctx context.Context, by staff.Actor, templateID int64) (Run, bool, error) {
	r, ok, err := s.Store.Run(ctx, templateID)
	if err != nil || !ok {
		return r, ok, err
	}
	return r, ok, by.May(staff.View, r.ShopNumber)
}

// Again asks for another run over the drop, which replaces the undecided groups.
func (s *Service) Again(ctx context.Context, by staff.Actor, templateID int64) error {
	r, ok, err := s.Store.Run(ctx, templateID)
	if err != nil {
		return err
	}
	if !ok {
		return ErrNotFound.Because("the drop was not reviewed yet; it is a minute after it is over or sold out")
	}
	if err := by.May(staff.ManageUsers, r.ShopNumber); err != nil {
		return err
	}
	return s.Store.WantRun(ctx, templateID, staff.Entry{Actor: by, Action: "review.again", ObjectKind: "template", ObjectID: strconv.FormatInt(templateID, 10), ShopNumber: r.ShopNumber})
}

// Decide carries out a decision; see [Review.Decide]. It returns a [fault.Fields] without a reason.
func (s *Service) Decide(ctx context.Context, by staff.Actor, id int64, step Step, reason string) (Review, error) {
	old, err := s.Review(ctx, by, id)
	if err != nil {
		return old, err
	}
	if err := by.May(needs(step), old.ShopNumber); err != nil {
		return old, err
	}
	if err := CheckReason(reason); err != nil {
		return old, err
	}
	next, err := old.Decide(by.Label+" "+by.Name, step, s.Now())
	if err != nil {
		return old, err
	}
	next.Reason = reason
	e := staff.Entry{Actor: by, Action: "review." + string(step), ObjectKind: "review", ObjectID: strconv.FormatInt(id, 10), ShopNumber: old.ShopNumber, Reason: reason,
		Before: shown(old), After: shown(next)}
	if _, err := detach.Write(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Store.Decide(ctx, old, next, e) }); err != nil {
		return old, err
	}
	return next, nil
}

// Shown is what the audit log keeps of a group.
type Shown struct {
	State    State  `json:"state"`
	Coupons  int64  `json:"coupons"`
	Proposed string `json:"proposed,omitempty"`
}

func shown(r Review) Shown { return Shown{r.State, r.Coupons, string(r.Proposed)} }

// Answer decides an appeal: restored gives the coupon back, upheld leaves it as it is.
func (s *Service) Answer(ctx context.Context, by staff.Actor, id, couponID int64, restored bool, reason string) error {
	r, err := s.Review(ctx, by, id)
	if err != nil {
		return err
	}
	if err := by.May(staff.ManageUsers, r.ShopNumber); err != nil {
		return err
	}
	if err := CheckReason(reason); err != nil {
		return err
	}
	answer, action := "upheld", "appeal_upheld"
	if restored {
		answer, action = "restored", "appeal_restored"
	}
	e := staff.Entry{Actor: by, Action: "review." + action, ObjectKind: "coupon", ObjectID: strconv.FormatInt(couponID, 10), ShopNumber: r.ShopNumber, Reason: reason}
	_, err = detach.Write(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Store.Answer(ctx, id, couponID, answer, reason, e)
	})
	return err
}

// Accuracies returns how right each rule has been in the last 180 days, in the order of [Rules].
func (s *Service) Accuracies(ctx context.Context, by staff.Actor) ([]Accuracy, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Accuracies(ctx)
}

// Fairness returns the public figures of a drop, once it is over or sold out; over is false before.
// It returns [template.ErrNotFound].
func (s *Service) Fairness(ctx context.Context, templateID int64) (over bool, c Counts, err error) {
	t, err := s.Templates.Template(ctx, templateID)
	if err != nil {
		return false, c, err
	}
	switch t.State(s.Now()) {
	case template.Draft:
		return false, c, template.ErrNotFound
	case template.SoldOut, template.Closed:
		c, err = s.Store.Counts(ctx, templateID)
		return err == nil, c, err
	}
	return false, c, nil
}

// Standing returns what the owner of the coupon may read about its review.
func (s *Service) Standing(ctx context.Context, by user.ID, couponID int64) (Standing, error) {
	return s.Store.Standing(ctx, by, couponID)
}

// Appeal stores the owner's appeal about a suspended coupon. One coupon has one appeal.
func (s *Service) Appeal(ctx context.Context, by user.ID, couponID int64, text string) error {
	text = strings.TrimSpace(text)
	e := &fault.Fields{}
	if n := utf8.RuneCountInString(text); n < 1 || n > MaxAppeal || strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		e.Add("text", "rule.appeal", "say why, in at most %d characters", MaxAppeal)
	}
	if err := e.Err(); err != nil {
		return err
	}
	_, err := detach.Write(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Store.Appeal(ctx, by, couponID, text)
	})
	return err
}
