package coupon

import (
	"context"
	"errors"
	"slices"
	"strings"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A Gift is one coupon that staff give to one user. It is a list of one row, with the
// rules of lists: see [Grants.Start].
type Gift struct {
	TemplateID int64
	UserID     user.ID
	Reason     string
	// OverLimit gives the coupon although the user may have reached the limit.
	OverLimit bool
	// Replaces is a coupon of the user that is given again; 0 = none. The new coupon
	// takes the place of the old one, so the limit is not checked. An unused old coupon is
	// revoked and returned to the stock. A coupon is given again once.
	Replaces int64
}

// Give begins to give one coupon. upload holds the list with the gift's user. The audit
// entry is about the user. Repeating a request key begins no second job. In addition to
// the errors of [Grants.Start], Give returns a [fault.Fields] without a reason.
func (g *Grants) Give(ctx context.Context, by staff.Actor, gift Gift, upload int64, requestKey string) (job.Job, error) {
	if err := CheckReason(gift.Reason); err != nil {
		return job.Job{}, err
	}
	n, err := g.prepare(ctx, by, GrantParams{TemplateID: gift.TemplateID, Reason: gift.Reason, OverLimit: gift.OverLimit, Replaces: gift.Replaces,
		Source: Source{IDs: true}})
	if err != nil {
		return job.Job{}, err
	}
	n.UploadID, n.RequestKey = upload, requestKey
	j, e, err := n.Prepare(by, staff.ManageUsers)
	if err != nil {
		return j, err
	}
	e.Action, e.ObjectKind, e.ObjectID = "coupon.give", "user", gift.UserID.String()
	after := map[string]any{"template_id": itoa(gift.TemplateID), "over_limit": gift.OverLimit}
	if gift.Replaces != 0 {
		e.Action, after = "coupon.reissue", map[string]any{"template_id": itoa(gift.TemplateID), "replaces": itoa(gift.Replaces)}
	}
	e.After = after
	return g.Jobs.Store.StartJob(context.WithoutCancel(ctx), j, requestKey, e)
}

// Result returns the result of the gift's only row, "" while it is unknown, and the
// coupon if it was given.
func (g *Grants) Result(ctx context.Context, by staff.Actor, j job.Job) (result string, couponID int64, err error) {
	rows, err := g.Lines(ctx, by, j, "", 0, 1)
	if err != nil || len(rows) == 0 {
		return "", 0, err
	}
	return rows[0].Result, rows[0].CouponID, nil
}

// Given returns the coupon that replaces the coupon id, 0 if it was not given again.
func (d *Admin) Given(ctx context.Context, id int64) (int64, error) {
	return d.Store.GivenByKey(ctx, replacingKey(id))
}

// MayReissue returns [ErrNotUsable] with the reason if the coupon cannot be given again.
func (l Listed) MayReissue() error {
	switch l.At(l.Now) {
	case Locked:
		return ErrNotUsable.Because("an order holds the coupon; release its lock first")
	case Used:
		return ErrNotUsable.Because("the coupon was used; refund its order first")
	}
	return nil
}

// listKey makes the claim of a list's user repeatable.
func listKey(sheet int64, by user.ID) string { return itoa(sheet) + ":" + by.String() }

// replacingKey is the key of the only claim that ever replaces the coupon.
func replacingKey(id int64) string { return claim.OverLimit + "coupon:" + itoa(id) }

// keyOf returns the key of the user's claim if it is not [listKey], otherwise "".
func (p GrantParams) keyOf(sheet int64, by user.ID) string {
	switch {
	case p.Replaces != 0:
		return replacingKey(p.Replaces)
	case p.OverLimit:
		return claim.OverLimit + listKey(sheet, by)
	}
	return ""
}

// replace ends what a row of a replacing gift begins: the new coupon takes the place of the
// old one. If the stock is used up, the old coupon's own place is used. An accepted claim
// has no coupon yet, so the job waits for it. Nothing of the row is stored before, and every
// step is safe to repeat.
func (g *Granter) replace(ctx context.Context, j job.Job, p GrantParams, t template.Template, rows []GrantRow) error {
	if p.Replaces == 0 {
		return nil
	}
	for i := range rows {
		r := &rows[i]
		if r.Result == claim.ErrSoldOut.Code {
			if err := g.reuse(ctx, j, p, t, r); err != nil {
				return err
			}
		}
		switch r.Result {
		case GrantAccepted:
			return claim.ErrOverloaded
		case GrantIssued:
			if err := g.retire(ctx, j, p, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// reuse revokes the old coupon, if it is unused, and gives its place in the stock to the
// row's user. A claim gate can give the place away only after its keeper has allotted it, so
// the job tries again there.
func (g *Granter) reuse(ctx context.Context, j job.Job, p GrantParams, t template.Template, r *GrantRow) error {
	_, err := g.Admin.takeBack(ctx, j.Actor, p.Replaces, p.Reason, true, j.ID)
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if by, err := g.Admin.Store.RevokedBy(ctx, p.Replaces); err != nil || by != j.ID {
		return err // revoked before: its place was returned, or was not to be
	}
	if err := g.give(ctx, SheetOf(j), t.ID, r); err != nil {
		return err
	}
	if r.Result == claim.ErrSoldOut.Code && t.ClaimMode == template.Gate {
		return claim.ErrOverloaded
	}
	return nil
}

// retire revokes the old coupon. If an order has locked or used it meanwhile, the new coupon
// is revoked instead, and the row's result is the state of the old one. A new coupon that is
// revoked already, by staff or by an earlier attempt, is the result of the row too.
func (g *Granter) retire(ctx context.Context, j job.Job, p GrantParams, r *GrantRow) error {
	given, err := g.Admin.Store.Case(ctx, r.CouponID, "")
	if err != nil {
		return err
	}
	if given.Coupon.State == Revoked {
		r.Result = string(Revoked)
		return nil
	}
	found, err := g.Admin.takeBack(ctx, j.Actor, p.Replaces, p.Reason, true, j.ID)
	switch {
	case err == nil || found == Expired || errors.Is(err, ErrNotFound):
		return nil
	case found != Locked && found != Used:
		return err
	}
	r.Result = string(found)
	_, err = g.Admin.takeBack(ctx, j.Actor, r.CouponID, p.Reason, true, j.ID)
	return err
}

// Refund gives a used coupon of an order back, as payment could: unused, or expired if its
// time has passed. Money is not moved. It returns a [fault.Fields], [ErrNotFound],
// [staff.ErrForbidden], or [ErrNotUsable] if the order has not used the coupon. Repeating it
// changes nothing.
func (d *Admin) Refund(ctx context.Context, by staff.Actor, id int64, order, reason string) (Coupon, error) {
	if err := CheckOrderID(order); err != nil {
		return Coupon{}, err
	}
	return d.do(ctx, by, id, order, reason, "coupon.refund", staff.ManageUsers, func(c Case) (Move, error) {
		m, no := c.refund(order)
		if no != nil {
			return m, no.err
		}
		return m, nil
	})
}

// UndoRefund undoes a refund by staff: the order uses the coupon again, as if it had not been
// refunded. That is possible once for an order, as long as nothing has happened to the coupon
// since, but that its time has passed. It returns a [fault.Fields], [ErrNotFound],
// [staff.ErrForbidden], or [ErrNotUsable].
func (d *Admin) UndoRefund(ctx context.Context, by staff.Actor, id int64, reason string) (Coupon, error) {
	log, err := d.Store.Operations(ctx, id, logLines)
	if err != nil {
		return Coupon{}, err
	}
	refund, ok := UndoableRefund(log)
	if !ok {
		return Coupon{}, ErrNotUsable.Because("nothing to undo: the last step of the coupon is no refund by staff, or it was undone before")
	}
	return d.do(ctx, by, id, refund.OrderID, reason, "coupon.refund_undo", staff.ManageUsers, func(c Case) (Move, error) {
		_, refunded := c.did(StepRefund)
		_, restored := c.did(StepRestore)
		if !refunded || restored || c.Coupon.State != Unused && c.Coupon.State != Expired {
			return Move{}, ErrNotUsable.Because("the coupon has changed since the refund; load it again")
		}
		to := c.Coupon
		to.State, to.OrderID, to.Discount = Used, refund.OrderID, refund.Discount
		op := c.op(StepRestore, refund.OrderID, to)
		op.OrderAmount, op.Discount = refund.OrderAmount, refund.Discount
		return Move{From: c.Coupon, To: to, Ops: []Operation{op}, UndoesRefund: true}, nil
	})
}

// UndoableRefund returns the refund that [Admin.UndoRefund] undoes, from the coupon's log, the
// oldest line first.
func UndoableRefund(log []Operation) (refund Operation, ok bool) {
	for _, o := range log {
		if o.Outcome == Done && o.From != o.To && o.Step != StepExpire {
			refund, ok = o, o.Step == StepRefund && strings.HasPrefix(o.By, "staff:") && !undoneBefore(log, o.OrderID)
		}
	}
	return refund, ok
}

func undoneBefore(log []Operation, order string) bool {
	return slices.ContainsFunc(log, func(o Operation) bool { return o.Step == StepRestore && o.OrderID == order })
}

// MayRefund returns [ErrNotUsable] if no order has used the coupon.
func (l Listed) MayRefund() error {
	if _, no := (Case{Coupon: l.Coupon, Now: l.Now}).refund(l.OrderID); no != nil {
		return no.err
	}
	return nil
}

// UndoGift takes a coupon back that staff gave and returns it to the stock. That is possible
// as long as the coupon is valid and no order has locked it. It returns the errors of
// [Admin.Revoke]; a coupon that was revoked before stays as it is.
func (d *Admin) UndoGift(ctx context.Context, by staff.Actor, id int64, reason string) (Coupon, error) {
	return d.do(ctx, by, id, "", reason, "coupon.give_undo", staff.ManageUsers, Case.undoGift)
}

func (c Case) undoGift() (Move, error) {
	switch {
	case c.Coupon.Origin != string(claim.ByGrant):
		return Move{}, ErrNotUsable.Because("only a coupon that staff gave can be taken back; revoke this one")
	case c.Coupon.State == Unused && c.Coupon.Version > 0:
		return Move{}, ErrNotUsable.Because("an order has held the coupon since it was given; revoke it")
	}
	return c.revoke(true)
}

// MayUndoGift returns [ErrNotUsable] with the reason if [Admin.UndoGift] has nothing to take
// back.
func (l Listed) MayUndoGift() error {
	m, err := Case{Coupon: l.Coupon, Now: l.Now}.undoGift()
	if err == nil && len(m.Ops) == 0 {
		return ErrNotUsable.Because("the coupon was revoked before; nothing is left to do")
	}
	return err
}
