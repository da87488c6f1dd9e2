package coupon

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// TakeBackKind is the kind of jobs that revoke the coupons given by a list.
const TakeBackKind = "coupons.takeback"

// Results for a coupon that was to be taken back. All other results are the [State] for
// which the coupon is kept.
const (
	TakenBack   = "revoked"
	TakenBefore = "revoked_before" // by another member, or another job
	TakenGone   = "gone"           // there is no such coupon any more
)

// TakeBackParams say what a job of [TakeBackKind] does.
type TakeBackParams struct {
	TemplateID int64 `json:"template_id,string"`
	// Sheet is the list, Grant the job that gave its coupons.
	Sheet   int64  `json:"sheet,string"`
	Grant   int64  `json:"grant,string"`
	Reason  string `json:"reason"`
	ToStock bool   `json:"to_stock,omitempty"`
	Source
}

// TakeBack begins to revoke the unused coupons that the grant of job id gave, in
// the actor's name, each as [Admin.Revoke] does. It returns a [fault.Fields]
// without a reason, [job.ErrNotFound], [staff.ErrForbidden], or
// [template.ErrTransition] for a dry run or a grant that is not over.
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
		return j, template.ErrTransition.Because("only a grant that is over can be taken back").Told("fault.grant_not_over")
	}
	if j, _, err = g.Outcome(ctx, j); err != nil {
		return j, err
	}
	params, err := json.Marshal(TakeBackParams{TemplateID: p.TemplateID, Sheet: SheetOf(j), Grant: j.ID, Reason: reason, ToStock: toStock, Source: p.Source})
	if err != nil {
		return j, err
	}
	return g.Jobs.Start(ctx, by, job.New{Kind: TakeBackKind, Title: j.Title, ShopNumber: j.ShopNumber, Params: params, Total: j.Done,
		RequestKey: requestKey, Reason: reason}, staff.ManageUsers)
}

// TakeBacker works off jobs of [TakeBackKind]; see [job.Runner].
type TakeBacker struct {
	Store GrantStore
	Desk  *Admin
}

// takeBackChunk is how many rows one step looks at; each coupon is a
// transaction of its own.
const takeBackChunk = 200

type takeBackCursor struct {
	Line    int64 `json:"line"`
	Revoked int64 `json:"revoked"`
	Kept    int64 `json:"kept"`
	// Before is how many coupons were revoked before this job; they are not part of
	// the total.
	Before int64 `json:"before"`
	// Results counts coupons by result.
	Results map[string]int64 `json:"results,omitempty"`
}

// count adds one coupon and reports whether it is kept.
func (c *takeBackCursor) count(result string) (kept bool) {
	c.Results[result]++
	switch result {
	case TakenBack:
		c.Revoked++
	case TakenBefore:
		c.Before++
	default:
		c.Kept++
		return true
	}
	return false
}

// Step revokes the coupons of the next chunk. A coupon that an order holds or has
// used, or whose time has passed, stays and is reported as a failed row. A coupon
// that this job has revoked counts as revoked however often the step is repeated.
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
	if c.Results == nil {
		c.Results = map[string]int64{}
	}
	total := j.Total + c.Before
	var kept []job.RowError
	for _, r := range rows {
		c.Line = r.Line
		if r.CouponID == 0 {
			continue
		}
		result, why, err := b.take(ctx, j, r.CouponID, p)
		if err != nil {
			return job.Progress{}, err
		}
		if c.count(result) {
			kept = append(kept, job.RowError{Line: r.Line, Row: r.Input + " · " + itoa(r.CouponID), Error: why,
				Because: []fault.Field{{Key: keptRule(result), Message: why}}})
		}
	}
	finished := len(rows) < takeBackChunk
	if total = max(total-c.Before, c.Revoked+c.Kept); finished {
		total = c.Revoked + c.Kept // there may be fewer than the grant had counted on
	}
	cursor, err := json.Marshal(c)
	return job.Progress{Cursor: cursor, Result: cursor, Total: total, Done: c.Revoked, Failed: c.Kept, Errors: kept, Finished: finished}, err
}

// keptRule is what keeps a coupon from being taken back.
func keptRule(result string) string {
	switch State(result) {
	case Locked:
		return "rule.kept_locked"
	case Used:
		return "rule.kept_used"
	case Expired:
		return "rule.kept_expired"
	case Refunded:
		return "rule.kept_refunded"
	}
	return "rule.kept_gone"
}

// take revokes one coupon for the job. It returns the result and, for a coupon that
// stays, the reason in English.
func (b *TakeBacker) take(ctx context.Context, j job.Job, id int64, p TakeBackParams) (result, why string, err error) {
	found, err := b.Desk.takeBack(ctx, j.Actor, id, p.Reason, p.ToStock, j.ID)
	no, refused := errors.AsType[*fault.Fault](err)
	switch {
	case refused && errors.Is(err, ErrNotFound):
		return TakenGone, no.Text, nil
	case refused && errors.Is(err, ErrNotUsable):
		return string(found), no.Text, nil
	case err != nil || found != Revoked:
		return TakenBack, "", err
	}
	by, err := b.Desk.Store.RevokedBy(ctx, id)
	if err != nil || by == j.ID {
		return TakenBack, "", err
	}
	return TakenBefore, "", nil
}

// stoppedTakeBack returns the job with the number of coupons it has revoked. A job
// that was cut off has not counted its last chunk.
func (g *Grants) stoppedTakeBack(ctx context.Context, j job.Job, counts map[string]int64) (job.Job, map[string]int64, error) {
	n, err := g.Store.TakenBack(ctx, SheetOf(j), j.ID)
	if err != nil || n <= j.Done {
		return j, counts, err
	}
	if counts = maps.Clone(counts); counts == nil {
		counts = map[string]int64{}
	}
	counts[TakenBack] = n
	j.Done, j.Total = n, max(j.Total, n+j.Failed)
	return j, counts, nil
}
