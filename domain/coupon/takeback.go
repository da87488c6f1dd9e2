package coupon

import (
	"context"
	"encoding/json"
	"errors"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// TakeBackKind is the kind of the jobs that revoke what a list gave.
const TakeBackKind = "coupons.takeback"

// TakeBackParams say what a job of [TakeBackKind] does.
type TakeBackParams struct {
	TemplateID int64 `json:"template_id,string"`
	// Sheet is the list, Grant the job that gave its coupons.
	Sheet   int64  `json:"sheet,string"`
	Grant   int64  `json:"grant,string"`
	Reason  string `json:"reason"`
	ToStock bool   `json:"to_stock,omitempty"`
}

// TakeBack begins to revoke the coupons that the grant of job id gave and that
// are unused, in the actor's name, each as [Desk.Revoke] does. It returns a
// [fault.Fields] without a reason, [job.ErrNotFound], [staff.ErrForbidden], or
// [template.ErrTransition] of a dry run or a grant that is not over.
func (g *Grants) TakeBack(ctx context.Context, by staff.Actor, id int64, reason string, toStock bool, requestKey string) (job.Job, error) {
	j, p, err := g.load(ctx, by, id, GrantKind)
	if err != nil {
		return j, err
	}
	if err := by.May(staff.ManageUsers, j.ShopNumber); err != nil {
		return j, err
	}
	if err := CheckReason(reason); err != nil {
		return j, err
	}
	if p.DryRun || !j.State.Over() {
		return j, template.ErrTransition.Because("only a grant that is over can be taken back")
	}
	params, err := json.Marshal(TakeBackParams{TemplateID: p.TemplateID, Sheet: SheetOf(j), Grant: j.ID, Reason: reason, ToStock: toStock})
	if err != nil {
		return j, err
	}
	return g.Jobs.Start(ctx, by, job.New{Kind: TakeBackKind, Title: j.Title, ShopNumber: j.ShopNumber, Params: params, Total: j.Done,
		RequestKey: requestKey, Reason: reason}, staff.ManageUsers)
}

// TakeBacker works off jobs of [TakeBackKind]; see [job.Runner].
type TakeBacker struct {
	Store GrantStore
	Desk  *Desk
}

// takeBackChunk is how many rows one step looks at; each coupon is a
// transaction of its own.
const takeBackChunk = 200

type takeBackCursor struct {
	Line    int64 `json:"line"`
	Revoked int64 `json:"revoked"`
	Kept    int64 `json:"kept"`
}

// Step revokes the next chunk. A coupon that an order holds or has used, or
// whose time has passed, stays and is told as a row that failed.
func (b *TakeBacker) Step(ctx context.Context, j job.Job) (job.Progress, error) {
	var p TakeBackParams
	var c takeBackCursor
	if err := json.Unmarshal(j.Params, &p); err != nil {
		return job.Progress{}, fault.ErrInvalid.Because("params: %v", err)
	}
	if len(j.Cursor) > 0 {
		if err := json.Unmarshal(j.Cursor, &c); err != nil {
			return job.Progress{}, fault.ErrInvalid.Because("cursor: %v", err)
		}
	}
	rows, err := b.Store.GrantLines(ctx, p.Sheet, "", c.Line, takeBackChunk)
	if err != nil {
		return job.Progress{}, err
	}
	var kept []job.RowError
	for _, r := range rows {
		c.Line = r.Line
		if r.CouponID == 0 {
			continue
		}
		_, err := b.Desk.Revoke(ctx, j.Actor, r.CouponID, p.Reason, p.ToStock)
		var why *fault.Fault
		switch {
		case err == nil:
			c.Revoked++
		case errors.As(err, &why) && (errors.Is(err, ErrNotUsable) || errors.Is(err, ErrNotFound)):
			c.Kept++
			kept = append(kept, job.RowError{Line: r.Line, Row: r.Input + " · " + itoa(r.CouponID), Error: why.Text})
		default:
			return job.Progress{}, err
		}
	}
	cursor, err := json.Marshal(c)
	return job.Progress{Cursor: cursor, Result: cursor, Total: max(j.Total, c.Revoked+c.Kept), Done: c.Revoked, Failed: c.Kept, Errors: kept,
		Finished: len(rows) < takeBackChunk}, err
}
