package coupon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/template"
)

// Granter works off jobs of [GrantKind]; see [job.Runner].
type Granter struct {
	Store GrantStore
	Lists Lists
	Gate  claim.Gate
	// Admin revokes coupons that are replaced.
	Admin  *Admin
	Random func() uint64
}

const (
	judgeChunk = 2000
	issueChunk = 500
	// issueAtOnce is how many claims wait for the gate at the same time. The gate
	// decides them in one group.
	issueAtOnce = 64
)

// grantCursor is how far a job is. Line 0 and not read: the list is read next.
type grantCursor struct {
	Read  bool  `json:"read"`
	Line  int64 `json:"line"`
	Total int64 `json:"total"`
	Good  int64 `json:"good"`
	Bad   int64 `json:"bad"`
	// Results counts rows by result.
	Results map[string]int64 `json:"results,omitempty"`
}

// Step reads the list, or decides or grants the next chunk. A repetition gives
// no user a second coupon: the key of each request is the user's row in the
// list.
func (g *Granter) Step(ctx context.Context, j job.Job) (job.Progress, error) {
	var p GrantParams
	if err := json.Unmarshal(j.Params, &p); err != nil {
		return job.Progress{}, fault.ErrInvalid.Because("params: %v", err)
	}
	var c grantCursor
	if len(j.Cursor) > 0 {
		if err := json.Unmarshal(j.Cursor, &c); err != nil {
			return job.Progress{}, fault.ErrInvalid.Because("cursor: %v", err)
		}
	}
	if !c.Read && p.Sheet == 0 {
		n, err := g.read(ctx, j, p)
		return progressOf(grantCursor{Read: true, Total: n}, nil, false), err
	}
	chunk := issueChunk
	if p.DryRun {
		chunk = judgeChunk
	}
	rows, err := g.Store.GrantRows(ctx, SheetOf(j), p.TemplateID, c.Line, chunk)
	if err != nil || len(rows) == 0 {
		return progressOf(c, nil, true), err
	}
	t, err := g.Store.Template(ctx, p.TemplateID)
	if err != nil {
		return job.Progress{}, err
	}
	if p.DryRun {
		judge(rows, t, c.Good)
	} else if err := g.issue(ctx, SheetOf(j), t, rows); err != nil {
		// Refusals are not saved: the repetition decides those rows again.
		given := slices.DeleteFunc(rows, func(r GrantRow) bool { return r.Result != GrantIssued && r.Result != GrantAccepted })
		return job.Progress{}, errors.Join(err, g.Store.SaveGrants(context.WithoutCancel(ctx), SheetOf(j), given))
	} else if err := g.replace(ctx, j, p, t, rows); err != nil {
		return job.Progress{}, err
	}
	if err := g.Store.SaveGrants(ctx, SheetOf(j), rows); err != nil {
		return job.Progress{}, err
	}
	var failed []job.RowError
	if c.Results == nil {
		c.Results = map[string]int64{}
	}
	for _, r := range rows {
		c.Results[r.Result]++
		if r.good() {
			c.Good++
			continue
		}
		c.Bad++
		failed = append(failed, job.RowError{Line: r.Line, Row: r.Input, Error: r.Result,
			Because: []fault.Field{{Key: "grants.result." + r.Result, Message: r.Result}}})
	}
	c.Read, c.Line, c.Total = true, rows[len(rows)-1].Line, max(c.Total, c.Good+c.Bad)
	return progressOf(c, failed, len(rows) < chunk), nil
}

func (r GrantRow) good() bool {
	return r.Result == GrantOK || r.Result == GrantIssued || r.Result == GrantAccepted
}

func progressOf(c grantCursor, failed []job.RowError, finished bool) job.Progress {
	cursor, _ := json.Marshal(c) // numbers and their names only
	return job.Progress{Cursor: cursor, Result: cursor, Total: c.Total, Done: c.Good, Failed: c.Bad, Errors: failed, Finished: finished}
}

// read stages the uploaded list, and refuses one without users.
func (g *Granter) read(ctx context.Context, j job.Job, p GrantParams) (int64, error) {
	rows, err := g.Lists.OpenList(ctx, j.UploadID)
	if err != nil {
		return 0, err
	}
	list, err := readGrants(rows)
	if err = errors.Join(err, rows.Close()); err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, ErrNoGrants
	}
	for i := range list {
		list[i].Key = p.keyOf(j.ID, list[i].UserID)
	}
	return int64(len(list)), g.Store.StageGrants(ctx, j.ID, list)
}

// issue sends a claim for every undecided row to the gate. It returns only errors
// that a repetition could resolve. If the stock may not suffice for all rows, it
// sends the claims one after the other, so that the first rows of the list get the
// remaining coupons.
func (g *Granter) issue(ctx context.Context, sheet int64, t template.Template, rows []GrantRow) error {
	errs := make([]error, len(rows))
	slots := make(chan struct{}, issueAtOnce)
	if t.StockLeft() < int64(len(rows)) {
		slots = make(chan struct{}, 1)
	}
	var all sync.WaitGroup
	for i := range rows {
		r := &rows[i]
		if r.Result == GrantIssued {
			continue
		}
		if r.Result = refusedRow(*r); r.Result != "" {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = g.give(ctx, sheet, t.ID, r)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (g *Granter) give(ctx context.Context, sheet, templateID int64, r *GrantRow) error {
	c, err := g.Gate.Claim(ctx, claim.Request{ID: claim.NewID(g.Random(), templateID), TemplateID: templateID, UserID: r.UserID, Origin: claim.ByGrant,
		Key: cmp.Or(r.Key, listKey(sheet, r.UserID))})
	switch kind := fault.KindOf(err); {
	case err == nil && c.State == claim.Issued:
		r.Result, r.CouponID = GrantIssued, c.CouponID
	case err == nil && c.State == claim.Accepted:
		r.Result = GrantAccepted
	case err == nil:
		r.Result = c.Reason
	case kind == fault.Conflict || kind == fault.NotFound || kind == fault.Invalid:
		r.Result = fault.CodeOf(err)
	default:
		return err
	}
	return nil
}
